"""Owns the proposer that needs no model: parameter moves on the source, typed and reversible. Never judges anything.

A move turns one knob to one value. Moves are ordered by the diagnosis; the search over them is in
skills.search.optimize.
"""

from __future__ import annotations

from dataclasses import dataclass

from skills.agents.diagnosis import CriticDiagnosis
from skills.agents.knobs import Insertion, Knob, find_cuda_knobs, find_knobs

LIMITS = {"warps": (1, 32), "stages": (1, 7), "tile": (16, 65536), "cuda_block": (32, 1024)}
"""Smallest and largest value per kind; warps and CUDA blocks by the hardware's limit of 1024 threads a block."""

ORDER_BY_ISSUE = {
    "memory": ("warps", "tile", "cuda_block", "stages"),
    "compute": ("tile", "stages", "warps", "cuda_block"),
    "latency": ("tile", "cuda_block", "stages", "warps"),
    "spill": ("warps", "tile", "stages", "cuda_block"),
    "": ("warps", "tile", "stages", "cuda_block"),
}
"""Which kind of knob is turned first, by the first word of the diagnosis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Replace characters [start, end) by `new`; `old` is what stands there, so that the move can be undone."""

    name: str
    kind: str
    start: int
    end: int
    old: str
    new: str
    words: str
    """For a person: 'num_warps 4 -> 8'."""

    def apply(self, text: str) -> str:
        """The text after the move. Raises ValueError where the text is not the one the move was made for."""
        if text[self.start : self.end] != self.old:
            raise ValueError(f"the text no longer has {self.old!r} where {self.words!r} was found")
        return text[: self.start] + self.new + text[self.end :]


def propose_moves(
    text: str, *, language: str, kernels: tuple[str, ...], diagnosis: CriticDiagnosis | None
) -> list[Move]:
    """All single moves on this text, the most promising first; empty where nothing can be turned."""
    knobs, insertions = ([], []) if language == "cuda" else find_knobs(text, kernels)
    knobs = knobs or find_cuda_knobs(text)
    moves = [move for knob in knobs for move in _turns(knob, text)]
    moves += [move for insertion in insertions for move in _inserts(insertion)]
    order = ORDER_BY_ISSUE[_issue(diagnosis)]
    return sorted(moves, key=lambda move: order.index(move.kind))


def _issue(diagnosis: CriticDiagnosis | None) -> str:
    if diagnosis is None:
        return ""
    issue = diagnosis.specific_issue
    for word in ("memory", "compute", "latency"):
        if issue.startswith(word):
            return word
    return "spill" if "spill" in issue else ""


def _turns(knob: Knob, text: str) -> list[Move]:
    low, high = LIMITS[knob.kind]
    if knob.kind == "stages":
        values = [knob.value + 1, knob.value - 1, knob.value + 2]
    else:
        values = [knob.value * 2, knob.value // 2, knob.value * 4, knob.value // 4]
    return [
        Move(
            name=knob.name, kind=knob.kind, start=knob.start, end=knob.end, old=text[knob.start : knob.end],
            new=str(value), words=f"{knob.name} {knob.value} -> {value}",
        )
        for value in values
        if low <= value <= high and value != knob.value
    ]  # fmt: skip


def _inserts(insertion: Insertion) -> list[Move]:
    values = {"warps": (8, 2, 16, 1), "stages": (2, 4, 1)}[insertion.kind]
    default = {"warps": 4, "stages": 3}[insertion.kind]
    return [
        Move(
            name=insertion.name, kind=insertion.kind, start=insertion.at, end=insertion.at, old="",
            new=f", {insertion.name}={value}", words=f"{insertion.name} {default} (default) -> {value}",
        )
        for value in values
    ]  # fmt: skip
