"""Owns the read view of one document: its text, kernels, bindings and verdicts at one moment. Never changes.

Spans are UTF-8 byte offsets of the snapshot's own text. Handlers read snapshots; only `server.session` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from server.lines import LineIndex
from server.sites import Bound, Site
from server.verdicts import Verdict


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
    analysed: bool
    """False until the first analysis of this document has come back."""

    def at(self, byte: int) -> KernelView | None:
        """The innermost kernel around a byte."""
        around = [view for view in self.kernels if view.site.span.start <= byte <= view.site.span.end]
        return min(around, key=lambda view: view.site.span.end - view.site.span.start, default=None)

    def kernel(self, name: str) -> KernelView | None:
        """The kernel of that name, or None."""
        return next((view for view in self.kernels if view.site.name == name), None)
