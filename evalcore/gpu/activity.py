"""Owns what one timed call did on the device (Launch) and how a stream of records is cut into calls. Never times.

A recorder (CUPTI or Proton) turns a run into a Recording: one tuple of launches per timed call, the readings of the
empty marker kernel, and the launches that belong to no call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evalcore.gpu.flush import FLUSH_KERNEL, MARK_KERNEL

MAX_STRAY = 64
"""Launches outside of calls are kept up to this number; they are evidence, not data."""


class RecorderError(RuntimeError):
    """Kernel activity cannot be recorded here. The message says why, for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel, copy or set on the device."""

    name: str
    device_us: float
    count: int = 1
    """More than one where the recorder only had a sum over launches of the same name."""
    start_ns: int = 0
    """On the device's own clock; 0 where the recorder does not know."""
    registers: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    shared_bytes: int | None = None
    """Static plus dynamic shared memory of a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a recorder saw since it was last asked."""

    calls: tuple[tuple[Launch, ...], ...] = ()
    """One tuple per timed call, in order."""
    empty_us: tuple[float, ...] = ()
    """Readings of the empty marker kernel, in the same run."""
    stray: tuple[Launch, ...] = field(default=())
    """Launches outside of every call (refills, checks, or work that a candidate hides)."""


class Recorder(Protocol):
    """A source of kernel activity. One per process; warm once, then open/take/close per measurement."""

    timer: str
    """The name that stands in Samples.timer."""
    chunk: int
    """How many calls to record between two takes, so that a stopping rule can be asked; 0 takes all at once."""

    def warm(self) -> None:
        """Load the library and start what is started once. Raises RecorderError where it cannot work here."""

    def open(self) -> None:
        """Begin to record."""

    def call(self) -> contextlib.AbstractContextManager[object]:
        """Around one timed call."""

    def mark(self) -> contextlib.AbstractContextManager[object]:
        """Around the empty marker kernel."""

    def take(self) -> Recording:
        """What was recorded since the last take. All streams must be drained."""

    def close(self) -> None:
        """Stop recording, so that host-side figures carry none of the recorder's cost."""

    def end(self) -> None:
        """Let go of CUPTI for good, so that another tool of this process may have it."""


def device_us(call: Sequence[Launch]) -> float:
    """Sum of a call's kernel, copy and set times, microseconds. Gaps between kernels are not in it."""
    return sum(launch.device_us for launch in call)


def check(recording: Recording, calls: int) -> None:
    """Raise RecorderError where not exactly `calls` calls were seen, or more markers than ours: somebody forged one."""
    if len(recording.calls) != calls:
        raise RecorderError(f"{len(recording.calls)} of {calls} timed calls were seen")
    if len(recording.empty_us) > calls:
        raise RecorderError(f"{len(recording.empty_us)} markers for {calls} timed calls: some are none of ours")


def cut(records: Iterable[Launch]) -> Recording:
    """Cut single records into calls by the flush before and the marker after each call.

    The device runs them in this order: refill, flush, the call's work, (drained), marker. So records are sorted by
    their start; whatever starts after a flush and before the next marker is the call's, on whichever stream or thread.
    A second flush before the marker is none of ours: it counts as the call's own work.
    """
    calls: list[tuple[Launch, ...]] = []
    empty: list[float] = []
    stray: list[Launch] = []
    current: list[Launch] | None = None
    for record in sorted(records, key=lambda each: each.start_ns):
        if record.name == FLUSH_KERNEL and current is None:
            current = []
        elif record.name == MARK_KERNEL:
            empty.append(record.device_us)
            if current is not None:
                calls.append(tuple(current))
            current = None
        elif current is not None:
            current.append(record)
        elif len(stray) < MAX_STRAY:
            stray.append(record)
    return Recording(calls=tuple(calls), empty_us=tuple(empty), stray=tuple(stray))
