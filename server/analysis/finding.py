"""Owns Finding, Severity and Fix: what static analysis has to say about a text. Never touches a tree or LSP."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Severity(str, Enum):
    """How loudly a finding speaks."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of UTF-8 byte offsets in the text. Only handlers.to_lsp turns it into positions."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace `span` by `new_text`."""

    span: Span
    new_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One quick fix."""

    title: str
    edits: tuple[Edit, ...]
    preferred: bool = False
    new_file: tuple[str, str] | None = None
    """(absolute path, text) where the fix creates a file instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark at one place of one text."""

    code: str
    """kebab-case rule id, e.g. 'arange-size'."""
    severity: Severity
    span: Span
    message: str
    source: str = "static"
    """'static' | 'frontend' | 'verdict' | 'binding' | 'critic'."""
    fixes: tuple[Fix, ...] = ()
    related: tuple[tuple[Span, str], ...] = ()
    tags: tuple[str, ...] = field(default=())
