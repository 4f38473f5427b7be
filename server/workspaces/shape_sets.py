"""Owns the shape sets of a workspace, derived from the official ones: smoke, dev, stress. Pure; never runs anything."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.problem import Case, Inputs, Problem
from evalcore.shapes import neighbours, reduce_sizes

Sizes = dict[str, int]

SMOKE_ELEMENTS = 1 << 16
MOST_SMOKE, MOST_DEV, MOST_STRESS = 2, 8, 16


def shape_sets(problem: Problem) -> dict[str, list[Sizes]]:
    """{'smoke': [...], 'dev': [...], 'stress': [...]}; each a list of constants' values, [] where nothing may vary.

    dev is the official list itself (thinned evenly where it is long), smoke what of it runs in a moment, stress the
    official extremes with their odd neighbours: one more, one less, a prime, one past a block, 1.
    """
    official = [_sizes(problem.inputs, case) for case in problem.cases if case.origin == "given"]
    official = _distinct(official)
    if not any(official):
        return {"smoke": [], "dev": [], "stress": []}
    ordered = sorted(official, key=_volume)
    return {
        "smoke": _smoke(problem.inputs, ordered),
        "dev": _thin(official, MOST_DEV),
        "stress": _stress(problem.inputs, ordered),
    }


def _sizes(inputs: Inputs, case: Case) -> Sizes:
    return {**dict(inputs.constants), **dict(case.sizes)}


def _volume(sizes: Sizes) -> int:
    product = 1
    for value in sizes.values():
        product *= max(value, 1)
    return product


def _smoke(inputs: Inputs, ordered: Sequence[Sizes]) -> list[Sizes]:
    """The smallest official ones where they are small; else the first steps of the ladder below the smallest."""
    small = [sizes for sizes in ordered if _volume(sizes) <= SMOKE_ELEMENTS]
    if small:
        return list(small[:MOST_SMOKE])
    base = ordered[0]
    ladder = [_sizes(inputs, case) for case in reduce_sizes(_with(inputs, base), 0)]
    fitting = [sizes for sizes in ladder if _volume(sizes) <= SMOKE_ELEMENTS]
    return _distinct((fitting or ladder[-1:] or [base])[:MOST_SMOKE])


def _stress(inputs: Inputs, ordered: Sequence[Sizes]) -> list[Sizes]:
    """The extremes, and the odd neighbours of the largest: those find masks that do not hold."""
    largest = ordered[-1]
    odd = [_sizes(_with(inputs, largest), case) for case in neighbours(_with(inputs, largest), Case(name="largest"))]
    return _distinct([ordered[0], largest, *odd])[:MOST_STRESS]


def _with(inputs: Inputs, sizes: Sizes) -> Inputs:
    """The recipe as if `sizes` were the given ones."""
    return Inputs(
        kind=inputs.kind, function=inputs.function, init_function=inputs.init_function, statements=inputs.statements,
        names=inputs.names, constants=tuple(sizes.items()), batch_like=inputs.batch_like,
    )  # fmt: skip


def _distinct(sets: Sequence[Sizes]) -> list[Sizes]:
    found: list[Sizes] = []
    for sizes in sets:
        if sizes not in found:
            found.append(sizes)
    return found


def _thin(sets: Sequence[Sizes], most: int) -> list[Sizes]:
    """At most `most`, first and last kept, evenly between."""
    if len(sets) <= most:
        return list(sets)
    return [sets[round(index * (len(sets) - 1) / (most - 1))] for index in range(most)]
