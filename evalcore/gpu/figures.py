"""Owns the timed loops: the order of refill, drain, flush, call, drain and marker for each figure. Never decides.

Pure over its collaborators (Cache, Recorder, Ring, a card's state), so that the order itself is tested without a GPU.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalcore.gpu.activity import Launch, Recorder, RecorderError, check, device_us
from evalcore.gpu.flush import Cache
from evalcore.gpu.nvml import CardState
from evalcore.gpu.ring import Ring

_now_ns = time.perf_counter_ns
"""Taken at import, before a candidate can replace it."""

Call = Callable[[list[Any]], Any]
OnOutput = Callable[[int, Any], None]


class StopRule(Protocol):
    """Says when enough samples were taken; `evalcore.stats.StopRule` is one."""

    def done(self, values_us: Sequence[float], elapsed_s: float = 0.0) -> bool:
        """True when no further sample is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a timed loop works with."""

    cache: Cache
    state: Callable[[], CardState]
    recorder: Recorder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is timed. Call numbers start at `first`, so that every figure of a measurement has inputs of its own."""

    call: Call
    ring: Ring
    n: int
    first: int = 0
    stop: StopRule | None = None
    on_output: OnOutput | None = None


@dataclass(slots=True)
class Reading:
    """Samples in the making, in the order in which they were taken."""

    timer: str
    values: list[float] = field(default_factory=list)
    discarded: list[tuple[float, str]] = field(default_factory=list)
    states: list[CardState] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    calls: list[tuple[Launch, ...]] = field(default_factory=list)
    stray: list[Launch] = field(default_factory=list)

    def add(self, value: float, state: CardState, reason: str | None = None) -> bool:
        """Keep a sample, or discard it for `reason` or because the card was disturbed; True where it was kept."""
        reason = reason or state.disturbed
        if reason is not None:
            self.discarded.append((value, reason))
            return False
        self.values.append(value)
        self.states.append(state)
        return True


def cold(bench: Bench, ring: Ring, index: int) -> list[Any]:
    """Inputs of call `index`; the device is drained and the L2 is being flushed, last, on the current stream."""
    inputs = ring.next(index)
    bench.cache.drain()
    bench.cache.reset_persisting()
    bench.cache.flush()
    return inputs


def call_figure(bench: Bench, run: Run) -> Reading:
    """Host time from the call to its completion. The flush is waited for: launch latency belongs to this figure."""
    reading = Reading(timer="host")
    for number in range(run.n + 1):
        index = run.first + number
        inputs = cold(bench, run.ring, index)
        bench.cache.drain()
        start = _now_ns()
        out = run.call(inputs)
        bench.cache.drain()
        end = _now_ns()
        bench.cache.mark()
        bench.cache.drain()
        reading.empty.append((_now_ns() - end) / 1e3)
        value = (end - start) / 1e3
        kept = reading.add(value, bench.state(), "warm-up" if number == 0 else None)
        if kept and run.on_output is not None:
            run.on_output(index, out)
    return reading


def device_figure(bench: Bench, run: Run) -> Reading:
    """Sum of the device times of what each call launched, as recorded. Raises RecorderError where calls were lost."""
    recorder = bench.recorder
    if recorder is None:
        raise RecorderError("no recorder")
    reading = Reading(timer=recorder.timer)
    recorder.open()
    try:
        done, start = 0, _now_ns()
        while done < run.n + 1:
            # the first call of all is the warm-up; it belongs to the first chunk
            size = min((recorder.chunk or run.n) + (done == 0), run.n + 1 - done)
            states = [recorded_call(bench, recorder, run, run.first + done + step) for step in range(size)]
            _take(recorder, reading, states, "warm-up" if done == 0 else None)
            done += size
            if run.stop is not None and run.stop.done(reading.values, (_now_ns() - start) / 1e9):
                break
    finally:
        recorder.close()
    return reading


def recorded_call(bench: Bench, recorder: Recorder, run: Run, index: int) -> CardState:
    """One timed call with its marker, while `recorder` is open; the card's state right after it."""
    inputs = cold(bench, run.ring, index)
    with recorder.call():
        out = run.call(inputs)
    bench.cache.drain()
    with recorder.mark():
        bench.cache.mark()
    bench.cache.drain()
    state = bench.state()
    if run.on_output is not None and index > run.first:
        run.on_output(index, out)
    return state


def _take(recorder: Recorder, reading: Reading, states: list[CardState], first: str | None) -> None:
    """Add what was recorded since the last take; the first call is discarded where `first` gives a reason."""
    recording = recorder.take()
    check(recording, len(states))
    reading.empty += recording.empty_us
    reading.stray += recording.stray
    for call, state in zip(recording.calls, states, strict=True):
        value = device_us(call)
        reason, first = first or (None if call else "no kernel activity was seen"), None
        if reading.add(value, state, reason):
            reading.calls.append(call)


def events_figure(bench: Bench, run: Run) -> Reading:
    """Time between two CUDA events around the call. Carries launch latency where the call is short; the last resort."""
    reading = Reading(timer="events")
    begin = _now_ns()
    for number in range(run.n + 1):
        index = run.first + number
        value, out = between_events(bench, run, index)
        state = bench.state()
        reading.empty.append(between_events(bench, None, index)[0])
        if not reading.add(value, state, "warm-up" if number == 0 else None):
            continue
        if run.on_output is not None:
            run.on_output(index, out)
        if run.stop is not None and run.stop.done(reading.values, (_now_ns() - begin) / 1e9):
            break
    return reading


def between_events(bench: Bench, run: Run | None, index: int) -> tuple[float, Any]:
    """(microseconds, output) of one call between two events behind a flush; of the empty marker where `run` is None."""
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    inputs = cold(bench, run.ring, index) if run is not None else []
    if run is None:
        bench.cache.flush()
    start.record()
    out = None
    if run is not None:
        out = run.call(inputs)
    else:
        bench.cache.mark()
    end.record()
    bench.cache.drain()
    return float(start.elapsed_time(end)) * 1e3, out


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection while samples are taken. None before either: with torch loaded it takes 0.1 s."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
