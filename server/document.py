"""Owns one open text: its lines, generation, kernels and bindings, moved along with each edit. Never does IO.

Between an edit and the next analysis the kernels found before are shifted, so that hints and lenses stay in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from evalcore.fingerprint import sha256_text
from server.analysis.finding import Finding, Span
from server.lines import LineIndex, TextEdit
from server.sites import Bound, Site

MOST_SPANS = 64


@dataclass(frozen=True, slots=True)
class ByteEdit:
    """Replace the bytes start..old_end of the text before by `new_bytes` bytes."""

    start: int
    old_end: int
    new_bytes: int

    @property
    def delta(self) -> int:
        """How far everything behind the edit moves."""
        return self.new_bytes - (self.old_end - self.start)

    def moved(self, span: Span) -> Span:
        """Where a span lies after the edit; what was overwritten shrinks to the edit."""
        if span.end <= self.start:
            return span
        if span.start >= self.old_end:
            return Span(span.start + self.delta, span.end + self.delta)
        start = min(span.start, self.start)
        end = span.end + self.delta if span.end >= self.old_end else self.start + self.new_bytes
        return Span(start, max(end, start))


def byte_edit(before: LineIndex, edit: TextEdit) -> ByteEdit:
    """An edit of code points as an edit of bytes."""
    start = before.byte_of(edit.start)
    old_end = before.byte_of(edit.end) if edit.end != edit.start else start
    return ByteEdit(start, old_end, len(edit.text.encode("utf-8", "replace")))


def moved_finding(finding: Finding, edit: ByteEdit) -> Finding:
    """A finding after an edit before or in it. Its fixes are dropped: they were written for the text before."""
    span = edit.moved(finding.span)
    if span is finding.span and not finding.fixes:
        return finding
    related = tuple((edit.moved(place), words) for place, words in finding.related)
    return replace(finding, span=span, related=related, fixes=())


@dataclass(slots=True, kw_only=True)
class Document:
    """A text that is open in the editor."""

    path: str
    uri: str
    version: int | None
    language: str
    index: LineIndex
    generation: int = 0
    """Grows by one with each change; what comes late from an older one is dropped."""
    saved_sha: str = ""
    """What the disk holds, as far as the editor told us."""
    sites: tuple[Site, ...] = ()
    analysed_generation: int = -1
    parses: bool = False
    bounds: tuple[Bound, ...] = ()
    bounds_sha: str = ""
    looked_ahead: bool = False
    """Whether the ledger was asked what it knows about this text."""
    edited_spans: list[Span] = field(default_factory=list)
    """Where the text was edited since its last verdict; at most MOST_SPANS, later ones widen the last."""
    _sha: str = field(default="")
    _by_kernel: tuple[tuple[Bound, ...], dict[str, Bound]] | None = None

    @property
    def sha(self) -> str:
        """The text's sha256, made when first asked for after a change."""
        if not self._sha:
            self._sha = sha256_text(self.index.text)
        return self._sha

    @property
    def dirty(self) -> bool:
        """Whether the text differs from the saved one."""
        return self.sha != self.saved_sha

    def change(self, index: LineIndex, edits: tuple[TextEdit, ...] | None, version: int | None) -> tuple[ByteEdit, ...]:
        """Take the new text; returns the edits in bytes, as one that replaces everything where they are not known."""
        moves = self._moves(index, edits)
        self.sites = tuple(_moved_site(site, moves) for site in self.sites)
        for move in moves:
            self._note_edit(move)
        self.index, self.version = index, version
        self.generation += 1
        self._sha = ""
        return moves

    def _note_edit(self, move: ByteEdit) -> None:
        spans = [move.moved(span) for span in self.edited_spans]
        new = Span(move.start, move.start + move.new_bytes)
        if spans and new.start <= spans[-1].end + 1 and new.end >= spans[-1].start - 1 or len(spans) >= MOST_SPANS:
            new = Span(min(new.start, spans[-1].start), max(new.end, spans.pop().end))
        self.edited_spans = [*spans, new]

    def _moves(self, index: LineIndex, edits: tuple[TextEdit, ...] | None) -> tuple[ByteEdit, ...]:
        if edits is None:
            return (difference(self.index, index),)
        moves, current = [], self.index
        for number, edit in enumerate(edits):
            moves.append(byte_edit(current, edit))
            if number + 1 < len(edits):
                current = current.edited(edit)
        return tuple(moves)

    def bound_of(self, kernel: str) -> Bound | None:
        """How a kernel is judged: the binding that it leads, else one that exercises it."""
        if self._by_kernel is None or self._by_kernel[0] is not self.bounds:
            known: dict[str, Bound] = {}
            for bound in self.bounds:
                for name in bound.kernels:
                    known.setdefault(name, bound)
            known.update({bound.anchor: bound for bound in reversed(self.bounds)})
            self._by_kernel = (self.bounds, known)
        return self._by_kernel[1].get(kernel)

    def all_sites(self) -> tuple[Site, ...]:
        """The kernels, and the entries of problems that have no kernel in this text, in text order."""
        known = {site.name for site in self.sites}
        entries = [
            found
            for bound in self.bounds
            if bound.anchor not in known and (found := find_definition(self.index, bound.anchor)) is not None
        ]
        return tuple(sorted((*self.sites, *entries), key=lambda site: site.span.start)) if entries else self.sites


def difference(before: LineIndex, after: LineIndex) -> ByteEdit:
    """One edit that turns a text into another: what lies between the common start and the common end."""
    start, tail = common_ends(before.text, after.text)
    new_bytes = after.byte_of(len(after.text) - tail) - after.byte_of(start)
    return ByteEdit(before.byte_of(start), before.byte_of(len(before.text) - tail), new_bytes)


def common_ends(old: str, new: str) -> tuple[int, int]:
    """How many code points two texts share at the start and, of the rest, at the end."""
    limit = min(len(old), len(new))
    start = _longest(limit, lambda size: old[:size] == new[:size])
    tail = _longest(limit - start, lambda size: old[len(old) - size :] == new[len(new) - size :])
    return start, tail


def _longest(limit: int, same: Callable[[int], bool]) -> int:
    """The largest size that is the same; slices compare in C, a loop over characters would hold the event loop."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if same(middle):
            low = middle
        else:
            high = middle - 1
    return low


def find_definition(index: LineIndex, name: str) -> Site | None:
    """The def or class of that name as a Site, found in half-typed text too."""
    if not name.isidentifier():
        return None
    found = re.search(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+({re.escape(name)})\b", index.text, re.MULTILINE)
    if found is None:
        return None
    line, _ = index.place(found.start(1))
    name_span = Span(index.byte_of(found.start(1)), index.byte_of(found.end(1)))
    return Site(
        name=name, language="entry", span=Span(index.byte_of(index.starts[line]), name_span.end), name_span=name_span
    )


def _moved_site(site: Site, moves: tuple[ByteEdit, ...]) -> Site:
    span, name_span = site.span, site.name_span
    for move in moves:
        span, name_span = move.moved(span), move.moved(name_span)
    return site if span is site.span and name_span is site.name_span else replace(site, span=span, name_span=name_span)
