"""Owns which sizes are tried besides the given ones: smaller ones where the given do not fit, and odd neighbours.

Never runs anything: it proposes, the worker tries, and what the reference refuses is simply left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.problem import Case, Inputs

_BATCH_STEPS = (128, 64, 32, 16, 8, 4, 2)
"""Targets for batch-like constants: rows and programs cost, tile sizes do not (interpreter: 30-60 us an op)."""
_SIZE_STEPS = (1024, 512, 256, 128, 64, 32, 16)
"""Targets for the other constants, tried only when the batch-like ones are already small."""
_GRAIN = 128
"""Divisibility that is kept where the given size has it: kernels without a mask may rely on it, and would fail for
nothing at a size that the person never asked for."""


def reduce_sizes(inputs: Inputs, budget_elements: int, *, given_elements: int | None = None) -> list[Case]:
    """A ladder of smaller cases, largest first: take the first whose specs fit `budget_elements` and that runs.

    Batch-like constants go first; others follow only when all of those are small. Sizes keep the given one's
    divisibility (up to 128), stay an odd multiple of it (so more than one block and, for masks, a tail), and never
    grow. Empty where no constant may be varied, or where `given_elements` already fits.
    """
    if given_elements is not None and given_elements <= budget_elements:
        return []
    given = dict(inputs.constants)
    batch = [name for name in given if name in inputs.batch_like]
    other = [name for name in given if name not in inputs.batch_like]
    ladder: list[dict[str, int]] = []
    for sizes in _ladder(given, batch, other):
        if sizes != given and sizes not in ladder:
            ladder.append(sizes)
    return [_case(sizes, given, "reduced") for sizes in ladder]


def _ladder(given: dict[str, int], batch: list[str], other: list[str]) -> Iterator[dict[str, int]]:
    small = dict(given)
    for target in _BATCH_STEPS if batch else ():
        small = {**given, **{name: shrink(given[name], target) for name in batch}}
        yield dict(small)
    for target in _SIZE_STEPS:
        yield {**small, **{name: shrink(given[name], target) for name in other}}
    for target in _SIZE_STEPS:
        yield {**small, **{name: halve(given[name], target) for name in other}}


def shrink(value: int, target: int) -> int:
    """`value` brought to about `target`: an odd multiple (3 or more if it fits) of its own power-of-two divisor.

    4096 -> 384 for target 256, 1000 -> 264, 781 -> 257: never more than `value`.
    """
    if value <= target:
        return value
    grain = min(value & -value, _GRAIN)
    while grain > 1 and 3 * grain > max(target * 3 // 2, 3):
        grain //= 2
    multiple = max(target // grain, 1)
    multiple += 1 - multiple % 2
    if multiple < 3 and 3 * grain <= max(target * 3 // 2, 3):
        multiple = 3
    return min(value, multiple * grain)


def halve(value: int, target: int) -> int:
    """`value` halved until it is at most `target` or odd: keeps odd divisors (heads, groups)."""
    while value > target and value % 2 == 0:
        value //= 2
    return value


def neighbours(inputs: Inputs, case: Case, *, most: int = 8) -> list[Case]:
    """Cases beside `case`, one constant varied at a time: n-1, n+1, 1, a prime, one past a block. Never timed.

    The largest constant that is not batch-like (the one a tail mask guards) gets all five, the others follow.
    """
    now = {**dict(inputs.constants), **dict(case.sizes)}
    names = sorted(now, key=lambda name: (name in inputs.batch_like, -now[name]))
    wanted = [(names[0], rank) for rank in range(5)] if names else []
    wanted += [(name, rank) for rank in (0, 4, 1, 3, 2) for name in names[1:]]
    found: list[Case] = []
    seen: set[tuple[str, int]] = set()
    for name, rank in wanted:
        value = _variants(now[name])[rank]
        if value >= 1 and value != now[name] and (name, value) not in seen:
            seen.add((name, value))
            sizes = {**now, name: value}
            found.append(_case(sizes, dict(inputs.constants), "neighbour", label=f"{name}={value}"))
    return found[:most]


def _variants(value: int) -> tuple[int, int, int, int, int]:
    """(n+1, n-1, one past a block, a prime below, 1)."""
    past_block = (1 << max(value.bit_length() - 2, 0)) + 1
    return value + 1, value - 1, min(past_block, value), largest_prime_below(value), 1


def largest_prime_below(value: int) -> int:
    """The largest prime < value (2 for values up to 3)."""
    candidate = max(value - 1, 2)
    while not _is_prime(candidate):
        candidate -= 1
    return candidate


def _is_prime(value: int) -> bool:
    if value < 2:
        return False
    factor = 2
    while factor * factor <= value:
        if value % factor == 0:
            return False
        factor += 1
    return True


def _case(sizes: dict[str, int], given: dict[str, int], origin: str, *, label: str = "") -> Case:
    changed = {name: value for name, value in sizes.items() if given.get(name) != value}
    name = label or ", ".join(f"{key}={value}" for key, value in changed.items()) or "as given"
    return Case(name=name, sizes=tuple(sorted(changed.items())), origin=origin, timed=False)
