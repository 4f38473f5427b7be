"""Owns the interleaved timing of two loaded callables. Never says which is faster: `evalcore.stats` does.

A B B A, ...: what drifts (clocks, temperature, a neighbour) falls on both alike. Both sides of a pair get the same ring
index, so the same values at the same addresses, each behind its own flush.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evalcore.facts import Samples
from evalcore.gpu.activity import RecorderError, check, device_us
from evalcore.gpu.figures import Bench, Call, Reading, Run, between_events, quiet, recorded_call
from evalcore.gpu.nvml import CardState
from evalcore.gpu.ring import Ring
from evalcore.gpu.timing import Clock, Labels

_now_ns = time.perf_counter_ns

PAIRS = 60
"""Pairs of one comparison unless asked otherwise."""
CHUNK_PAIRS = 10
WARM_PAIRS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two callables and the inputs both are timed on."""

    a: Call
    b: Call
    ring: Ring


def order(pairs: int, first: int = 0) -> list[tuple[int, str]]:
    """(pair number, side) in the order in which they run: A B, B A, A B, ... so that every two pairs are mirrored."""
    run: list[tuple[int, str]] = []
    for pair in range(first, first + pairs):
        run += [(pair, side) for side in ("ab" if pair % 2 == 0 else "ba")]
    return run


def interleave(
    clock: Clock, sides: Sides, *, pairs: int = PAIRS, seconds: float = float("inf"), labels: Labels | None = None
) -> tuple[Samples, Samples]:
    """Time A and B side by side. values_us[i] of both belong together; a pair disturbed on one side is dropped on both.

    Stops early when `seconds` are over. The subjects are 'previous' (A) and `labels.subject` (B).
    """
    labels = labels or Labels()
    bench = clock.bench
    end = _now_ns() + int(min(seconds, 3600.0) * 1e9)
    a, b = Reading(timer=clock.timer), Reading(timer=clock.timer)
    with quiet():
        clock.ramp()
        if bench.recorder is not None:
            try:
                _recorded(bench, sides, pairs, end, a, b)
            except RecorderError as problem:
                clock.notes.append(f"{bench.recorder.timer}: {problem}")
                bench, a, b = replace(bench, recorder=None), Reading(timer="events"), Reading(timer="events")
        if bench.recorder is None:
            _by_events(bench, sides, pairs, end, a, b)
    return (
        clock.samples(a, "device", replace(labels, subject="previous")),
        clock.samples(b, "device", labels),
    )


def _recorded(bench: Bench, sides: Sides, pairs: int, end_ns: int, a: Reading, b: Reading) -> None:
    recorder = bench.recorder
    assert recorder is not None
    runs = {side: Run(call=call, ring=sides.ring, n=0) for side, call in (("a", sides.a), ("b", sides.b))}
    recorder.open()
    try:
        done = -WARM_PAIRS
        while done < pairs and (done < CHUNK_PAIRS or _now_ns() < end_ns):
            size = WARM_PAIRS if done < 0 else min(CHUNK_PAIRS if recorder.chunk else pairs, pairs - done)
            steps = order(size, done)
            states = [recorded_call(bench, recorder, runs[side], pair + WARM_PAIRS) for pair, side in steps]
            recording = recorder.take()
            check(recording, len(steps))
            a.empty += recording.empty_us
            b.empty += recording.empty_us
            if done >= 0:
                _add_pairs(steps, [device_us(call) for call in recording.calls], states, (a, b))
            done += size
    finally:
        recorder.close()


def _by_events(bench: Bench, sides: Sides, pairs: int, end_ns: int, a: Reading, b: Reading) -> None:
    runs = {side: Run(call=call, ring=sides.ring, n=0) for side, call in (("a", sides.a), ("b", sides.b))}
    for pair in range(-WARM_PAIRS, pairs):
        if pair >= CHUNK_PAIRS and _now_ns() > end_ns:
            return
        steps = order(1, pair)
        values = [between_events(bench, runs[side], number + WARM_PAIRS)[0] for number, side in steps]
        if pair >= 0:
            _add_pairs(steps, values, [bench.state()] * 2, (a, b))


def _add_pairs(
    steps: Sequence[tuple[int, str]],
    values: Sequence[float],
    states: Sequence[CardState],
    readings: tuple[Reading, Reading],
) -> None:
    """Put each pair's two values into A's and B's reading; both or neither."""
    a, b = readings
    for first in range(0, len(steps), 2):
        at = {steps[first + offset][1]: first + offset for offset in (0, 1)}
        reason = states[first].disturbed or states[first + 1].disturbed
        if reason is None and min(values[first], values[first + 1]) <= 0:
            reason = "no kernel activity was seen"
        a.add(values[at["a"]], states[at["a"]], reason)
        b.add(values[at["b"]], states[at["b"]], reason)
