"""Owns at which size a case is judged here: as given where that can be run, else the largest reduced one that can.

Never decides a verdict; what was reduced says so in its name and origin, and the judge draws the consequence.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.problem import Case
from evalcore.shapes import reduce_sizes
from evalcore.worker.desks import Desk

INTERPRETER_ELEMENTS = 1 << 18
"""Input elements that the interpreter gets through in well under a second, for most kernels."""
INTERPRETER_MOST_ELEMENTS = 1 << 25
"""Where no size may be varied, more than this is not even tried."""
CARD_COPIES = 6
"""Inputs at a case, a ring of them, the referee's own, outputs, key in float64: together about this many times."""


class TooLarge(Exception):
    """The problem cannot be run here at any size that may be tried. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A size to judge at, and smaller ones to fall back to."""

    case: Case
    smaller: tuple[Case, ...] = ()
    input_bytes: int | None = None
    """Of `case`, where that is known without making the inputs."""


async def choose(desk: Desk, case: Case, *, free_bytes: int | None) -> Choice:
    """`case` itself if it fits, else the largest reduced size that does. `free_bytes` is the card's, None on the CPU.

    Raises TooLarge, and ReferenceFailed where the reference cannot be loaded.
    """
    key = (case.name, free_bytes)
    if key not in desk.choices:
        desk.choices[key] = await _choose(desk, case, free_bytes)
    found: Choice = desk.choices[key]
    return found


async def _choose(desk: Desk, case: Case, free_bytes: int | None) -> Choice:
    elements, size_bytes = await desk.size(case)
    ladder = tuple(reduce_sizes(desk.problem.inputs, 1)) if case.origin == "given" else ()
    if elements is None or size_bytes is None:
        return Choice(case=case, smaller=ladder)
    if free_bytes is None:
        budget = INTERPRETER_ELEMENTS
    else:
        budget = max(elements * free_bytes // max(size_bytes * CARD_COPIES, 1), 1)
    if elements <= budget:
        return Choice(case=case, smaller=ladder, input_bytes=size_bytes)
    listed = await _listed(desk, case, budget)
    if listed is not None:
        return listed
    return await _reduced(desk, case, ladder, (elements, budget if free_bytes is not None else None))


async def _listed(desk: Desk, case: Case, budget: int) -> Choice | None:
    """The largest other case that the problem lists and that fits: what is wrong there is wrong, nothing was reduced.

    The list falls, largest first, so half of what is left is decided by each look: a sweep may list a hundred.
    """
    if case.origin != "given":
        return None
    others = [other for other in desk.problem.cases if other.name != case.name and other.origin == "given"]
    found: Choice | None = None
    low, high = 0, len(others)
    while low < high:
        middle = (low + high) // 2
        elements, size_bytes = await desk.size(others[middle])
        if elements is not None and elements <= budget:
            found = Choice(case=others[middle], input_bytes=size_bytes)
            high = middle
        else:
            low = middle + 1
    return found


async def _reduced(desk: Desk, case: Case, ladder: tuple[Case, ...], known: tuple[int, int | None]) -> Choice:
    """The first rung that fits. The ladder falls, so half of what is left is decided by each look."""
    elements, card_budget = known
    budget = card_budget if card_budget is not None else INTERPRETER_ELEMENTS
    low, high = 0, len(ladder)
    sizes: dict[int, tuple[int | None, int | None]] = {}
    while low < high:
        middle = (low + high) // 2
        sizes[middle] = await desk.size(ladder[middle])
        fits = (sizes[middle][0] or elements) <= budget
        low, high = (low, middle) if fits else (middle + 1, high)
    if low < len(ladder):
        return Choice(case=ladder[low], smaller=ladder[low + 1 :], input_bytes=sizes[low][1])
    least = min([elements, *(size[0] for size in sizes.values() if size[0] is not None)])
    if least > (budget if card_budget is not None else INTERPRETER_MOST_ELEMENTS):
        where = "this card's free memory" if card_budget is not None else "the interpreter"
        raise TooLarge(f"its inputs have {least:,} elements or more, too many for {where}, and no size may be varied")
    return Choice(case=ladder[-1] if least < elements else case)
