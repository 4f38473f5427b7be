"""Owns finding string literals in Python bytes without a parser, and reading CUDA text in them in place.

A string that is never closed is found as well. Every byte of the text that is returned for parsing stands where it
stands in the file, so positions need no map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from server.analysis.chunks import triple_end

_TOKEN = re.compile(
    rb"#[^\n\r]*"
    rb"|(?P<prefix>(?<![\w])[rRbBfFuU]{1,2})?(?P<quote>\"\"\"|'''|\"|')",
)
_CLOSE = {b'"': re.compile(rb'(?:\\.|[^"\\\n\r])*', re.S), b"'": re.compile(rb"(?:\\.|[^'\\\n\r])*", re.S)}
_ASSIGNED = re.compile(rb"(\w+)\s*(?::[^=\n]*)?=\s*\(?\s*$")
_ESCAPE = re.compile(rb"\\(?:[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r\n|.)", re.S)


@dataclass(frozen=True, slots=True)
class Literal:
    """A string literal: offsets of the whole and of its content."""

    start: int
    end: int
    content_start: int
    content_end: int
    prefix: str
    terminated: bool
    variable: str
    """The name it is assigned to, '' otherwise."""


def literals(data: bytes) -> Iterator[Literal]:
    """All string literals of a piece of Python, in order."""
    position = 0
    while match := _TOKEN.search(data, position):
        position = match.end()
        quote = match["quote"]
        if quote is None:
            continue
        start = match.start()
        content = match.end()
        if len(quote) == 3:
            stop, end, terminated = triple_end(data, content, quote)
        else:
            closed = _CLOSE[quote].match(data, content)
            stop = closed.end() if closed else content
            terminated = data[stop : stop + 1] == quote
            end = stop + 1 if terminated else stop
        position = end
        assigned = _ASSIGNED.search(data, max(start - 200, 0), start)
        yield Literal(
            start, end, content, stop, (match["prefix"] or b"").decode().lower(), terminated,
            assigned.group(1).decode() if assigned else "",
        )  # fmt: skip


def cuda_text(data: bytes, literal: Literal) -> bytes:
    """The CUDA text of a literal, byte for byte in place: escapes and f-string holes become blanks of equal length."""
    content = data[literal.content_start : literal.content_end]
    if "r" not in literal.prefix:
        content = _ESCAPE.sub(_blank_escape, content)
    if "f" in literal.prefix:
        content = _blank_holes(content)
    return content


def _blank_escape(match: re.Match[bytes]) -> bytes:
    text = match.group()
    if text == rb"\\":
        return b" \\"
    if text in (rb"\"", rb"\'"):
        return b" " + text[1:]
    return b"\n".rjust(len(text)) if text == rb"\n" else b" " * len(text)


def _blank_holes(content: bytes) -> bytes:
    """`{name}` becomes a number of the same length, `{{` a brace and a blank."""
    out = bytearray(content)
    index = 0
    while index < len(out):
        pair = out[index : index + 2]
        if pair in (b"{{", b"}}"):
            out[index + 1 : index + 2] = b" "
            index += 2
        elif out[index : index + 1] == b"{":
            end = out.find(b"}", index)
            end = len(out) if end < 0 else end + 1
            out[index:end] = b"1".ljust(end - index)
            index = end
        else:
            index += 1
    return bytes(out)
