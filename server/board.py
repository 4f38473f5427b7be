"""Owns what stands on each document: findings by source with their generation, and verdicts. Never publishes.

A late result of an older generation is dropped. A verdict belongs to a text's sha: on any other text its findings are
shown as older, and moved along with the edits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from server.analysis.finding import Finding, Severity
from server.document import ByteEdit, moved_finding
from server.lines import LineIndex
from server.placing import as_older
from server.verdicts import Verdict

SOURCES = ("static", "binding", "frontend", "verdict", "critic")
"""In the order in which they are shown."""


@dataclass(slots=True)
class Layer:
    """What one source says about one document."""

    generation: int
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class VerdictLayer:
    """What one verdict says, exact on its own text (`moved` False) or moved along with edits since."""

    sha: str
    findings: tuple[Finding, ...]
    moved: bool = False


@dataclass(slots=True)
class _Sheet:
    layers: dict[str, Layer] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    said: dict[str, VerdictLayer] = field(default_factory=dict)


class Board:
    """All documents' sheets, by path."""

    def __init__(self) -> None:
        self._sheets: dict[str, _Sheet] = {}

    def _sheet(self, path: str) -> _Sheet:
        return self._sheets.setdefault(path, _Sheet())

    def put(self, path: str, source: str, generation: int, findings: Iterable[Finding]) -> bool:
        """Replace what a source says; False where something newer already stands there."""
        layers = self._sheet(path).layers
        standing = layers.get(source)
        if standing is not None and standing.generation > generation:
            return False
        layers[source] = Layer(generation, tuple(findings))
        return True

    def drop_older(self, path: str, source: str, generation: int) -> None:
        """Take back what a source said about an older text: something weightier is known about this one."""
        sheet = self._sheets.get(path)
        standing = sheet.layers.get(source) if sheet is not None else None
        if standing is not None and standing.generation < generation:
            standing.findings = ()

    def layer(self, path: str, source: str) -> tuple[Finding, ...]:
        """What a source says now."""
        sheet = self._sheets.get(path)
        standing = sheet.layers.get(source) if sheet is not None else None
        return standing.findings if standing is not None else ()

    def move(self, path: str, edits: Iterable[ByteEdit]) -> None:
        """Move everything that stands on a document along with edits."""
        sheet = self._sheets.get(path)
        if sheet is None:
            return
        for edit in edits:
            for layer in sheet.layers.values():
                layer.findings = tuple(moved_finding(each, edit) for each in layer.findings)
            for said in sheet.said.values():
                said.findings = tuple(moved_finding(each, edit) for each in said.findings)
                said.moved = True

    def forget(self, path: str) -> None:
        """The document was closed: what was found in its text goes; verdicts stay, they belong to texts."""
        sheet = self._sheets.get(path)
        if sheet is not None:
            sheet.layers.clear()
            sheet.said.clear()

    def set_verdict(self, verdict: Verdict) -> None:
        """The newest verdict of a kernel; what an earlier one said goes."""
        sheet = self._sheet(verdict.path)
        sheet.verdicts[verdict.kernel] = verdict
        sheet.said.pop(verdict.kernel, None)

    def outdate(self, verdict: Verdict, because: str) -> None:
        """Something beside the text changed: the verdict stands, as old."""
        sheet = self._sheet(verdict.path)
        if sheet.verdicts.get(verdict.kernel) is verdict:
            sheet.verdicts[verdict.kernel] = replace(verdict, old_because=because)
            sheet.said.pop(verdict.kernel, None)

    def say(self, path: str, kernel: str, layer: VerdictLayer) -> None:
        """What the verdict (or the refusal) of a kernel says on the document."""
        self._sheet(path).said[kernel] = layer

    def said(self, path: str) -> dict[str, VerdictLayer]:
        """What verdicts say on a document, by kernel."""
        sheet = self._sheets.get(path)
        return sheet.said if sheet is not None else {}

    def verdict(self, path: str, kernel: str) -> Verdict | None:
        """The newest verdict of a kernel."""
        sheet = self._sheets.get(path)
        return sheet.verdicts.get(kernel) if sheet is not None else None

    def verdicts(self, path: str | None = None) -> tuple[Verdict, ...]:
        """The newest verdicts of a document, or of all."""
        sheets = self._sheets.values() if path is None else filter(None, (self._sheets.get(path),))
        return tuple(verdict for sheet in sheets for verdict in sheet.verdicts.values())

    def findings(self, path: str, sha: str, index: LineIndex) -> tuple[Finding, ...]:
        """Everything to be shown on this text, verdicts of other texts as older."""
        sheet = self._sheets.get(path)
        if sheet is None:
            return ()
        said = [each for layer in sheet.said.values() for each in _said_here(layer, sha)]
        judged_lines = {
            index.place(index.offset_of_byte(each.span.start))[0] for each in said if each.severity is Severity.ERROR
        }
        found: list[Finding] = []
        for source in SOURCES:
            if source == "verdict":
                found += said
            elif (layer := sheet.layers.get(source)) is not None:
                found += [each for each in layer.findings if not _said_already(each, index, judged_lines)]
        return tuple(found)


def _said_here(layer: VerdictLayer, sha: str) -> Iterable[Finding]:
    if layer.sha == sha:
        return layer.findings
    return (as_older(each) for each in layer.findings if each.severity is Severity.ERROR)


def _said_already(finding: Finding, index: LineIndex, judged_lines: set[int]) -> bool:
    """The front end's error on a line where the verdict already stands would say the same twice."""
    if finding.source != "frontend" or not judged_lines:
        return False
    return index.place(index.offset_of_byte(finding.span.start))[0] in judged_lines
