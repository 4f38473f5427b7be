"""Owns the words for where in a tensor wrong elements lie. Never touches a tensor: it gets index summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Which indices along one dimension hold at least one wrong element."""

    size: int
    count: int
    """How many indices do."""
    first: int
    last: int
    period: int = 0
    """n > 1 where exactly every n-th index does, beginning at `first`; 0 otherwise."""


def describe(spreads: Sequence[Spread], *, wrong: int, elements: int, untouched: bool = False) -> str | None:
    """Words for the region, or None where nothing better can be said than 'scattered'.

    `spreads` has one entry per dimension, outermost first; `untouched` says that every wrong element still holds the
    poison that was there before the run.
    """
    if not spreads or wrong == 0:
        return None
    if wrong == elements:
        return "everything untouched" if untouched else "everywhere"
    filled = 1
    for spread in spreads:
        filled *= spread.count
    solid = filled == wrong
    untouched = untouched and solid
    parts = []
    for index, spread in enumerate(spreads):
        words = _along(spread, _axis(index, len(spreads)), untouched)
        if words:
            parts.append((index, words))
    if not parts:
        return "scattered" if wrong * 4 < elements else None
    last = len(spreads) - 1
    if len(parts) == 1 and parts[0][0] == last and solid and len(spreads) > 1 and not untouched:
        return _each_row(spreads[last]) or f"all in {parts[0][1]}"
    words = " of ".join(part for _index, part in reversed(parts))
    if untouched:
        return f"{words} untouched"
    return f"all in {words}"


def _axis(index: int, dims: int) -> str:
    if dims == 1:
        return "element"
    if index == dims - 1:
        return "column"
    if index == dims - 2:
        return "row"
    return f"dim-{index} slice"


def _along(spread: Spread, axis: str, untouched: bool) -> str | None:
    size, count, first, last = spread.size, spread.count, spread.first, spread.last
    if count == size or size == 1:
        return None
    if count == 1:
        return f"the last {axis}" if last == size - 1 else f"{axis} {first}"
    if spread.period > 1:
        every = f"every {_ordinal(spread.period)} {axis}"
        return f"{every} from {first}" if first else every
    if count != last - first + 1:
        return None
    if last == size - 1:
        return f"{axis}s >= {first}" if untouched else f"the last {count} {axis}s"
    if first == 0:
        return f"{axis}s < {count}" if untouched else f"the first {count} {axis}s"
    if first % count == 0 and size // count > 1:
        return f"{axis} block {first // count + 1} of {-(-size // count)} ({axis}s {first}..{last})"
    return f"{axis}s {first}..{last}"


def _each_row(spread: Spread) -> str | None:
    if spread.last == spread.size - 1 and spread.count == spread.last - spread.first + 1:
        return f"only the last {spread.count} of each row" if spread.count > 1 else "only the last of each row"
    if spread.first == 0 and spread.count == spread.last + 1:
        return f"only the first {spread.count} of each row"
    return None


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
