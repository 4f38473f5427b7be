"""Owns the form in which a rule states a finding, before its place in the file is known. Never decides anything."""

from __future__ import annotations

from dataclasses import dataclass

from server.analysis.finding import Edit, Finding, Fix, Severity, Span
from server.analysis.python_facts import PieceFacts


@dataclass(frozen=True, slots=True)
class Change:
    """Replace start..end of the piece by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A quick fix in offsets of the piece."""

    title: str
    changes: tuple[Change, ...]
    preferred: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A finding in offsets of one piece."""

    code: str
    severity: Severity
    piece: PieceFacts
    start: int
    end: int
    message: str
    remedies: tuple[Remedy, ...] = ()
    related: tuple[tuple[int, int, str], ...] = ()
    """(start, end, words) in the same piece."""

    def placed(self, offset: int) -> Finding:
        """The finding in a text in which the piece stands at `offset`."""
        return Finding(
            code=self.code,
            severity=self.severity,
            span=Span(offset + self.start, offset + self.end),
            message=self.message,
            fixes=tuple(
                Fix(
                    title=each.title,
                    edits=tuple(
                        Edit(span=Span(offset + change.start, offset + change.end), new_text=change.text)
                        for change in each.changes
                    ),
                    preferred=each.preferred,
                )
                for each in self.remedies
            ),
            related=tuple((Span(offset + start, offset + end), words) for start, end, words in self.related),
        )


def before_closing(data: bytes, end: int, word: str) -> Change:
    """The change that adds an argument at the end of a call whose `)` is the byte before `end`."""
    close = end - 1
    last = close
    while last > 0 and data[last - 1 : last].isspace():
        last -= 1
    lead = data[last - 1 : last]
    if lead == b",":
        gap = "" if data[last:close].strip(b" ") else " "
        return Change(last, last, f" {word}," if data[last:close].find(b"\n") >= 0 else f"{gap}{word}")
    return Change(last, last, word if lead == b"(" else f", {word}")
