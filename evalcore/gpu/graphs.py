"""Owns the graph-replay figure: a CUDA graph of n x [flush; call] less one of n x [flush]. Never decides what it means.

Cold caches and no launch latency. Inputs stand still while a graph is replayed (their addresses are captured), so its
outputs are not what the judge compares.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evalcore.gpu.flush import Cache
from evalcore.gpu.ring import SLOTS, Ring

MAX_CALLS = 10
LEAST_SHARE = 0.5
"""A graph that takes less than this part of the device figure has not captured the call's work."""
MOST_DISCARDED = 0.25
"""Where more of the differences than this are not positive, the others are positive by chance."""
BUDGET_US = 20_000.0
"""Device time that one replay may take: long calls are captured fewer times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReading:
    """Per-call times of each replay, microseconds; `reason` says why there are none."""

    values_us: tuple[float, ...] = ()
    empty_us: float | None = None
    discarded: tuple[tuple[float, str], ...] = ()
    reason: str | None = None


def calls_for(expected_us: float | None) -> int:
    """How many calls one graph holds, so that a replay stays within the budget."""
    if not expected_us or expected_us <= 0:
        return MAX_CALLS
    return max(1, min(MAX_CALLS, int(BUDGET_US / expected_us)))


def differences(
    full_us: list[float], flush_us: list[float], calls: int, expected_us: float | None = None
) -> GraphReading:
    """Per-call times from alternating replays; a pair whose difference is not positive is discarded.

    A reading far under the device figure means that the call launched its work on a stream that was not captured.
    """
    kept: list[float] = []
    discarded: list[tuple[float, str]] = []
    for full, flush in zip(full_us, flush_us, strict=True):
        value = (full - flush) / calls
        if value > 0:
            kept.append(value)
        else:
            discarded.append((value, "the flush alone took longer than flush and call"))
    reason = None if kept else "no replay took longer than its flushes"
    if len(discarded) > MOST_DISCARDED * len(full_us):
        discarded += [(value, "too few replays took longer than their flushes") for value in kept]
        kept, reason = [], reason or "the call is too short for this: its replays drown in those of the flush"
    if kept and expected_us and sorted(kept)[len(kept) // 2] < LEAST_SHARE * expected_us:
        discarded += [(value, "the graph misses work that the call does") for value in kept]
        kept, reason = [], "the call launches work on a stream that a graph does not capture"
    return GraphReading(values_us=tuple(kept), discarded=tuple(discarded), reason=reason)


def _capture(body: Callable[[], None]) -> Any:
    import torch

    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    # not `with torch.cuda.graph(...)`: that one collects garbage and empties the allocator's cache first
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            body()
        finally:
            graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph


def _replay_us(graph: Any, cache: Cache) -> float:
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    cache.drain()
    start.record()
    graph.replay()
    end.record()
    cache.drain()
    return float(start.elapsed_time(end)) * 1e3


def measure_graph(
    call: Callable[[list[Any]], Any], ring: Ring, cache: Cache, *, replays: int, expected_us: float | None = None
) -> GraphReading:
    """Capture, replay `replays` times, subtract. Needs a drained device; leaves it drained.

    A candidate that waits for the device, allocates by hand or chooses its path by a value cannot be captured; the
    reading then has a reason and no values.
    """
    calls = calls_for(expected_us)
    inputs = [ring.next(index) for index in range(min(SLOTS, calls))]
    cache.drain()
    keep: list[Any] = []

    def body() -> None:
        for number in range(calls):
            cache.flush()
            keep.append(call(inputs[number % len(inputs)]))
            keep[:-1] = []

    def flushes() -> None:
        for _ in range(calls):
            cache.flush()

    def marks() -> None:
        for _ in range(calls):
            cache.flush()
            cache.mark()

    try:
        full, flush, mark = _capture(body), _capture(flushes), _capture(marks)
    except RuntimeError as problem:  # torch's own word for every fault of a capture
        with contextlib.suppress(RuntimeError):
            cache.drain()
        first = (str(problem).strip().splitlines() or ["unknown fault"])[0]
        return GraphReading(reason=f"cannot be captured into a CUDA graph: {first}")
    for graph in (full, flush, mark):
        _replay_us(graph, cache)
    rows = [[_replay_us(graph, cache) for graph in (full, flush, mark)] for _ in range(replays)]
    reading = differences([row[0] for row in rows], [row[1] for row in rows], calls, expected_us)
    empty = differences([row[2] for row in rows], [row[1] for row in rows], calls).values_us
    keep.clear()
    return GraphReading(
        values_us=reading.values_us,
        discarded=reading.discarded,
        reason=reading.reason,
        empty_us=sorted(empty)[len(empty) // 2] if empty else None,
    )
