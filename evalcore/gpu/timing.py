"""Owns the clock of a case: three named figures of one call, cold, every sample kept. Never decides what is faster.

'device' is the sum of what a call ran on the card, 'call' the host's time to completion, 'graph' a CUDA-graph replay.
How a sample is taken stands in `evalcore.gpu.figures`; here the parts are chosen, warmed and put together.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import Any

from evalcore.facts import Samples
from evalcore.gpu.activity import Launch, Recorder, RecorderError
from evalcore.gpu.cpus import fix_threads
from evalcore.gpu.cupti import CuptiRecorder
from evalcore.gpu.figures import (
    Bench,
    Call,
    OnOutput,
    Reading,
    Run,
    StopRule,
    call_figure,
    cold,
    device_figure,
    events_figure,
    quiet,
)
from evalcore.gpu.flush import L2Flush
from evalcore.gpu.graphs import measure_graph
from evalcore.gpu.nvml import Card, CardState, Nvml, family
from evalcore.gpu.proton import make_proton
from evalcore.gpu.ring import Ring

_now_ns = time.perf_counter_ns

FIGURES = ("device", "call", "graph")
RECORDERS = ("cupti", "proton")
"""In the order in which they are tried; after them events."""

CALL_SAMPLES = 30
GRAPH_REPLAYS = 20
RAMP_S = 0.02
"""How long the card is kept busy before the first sample, so that its clocks are up."""
UP_SHARE = 0.95
"""Clocks count as up from this part of the card's highest."""
CPU_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOptions:
    """How a clock is made."""

    recorders: tuple[str, ...] = RECORDERS
    """() takes events only."""
    scratch: str = ""
    """A folder that may be written; Proton's files go there. '' takes the system's."""
    flush_bytes: int | None = None
    """None flushes 2x the L2."""
    cpu_threads: int | None = None
    """CPUs to pin to and torch's threads; None takes CPU_THREADS, or what the process may use where that is less."""
    own_root: int | None = None
    """Process whose descendants (referee, spares) are no strangers on the card; None takes this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What is timed, for the samples' own fields, and which figures are wanted."""

    subject: str = "candidate"
    case: str = ""
    figures: tuple[str, ...] = FIGURES


class Clock:
    """The timer of one process and one device. `warm` once, then `measure` as often as wanted."""

    def __init__(self, device: str, options: ClockOptions | None = None) -> None:
        self.device = device
        self.options = options or ClockOptions()
        self.notes: list[str] = []
        """Why a recorder was not used, for the log and the row."""
        self.launches: list[tuple[Launch, ...]] = []
        """What each timed call of the latest device figure launched; `evalcore.gpu.kernel_profile` reads it."""
        self.stray: list[Launch] = []
        """Launches outside of every call in the latest device figure."""
        self.cpu_threads = 0
        self._bench: Bench | None = None
        self._card: Card | None = None
        self._full_mhz: int | None = None

    @property
    def bench(self) -> Bench:
        """Flush, marker, recorder and card of this clock."""
        if self._bench is None:
            raise RuntimeError("the clock was not warmed")
        return self._bench

    @property
    def timer(self) -> str:
        """The recorder's name, or 'events'."""
        recorder = self.bench.recorder
        return recorder.timer if recorder is not None else "events"

    def warm(self) -> None:
        """Load flush and marker, start the recorder once, find the card in NVML, fix the number of CPU threads."""
        if self._bench is not None:
            return
        import torch

        torch.cuda.set_device(self.device)
        facts = torch.cuda.get_device_properties(self.device)
        self._card = Nvml().card_by_uuid(str(getattr(facts, "uuid", "")))
        self._full_mhz = self._card.facts().max_sm_clock_mhz if self._card is not None else None
        near = self._card.cpus() if self._card is not None else frozenset()
        self.cpu_threads = fix_threads(self.options.cpu_threads or CPU_THREADS, near)
        bench = Bench(cache=L2Flush(self.device, flush_bytes=self.options.flush_bytes), state=self.state)
        # both kernels are loaded by their first launch, which must not fall into a capture
        bench.cache.flush()
        bench.cache.mark()
        bench.cache.drain()
        self._bench = replace(bench, recorder=self._choose(bench))

    def _choose(self, bench: Bench) -> Recorder | None:
        for name in self.options.recorders:
            try:
                recorder: Recorder = CuptiRecorder() if name == "cupti" else make_proton(self.options.scratch)
                recorder.warm()
                try_out(replace(bench, recorder=recorder), self.device)
            except (RecorderError, OSError, AttributeError) as problem:
                self.notes.append(f"{name}: {problem}")
                continue
            return recorder
        return None

    def retire(self) -> None:
        """Let go of the recorder; device figures come from events from now on. For stall sampling in this process."""
        if self._bench is not None and self._bench.recorder is not None:
            self._bench.recorder.end()
            self._bench = replace(self._bench, recorder=None)

    def ramp(self, seconds: float = RAMP_S) -> None:
        """Keep the card busy until its clocks are up, for `seconds` at most."""
        end = _now_ns() + int(seconds * 1e9)
        while _now_ns() < end:
            for _ in range(16):
                self.bench.cache.flush()
            self.bench.cache.drain()
            if self._full_mhz and (self.state().sm_clock_mhz or 0) >= UP_SHARE * self._full_mhz:
                return

    def state(self) -> CardState:
        """Clock and throttle reasons now."""
        return self._card.state() if self._card is not None else CardState()

    def _foreign(self) -> int | None:
        return self._card.foreign_processes(family(self.options.own_root)) if self._card is not None else None

    def cold(self, ring: Ring, index: int) -> list[Any]:
        """Inputs of call `index`, drained, the flush being the last thing on the current stream."""
        return cold(self.bench, ring, index)

    def measure(
        self,
        call: Call,
        ring: Ring,
        *,
        n: int,
        stop: StopRule | None = None,
        on_output: OnOutput | None = None,
        labels: Labels | None = None,
    ) -> list[Samples]:
        """Time `call` on the ring's inputs, at most `n` times for the device figure. One Samples per wanted figure.

        A figure that could not be had stays in the list with no values and its reason in `discarded`. Faults of the
        call itself are raised as they are. `on_output(index, output)` gets the outputs of the call and device figures
        but the warm-up's, with the index that the ring was asked for.
        """
        labels = labels or Labels()
        made: dict[str, Samples] = {}
        run = Run(call=call, ring=ring, n=n, stop=stop, on_output=on_output)
        with quiet():
            self.ramp()
            if "call" in labels.figures:
                few = replace(run, n=min(n, CALL_SAMPLES))
                made["call"] = self.samples(call_figure(self.bench, few), "call", labels)
                run = replace(run, first=few.n + 1)
            if "device" in labels.figures:
                made["device"] = self.samples(self._device(run), "device", labels)
            if "graph" in labels.figures:
                made["graph"] = self._graph(run, made.get("device"), labels)
        if "device" in made and "graph" in made:
            made["device"] = better(made["device"], made["graph"])
        return [made[figure] for figure in FIGURES if figure in made]

    def _device(self, run: Run) -> Reading:
        self.launches, self.stray = [], []
        recorder = self.bench.recorder
        if recorder is not None:
            try:
                reading = device_figure(self.bench, run)
                self.launches, self.stray = reading.calls, reading.stray
                return reading
            except RecorderError as problem:
                self.notes.append(f"{recorder.timer}: {problem}")
        return events_figure(self.bench, run)

    def _graph(self, run: Run, device: Samples | None, labels: Labels) -> Samples:
        expected = _expected_us(device)
        cache = self.bench.cache
        got = measure_graph(run.call, run.ring, cache, replays=min(run.n, GRAPH_REPLAYS), expected_us=expected)
        reading = Reading(timer="graph", discarded=list(got.discarded))
        if got.reason is not None:
            reading.discarded.append((0.0, got.reason))
        if got.empty_us is not None:
            reading.empty.append(got.empty_us)
        state = self.state()
        for value in got.values_us:
            reading.add(value, state)
        return self.samples(reading, "graph", labels)

    def samples(self, reading: Reading, figure: str, labels: Labels) -> Samples:
        """A reading into the record that travels, with card, threads and the empty kernel's reading."""
        return Samples(
            subject=labels.subject,
            figure=figure,
            timer=reading.timer,
            values_us=tuple(reading.values),
            case=labels.case,
            discarded=tuple(reading.discarded),
            sm_clock_mhz=tuple(state.sm_clock_mhz for state in reading.states if state.sm_clock_mhz is not None),
            throttle=tuple(sorted({word for state in reading.states for word in state.throttle})),
            foreign_processes=self._foreign(),
            cpu_threads=self.cpu_threads or None,
            empty_kernel_us=statistics.median(reading.empty) if reading.empty else None,
        )


def _expected_us(device: Samples | None) -> float | None:
    """What a graph replay should take about, from the device figure; without what events add to a short call."""
    if device is None or not device.values_us:
        return None
    own = device.empty_kernel_us or 0.0 if device.timer == "events" else 0.0
    return max(statistics.median(device.values_us) - own, 0.0)


def better(device: Samples, graph: Samples) -> Samples:
    """The device figure; where only events gave it and a graph was replayed, that one's: it carries no launch."""
    if device.timer != "events" or not graph.values_us:
        return device
    return replace(graph, figure="device", discarded=graph.discarded + device.discarded)


def try_out(bench: Bench, device: str) -> None:
    """Record one tiny known kernel; raises RecorderError where the recorder does not see exactly that one."""
    import torch

    tensor = torch.zeros(1024, device=device)

    class _One:
        def next(self, index: int) -> list[Any]:
            return [tensor]

    reading = device_figure(bench, Run(call=lambda inputs: inputs[0].add_(1.0), ring=_One(), n=1))
    seen = [len(call) for call in reading.calls]
    if seen != [1] or not 0.1 < reading.values[0] < 1000.0 or not reading.empty:
        raise RecorderError(f"a single small kernel reads as {seen} launches, {reading.values} us")
