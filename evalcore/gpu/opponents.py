"""Owns the opponents: torch itself, eager and compiled, timed like the candidate. Never lets one in unchecked.

Each runs in a fresh process: a process that has compiled before can fall back to eager without a word. A row whose
compile broke its graph, hit the recompile limit, fell back or is out of tolerance is void: shown with its reason, never
beaten for credit.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evalcore.facts import ErrorStats, Samples
from evalcore.gpu.figures import Call
from evalcore.gpu.precision import lane, precision_flags
from evalcore.gpu.ring import Ring
from evalcore.gpu.timing import Clock, Labels
from evalcore.stats import StopRule, summarise

MODES: dict[str, str | None] = {
    "eager": None,
    "torch.compile default": "default",
    "torch.compile reduce-overhead": "reduce-overhead",
    "torch.compile max-autotune": "max-autotune",
}
"""Name of each opponent and torch.compile's mode for it."""

OPPONENTS = tuple(MODES)

WARM_CALLS = 5
"""CUDA-graph trees record on the third call or later; none of these is timed."""
TIMED_CALLS = 50
CHECKED_EVERY = 10
"""After the first two, one output in so many is compared: a float64 key can take longer than what it checks."""

Compare = Callable[[int, Any], Sequence[ErrorStats]]
"""(ring index, output) -> error per output, under the tolerance that the candidate is held to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpponentOptions:
    """How an opponent is measured."""

    n: int = TIMED_CALLS
    lane: str = "as given"
    case: str = ""
    stop: StopRule | None = None


@dataclass(slots=True)
class _Counts:
    """What torch's compiler did so far."""

    graphs: int = 0
    breaks: int = 0
    first_break: str = ""
    cudagraph_skips: int = 0


def _counts() -> _Counts:
    from torch._dynamo.utils import counters

    breaks = counters["graph_break"]
    return _Counts(
        graphs=int(counters["stats"]["unique_graphs"]),
        breaks=int(sum(breaks.values())),
        first_break=str(next(iter(breaks), "")).strip().splitlines()[0] if breaks else "",
        cudagraph_skips=int(counters["inductor"]["cudagraph_skips"]),
    )


@contextlib.contextmanager
def _strict() -> Iterator[None]:
    """Let the compiler's quiet ways out be errors, where this torch has the switch for it."""
    import torch._dynamo

    config = torch._dynamo.config
    wanted = {"suppress_errors": False, "fail_on_recompile_limit_hit": True, "fail_on_cache_limit_hit": True}
    was = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    for name in was:
        setattr(config, name, wanted[name])
    try:
        yield
    finally:
        for name, value in was.items():
            setattr(config, name, value)


def _faults() -> tuple[type[Exception], ...]:
    """What torch raises for a program that it cannot compile or run."""
    import torch._dynamo.exc

    names = ("FailOnRecompileLimitHit", "FailOnCacheLimitHit")
    limits = [getattr(torch._dynamo.exc, name) for name in names if hasattr(torch._dynamo.exc, name)]
    return (RuntimeError, ValueError, TypeError, NotImplementedError, AssertionError, *limits)


def void_reason(after_warm: _Counts, after_all: _Counts) -> str | None:
    """Why a compiled opponent does not count, or None."""
    if after_warm.graphs == 0:
        return "nothing was compiled: it ran eagerly"
    if after_all.breaks:
        return f"{after_all.breaks} graph break(s), so part of it ran eagerly: {after_all.first_break}"
    if after_all.graphs > after_warm.graphs:
        return f"recompiled {after_all.graphs - after_warm.graphs} time(s) while it was timed"
    return None


def out_of_tolerance(stats: Iterable[ErrorStats]) -> str | None:
    """The first output that is not right, in words, or None."""
    for each in stats:
        if each.problem:
            return f"{each.output}: {each.problem}"
        if each.nonfinite_mismatch:
            return f"{each.output}: {each.nonfinite_mismatch} elements are NaN or infinite on one side only"
        if each.out_of_tolerance:
            return f"{each.output}: {each.out_of_tolerance} of {each.elements} elements out of tolerance"
    return None


class _Checked:
    """Keeps the worst error over some of the outputs that the clock hands over."""

    def __init__(self, compare: Compare) -> None:
        self._compare = compare
        self._seen = 0
        self.worst: float | None = None
        self.fault: str | None = None

    def __call__(self, index: int, output: Any) -> None:
        self._seen += 1
        if self._seen > 2 and self._seen % CHECKED_EVERY:
            return
        stats = self._compare(index, output)
        errors = [each.max_abs_error for each in stats if each.max_abs_error is not None]
        if errors:
            self.worst = max([*errors, self.worst if self.worst is not None else 0.0])
        self.fault = self.fault or out_of_tolerance(stats)


def measure_opponent(
    name: str, call: Call, ring: Ring, clock: Clock, compare: Compare, options: OpponentOptions | None = None
) -> dict[str, Any]:
    """One row: time, error and whether it counts. To be called in a process that has compiled nothing yet.

    `call` is the reference's own callable; `name` is one of OPPONENTS. What torch raises becomes the row's reason.
    """
    options = options or OpponentOptions()
    timed = _Timed(call=call, ring=ring, clock=clock, compare=compare, options=options)
    row: dict[str, Any] = {"name": name, "lane": options.lane, "admissible": False, "runtime_us": None}
    row |= {"call_us": None, "error": None, "reason": None, "build_s": None}
    mode = MODES[name]
    with lane(options.lane), _strict() if mode is not None else contextlib.nullcontext():
        row["flags"] = precision_flags()
        try:
            _fill(row, mode, timed)
        except _faults() as problem:
            first = (str(problem).strip().splitlines() or ["no message"])[0]
            row["reason"] = f"{type(problem).__name__}: {first}"
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """The parts of one row's measurement."""

    call: Call
    ring: Ring
    clock: Clock
    compare: Compare
    options: OpponentOptions


def _fill(row: dict[str, Any], mode: str | None, timed: _Timed) -> None:
    target = timed.call if mode is None else _compiled(timed.call, mode)
    start = time.perf_counter()
    for index in range(WARM_CALLS):
        target(timed.ring.next(index))
        timed.clock.bench.cache.drain()
        if index == 0:
            row["build_s"] = round(time.perf_counter() - start, 3)
    before = _counts() if mode is not None else _Counts()
    checked = _Checked(timed.compare)
    labels = Labels(subject=row["name"], case=timed.options.case, figures=("device", "call"))
    n, stop = timed.options.n, timed.options.stop
    made = timed.clock.measure(target, timed.ring, n=n, stop=stop, on_output=checked, labels=labels)
    row["error"] = checked.worst
    if mode is not None:
        after = _counts()
        row |= {"graph_breaks": after.breaks, "graphs": after.graphs, "cudagraph_skips": after.cudagraph_skips}
        row["reason"] = void_reason(before, after)
    row["reason"] = row["reason"] or checked.fault
    _times(row, made)
    row["admissible"] = row["reason"] is None and row["runtime_us"] is not None


def _compiled(call: Call, mode: str) -> Call:
    import torch

    compiled = torch.compile(call, mode=mode, dynamic=False)
    if mode != "reduce-overhead" and mode != "max-autotune":
        return compiled  # type: ignore[no-any-return]

    def stepped(inputs: list[Any]) -> Any:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(inputs)

    return stepped


def _times(row: dict[str, Any], made: Sequence[Samples]) -> None:
    for samples in made:
        summary = summarise(samples.values_us)
        if samples.figure == "call":
            row["call_us"] = summary.median_us if summary else None
            continue
        row |= {"timer": samples.timer, "n": len(samples.values_us)}
        if summary is None:
            row["reason"] = row["reason"] or (samples.discarded[-1][1] if samples.discarded else "no samples")
            continue
        row |= {"runtime_us": summary.median_us, "interval_us": [summary.low_us, summary.high_us]}


def measure_opponents(
    run_fresh: Callable[[str], dict[str, Any] | None], names: Iterable[str] = OPPONENTS
) -> list[dict[str, Any]]:
    """All rows, one after the other. `run_fresh(name)` runs `measure_opponent` in a new process and returns its row, or
    None where that process died or ran out of time; such an opponent is void too."""
    rows = []
    for name in names:
        row = run_fresh(name)
        if row is None:
            row = {"name": name, "admissible": False, "runtime_us": None, "error": None}
            row["reason"] = "its process ended without a result"
        rows.append(row)
    return rows


def strongest(rows: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The fastest admissible row of the lane as given, by device time: the one that the headline compares with."""
    fit = [row for row in rows if row.get("admissible") and row.get("lane", "as given") == "as given"]
    return min(fit, key=lambda row: row["runtime_us"], default=None)
