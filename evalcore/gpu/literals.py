"""Owns the way from a position in a string's value back to the place in the Python text that spells it.

Un-raw strings hold escapes and may be joined from several literals; a compiler sees the value, a person the spelling.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata
from dataclasses import dataclass

from evalcore.facts import Place
from evalcore.source_lines import Lines

_LITERAL = re.compile(r"(?is)^([rbuf]*)('''|\"\"\"|'|\")(.*)\2$")
_ESCAPES = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}
_NUMERIC = re.compile(r"[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class Spelled:
    """A string's value and, for each of its characters, the index of its spelling in the Python text."""

    value: str
    places: tuple[int, ...]
    lines: Lines

    def place(self, path: str, line: int, column: int) -> Place:
        """The place in the Python file of 1-based (line, column) of the value."""
        starts = [0, *[index + 1 for index, char in enumerate(self.value) if char == "\n"]]
        start = starts[min(max(line, 1), len(starts)) - 1]
        index = min(start + max(column, 1) - 1, len(self.value) - 1)
        at = self.places[index] if self.places else 0
        found_line, found_column = self.lines.position(at)
        return Place(path=path, line=found_line, column=found_column)


def strings(text: str, wanted: re.Pattern[str]) -> list[Spelled]:
    """Every string of a Python text whose value `wanted` finds something in. [] where the text does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    lines = Lines(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and wanted.search(node.value):
            spelled = _spelled(text, lines, node)
            if spelled is not None:
                found.append(spelled)
    return found


def _spelled(text: str, lines: Lines, node: ast.Constant) -> Spelled | None:
    start, end = lines.span(node)
    value: list[str] = []
    places: list[int] = []
    for token, offset in _string_tokens(text[start:end]):
        match = _LITERAL.match(token)
        if match is None or "f" in match[1].lower() or "b" in match[1].lower():
            return None
        _decode(match[3], start + offset + match.start(3), "r" in match[1].lower(), value, places)
    made = "".join(value)
    return Spelled(made, tuple(places), lines) if made == node.value else None


def _string_tokens(piece: str) -> list[tuple[str, int]]:
    """(literal, offset) of each string literal in an expression that is nothing but adjacent literals."""
    inside = Lines(piece)
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(f"({piece})", newline="").readline):
            if token.type == tokenize.STRING:
                line, column = token.start
                offset = inside.starts[line - 1] + column - (1 if line == 1 else 0)
                found.append((piece[offset : offset + len(token.string)], offset))
    except (tokenize.TokenError, IndentationError):
        return []
    return found


def _decode(body: str, base: int, raw: bool, value: list[str], places: list[int]) -> None:
    index = 0
    while index < len(body):
        char, width = body[index], 1
        if char == "\r":
            width = 2 if body[index + 1 : index + 2] == "\n" else 1
            char = "\n"
        elif char == "\\" and not raw:
            char, width = _escape(body, index)
        for one in char:
            value.append(one)
            places.append(base + index)
        index += width


def _escape(body: str, index: int) -> tuple[str, int]:
    """(value, length) of the escape at `index`."""
    after = body[index + 1 : index + 2]
    if after in "\r\n":
        return "", 3 if body[index + 1 : index + 3] == "\r\n" else 2
    if after in _ESCAPES:
        return _ESCAPES[after], 2
    match = _NUMERIC.match(body, index + 1)
    if match is None:
        return "\\", 1
    return _numeric(match[0]), 1 + len(match[0])


def _numeric(code: str) -> str:
    if code[0] == "N":
        return unicodedata.lookup(code[2:-1])
    return chr(int(code, 8)) if code[0].isdigit() else chr(int(code[1:], 16))


class Spelling:
    """Finds where a text that a compiler got at run time stands in a Python file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.known = strings(text, re.compile(r"[{;]"))
        self.raw_lines = Lines(text)

    def place(self, given: str, line: int, column: int) -> Place | None:
        """The place of (line, column) of `given`: exact where a literal spells it, else by the line's own text."""
        for spelled in self.known:
            if spelled.value == given:
                return spelled.place(self.path, line, column)
        wanted = given.split("\n")[line - 1] if 0 < line <= given.count("\n") + 1 else ""
        return self._by_line(wanted, column)

    def _by_line(self, wanted: str, column: int) -> Place | None:
        stripped = wanted.strip()
        if len(stripped) < 3:
            return None
        hits = _find_all(self.text, stripped)
        if len(hits) != 1:
            return None
        into = max(0, column - 1 - (len(wanted) - len(wanted.lstrip())))
        line, at = self.raw_lines.position(hits[0] + min(into, len(stripped) - 1))
        return Place(path=self.path, line=line, column=at)


def _find_all(text: str, wanted: str) -> list[int]:
    hits, index = [], text.find(wanted)
    while index >= 0:
        hits.append(index)
        index = text.find(wanted, index + 1)
    return hits
