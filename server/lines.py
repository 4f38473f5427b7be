"""Owns the line structure of one text: offsets in code points, UTF-8 bytes, (line, column). Never LSP units.

Lines end at \\n, \\r\\n or \\r and nowhere else, as editors count them; str.splitlines would also split at form feeds
and U+2028, and every position after one would be wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the code points start..end by `text`."""

    start: int
    end: int
    text: str


class LineIndex:
    """A text with its line starts. Never changed; `edited` makes the next one."""

    __slots__ = ("_byte_starts", "ascii", "starts", "text")

    def __init__(self, text: str, starts: list[int] | None = None) -> None:
        self.text = text
        self.ascii = text.isascii()
        self.starts = _starts(text) if starts is None else starts
        self._byte_starts: list[int] | None = None

    @property
    def count(self) -> int:
        """Number of lines; an empty text has one."""
        return len(self.starts)

    def line(self, number: int) -> str:
        """The line's text without its end; empty outside the text."""
        if not 0 <= number < len(self.starts):
            return ""
        return self.text[self.starts[number] : self.line_end(number)]

    def line_end(self, number: int) -> int:
        """Offset just before the line's end mark."""
        if number + 1 >= len(self.starts):
            return len(self.text)
        end = self.starts[number + 1]
        return end - 2 if self.text[end - 2 : end] == "\r\n" else end - 1

    def offset(self, line: int, column: int) -> int:
        """Code-point offset of a place; clamped into the text, as LSP asks."""
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.text)
        return min(self.starts[line] + max(column, 0), self.line_end(line))

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column in code points), both from 0, of a code-point offset."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]

    def byte_of(self, offset: int) -> int:
        """UTF-8 byte offset of a code-point offset."""
        if self.ascii:
            return min(max(offset, 0), len(self.text))
        line, column = self.place(offset)
        start = self.starts[line]
        return self.byte_starts[line] + len(self.text[start : start + column].encode("utf-8", "replace"))

    def offset_of_byte(self, byte: int) -> int:
        """Code-point offset of a UTF-8 byte offset; one inside a character counts as the character's start."""
        if self.ascii:
            return min(max(byte, 0), len(self.text))
        starts = self.byte_starts
        line = max(bisect_right(starts, max(byte, 0)) - 1, 0)
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        raw = self.text[self.starts[line] : end].encode("utf-8", "replace")
        return self.starts[line] + len(raw[: byte - starts[line]].decode("utf-8", "ignore"))

    @property
    def byte_starts(self) -> list[int]:
        """UTF-8 byte offset of each line's start; made when first asked for."""
        if self.ascii:
            return self.starts
        if self._byte_starts is None:
            total, found = 0, []
            ends = [*self.starts[1:], len(self.text)]
            for start, end in zip(self.starts, ends, strict=True):
                found.append(total)
                total += len(self.text[start:end].encode("utf-8", "replace"))
            self._byte_starts = found
        return self._byte_starts

    def edited(self, edit: TextEdit) -> LineIndex:
        """The index after one edit. Only the lines around the edit are scanned again."""
        text = self.text[: edit.start] + edit.text + self.text[edit.end :]
        # One line more on both sides: an edit can join a \r with a \n or part them.
        first = max(bisect_right(self.starts, edit.start) - 2, 0)
        last = bisect_right(self.starts, edit.end) + 1
        shift = len(edit.text) - (edit.end - edit.start)
        if last >= len(self.starts):
            scan_end, tail = len(text), []
        else:
            scan_end, tail = self.starts[last] + shift, self.starts[last:]
        base = self.starts[first]
        middle = [found.end() for found in _END.finditer(text, base, scan_end)]
        if tail and middle and middle[-1] == scan_end:
            middle.pop()  # the tail begins with it
        starts = self.starts[: first + 1] + middle
        starts += [start + shift for start in tail] if shift else tail
        return LineIndex(text, starts)


def _starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _END.finditer(text))]


def without_surrogates(text: str) -> str:
    """The text with each unpaired surrogate replaced, so that it can be encoded; columns in UTF-16 stay the same."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)
    return text
