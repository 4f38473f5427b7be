"""Owns the read view of one document: its text, kernels, bindings and verdicts at one moment. Never changes.

Spans are UTF-8 byte offsets of the snapshot's own text. Handlers read snapshots; only `server.session` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.jobs import Measurement
from evalcore.problem import Problem
from server.analysis.finding import Finding, Fix, Span
from server.lines import LineIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One kernel in a text, or the entry of a problem that has no kernel of its own."""

    name: str
    language: str
    """'triton', 'cuda' or 'entry'."""
    span: Span
    name_span: Span
    """The name in its definition: verdicts stand on this line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What is known about how a kernel is judged. Exactly one of `problem` and `refusal` is there."""

    anchor: str
    """Name of the site that the verdict stands beside."""
    kernels: tuple[str, ...]
    problem: Problem | None = None
    refusal_code: str = ""
    refusal_words: str = ""
    evidence: str = ""
    fixes: tuple[Fix, ...] = ()
    depends: tuple[str, ...] = ()
    """Absolute paths of project files that the verdict depends on, as far as syntax shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A measurement that stands in the ledger, and the text it is about."""

    path: str
    kernel: str
    sha: str
    seq: int
    measurement: Measurement
    reused: bool = False
    old_because: str = ""
    """A reason beside the text why it is no longer about what is there: a helper that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A judgement on its way."""

    run_id: str
    path: str
    kernel: str
    cause: str
    stage: str = "queued"
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """One kernel as a feature sees it."""

    site: Site
    bound: Bound | None = None
    case: str | None = None
    """The chosen case's name; None for the problem's first."""
    verdict: Verdict | None = None
    fresh: bool = False
    """Whether the verdict is about exactly this text."""
    leads: bool = True
    """False for a kernel that is judged together with another one, which carries the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One document at one moment."""

    path: str
    uri: str
    version: int | None
    generation: int
    index: LineIndex
    kernels: tuple[KernelView, ...]
    findings: tuple[Finding, ...]
    analysed: bool
    """False until the first analysis of this document has come back."""

    def at(self, byte: int) -> KernelView | None:
        """The innermost kernel around a byte."""
        around = [view for view in self.kernels if view.site.span.start <= byte <= view.site.span.end]
        return min(around, key=lambda view: view.site.span.end - view.site.span.start, default=None)

    def kernel(self, name: str) -> KernelView | None:
        """The kernel of that name, or None."""
        return next((view for view in self.kernels if view.site.name == name), None)
