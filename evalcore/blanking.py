"""Owns blanking: statements that a slice drops become spaces, so that lines and columns stay. Never decides which."""

from __future__ import annotations

from evalcore.slice_marks import Unit
from evalcore.source_lines import Lines


class Blanker:
    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.chars = list(text)

    def blank(self, units: list[Unit]) -> str:
        for unit in units:
            self._visit(unit, alone=self._alone(unit))
        return "".join(self.chars)

    def _visit(self, unit: Unit, *, alone: bool) -> None:
        if not unit.kept:
            self._erase(unit, alone=alone)
            return
        for body in unit.children:
            for child in body:
                self._visit(child, alone=False)

    def _alone(self, unit: Unit) -> bool:
        start, end = self.lines.span(unit.node)
        text = self.lines.text
        before = text[start - self.lines.position(start)[1] + 1 : start]
        after = text[end:].split("\n", 1)[0].strip()
        return not before.strip() and (not after or after.startswith("#"))

    def _erase(self, unit: Unit, *, alone: bool) -> None:
        start, end = self.lines.span(unit.node)
        for index in range(start, end):
            if self.chars[index] not in "\r\n":
                self.chars[index] = " "
        if not alone:
            self.chars[start] = "0"  # an expression that does nothing: bodies and `a; b` lines stay valid
