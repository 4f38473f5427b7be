"""Owns the session's state and the questions that can be asked of it. Only `server.session` changes it, by events.

The parts that work in the background (keystrokes, judging) read it, and answer by posting events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalcore.fingerprint import sha256_text
from evalcore.problem import Problem
from server.analysis.finding import Finding, Span
from server.board import Board
from server.choices import Choices
from server.config import Settings
from server.document import Document
from server.events import Event
from server.host import Host
from server.project import Project, read_text
from server.recorder import Recorder
from server.sites import Bound, Site
from server.snapshot import KernelView, Snapshot
from server.verdicts import Running


@dataclass(slots=True)
class State:
    """Everything that the server knows."""

    host: Host
    post: Callable[[Event], None]
    """Hands an event to the session."""
    settings: Settings = field(default_factory=Settings)
    trusted: bool = True
    project: Project = field(default_factory=Project)
    board: Board = field(default_factory=Board)
    documents: dict[str, Document] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    """Every path that was open since the start: those are judged when another program changes them."""
    runs: dict[str, Running] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    recorders: dict[Path, Recorder] = field(default_factory=dict)
    problem_sha: Callable[[Problem], Awaitable[str]] | None = None
    """Finds what a problem is known by, without holding the event loop; set by the session."""
    epoch: int = 0
    """Grows when something beside a text changed."""

    def document(self, path: str) -> Document | None:
        """An open document."""
        return self.documents.get(path)

    def recorder(self, path: str) -> Recorder:
        """The ledger that a file's verdicts go to."""
        return self.recorder_at(self.project.root_of(path))

    def recorder_at(self, root: Path) -> Recorder:
        """The ledger of a workspace folder."""
        if root not in self.recorders:
            self.recorders[root] = Recorder(self.host, root)
        return self.recorders[root]

    def all_recorders(self) -> tuple[Recorder, ...]:
        """The ledgers of the workspace folders, then those of other files that were judged."""
        for folder in self.project.folders:
            self.recorder_at(Path(folder))
        first = [Path(folder) for folder in self.project.folders]
        others = [root for root in self.recorders if root not in first]
        return tuple(self.recorders[root] for root in [*first, *others])

    def dirty_texts(self) -> Mapping[str, str]:
        """Unsaved buffers by path; they win over the disk."""
        return {path: each.index.text for path, each in self.documents.items() if each.dirty}

    def sha_of(self, path: str) -> str | None:
        """The present sha of a file: the buffer's where it is open, else the disk's."""
        document = self.documents.get(path)
        if document is not None:
            return document.sha
        found = read_text(path)
        return sha256_text(found.text) if found is not None else None

    def case_of(self, path: str, kernel: str) -> str | None:
        """The case that a person picked for a kernel, None for the problem's first."""
        return self.choices.case(path, kernel)

    def fresh(self, path: str, kernel: str, sha: str) -> bool:
        """Whether the newest verdict of a kernel is about this text and still holds."""
        verdict = self.board.verdict(path, kernel)
        return verdict is not None and verdict.sha == sha and not verdict.old_because

    def root_text(self, path: str) -> str:
        """The workspace folder of a file, as text."""
        return str(self.project.root_of(path))

    def touched_first(self, path: str, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        """Bindings in the order of judging: kernels whose own lines changed since their last verdict come first."""
        document = self.documents.get(path)
        if document is None:
            return bounds
        sites = {site.name: site for site in document.all_sites()}
        edited = document.edited_spans
        return tuple(sorted(bounds, key=lambda bound: not _overlaps(sites.get(bound.anchor), edited)))

    def site(self, path: str, kernel: str) -> Site | None:
        """Where a kernel stands in an open document."""
        document = self.documents.get(path)
        if document is None:
            return None
        return next((site for site in document.all_sites() if site.name == kernel), None)

    def snapshot(self, path: str) -> Snapshot | None:
        """The read view of an open document."""
        document = self.documents.get(path)
        if document is None:
            return None
        return Snapshot(
            path=path,
            uri=document.uri,
            version=document.version,
            generation=document.generation,
            index=document.index,
            kernels=tuple(self._view(document, site) for site in document.all_sites()),
            analysed=document.analysed_generation >= 0,
        )

    def findings(self, path: str) -> tuple[Finding, ...]:
        """Everything that is to be shown on an open document now."""
        document = self.documents.get(path)
        return self.board.findings(path, document.sha, document.index) if document is not None else ()

    def _view(self, document: Document, site: Site) -> KernelView:
        bound = document.bound_of(site.name)
        leads = bound is None or bound.anchor == site.name
        verdict = self.board.verdict(document.path, site.name) if leads else None
        return KernelView(
            site=site,
            bound=bound,
            case=self.case_of(document.path, bound.anchor) if bound is not None else None,
            verdict=verdict,
            fresh=verdict is not None and verdict.sha == document.sha and not verdict.old_because,
            leads=leads,
        )


def _overlaps(site: Site | None, spans: list[Span]) -> bool:
    return site is not None and any(span.start <= site.span.end and span.end >= site.span.start for span in spans)
