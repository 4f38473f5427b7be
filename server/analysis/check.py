"""Owns running all rules over a text: the literal list of them, and the one pure entry `analyse`. Never raises for a text."""

from __future__ import annotations

from dataclasses import dataclass

from server.analysis.finding import Finding
from server.analysis.outline import Parsed, outline
from server.analysis.sites import Outline


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that static analysis has to say about one text."""

    outline: Outline
    findings: tuple[Finding, ...]


def analyse(path: str, text: str, language: str = "") -> Analysis:
    """Outline and findings of a text, from nothing. Pure: may run in any process."""
    return analyse_parsed(Parsed(path, text, language))


def analyse_parsed(parsed: Parsed) -> Analysis:
    """Outline and findings of a text that is kept and edited; only changed pieces cost."""
    return Analysis(outline(parsed), ())
