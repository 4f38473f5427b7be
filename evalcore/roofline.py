"""Owns bounds: least time from counted work and measured roofs, position against it, and the name of the regime.

Never a spec sheet: `Ceilings` were measured on this card. Only the alarm for impossible times uses reported peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.facts import Ceilings
from evalcore.problem import Work
from evalcore.results import BottleneckType

LAUNCH_RATIO = 1.3
"""A call this much longer than its kernels is bound by launching (users' pain: 41 us host, 6 us device)."""
_NEAR_ROOF = 0.3
"""Below this part of both roofs, neither memory nor arithmetic explains the time: latency does."""
_ALARM_SLACK = 1.05
"""Reported clocks are rounded; a time must be 5 % past the peak to be called impossible."""
_CYCLE_US = 0.5
"""No kernel reads below this, so tiny problems cannot trip the alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least time for the work on this card, and what sets it. Microseconds."""

    memory_us: float | None
    compute_us: float | None
    lane: str | None
    """Which matrix or vector rate was used: 'float32', 'tf32', 'float16', ..."""

    @property
    def floor_us(self) -> float | None:
        """The larger of the two, or None where neither is known."""
        known = [value for value in (self.memory_us, self.compute_us) if value]
        return max(known) if known else None


def moved_bytes(work: Work, ceilings: Ceilings) -> int | None:
    """Bytes that must cross the memory bus: all reads, and writes beyond what the L2 may still hold at the end."""
    if work.bytes_read is None and work.bytes_written is None:
        return None
    return (work.bytes_read or 0) + max(0, (work.bytes_written or 0) - (ceilings.l2_bytes or 0))


def floor(work: Work, ceilings: Ceilings, *, lane: str | None = None) -> Floor:
    """Bounds from `work` over the measured roofs. `lane` names another rate than the dtype's own, e.g. 'tf32'."""
    chosen = lane or work.dtype
    rate = dict(ceilings.tflops).get(chosen)
    moved = moved_bytes(work, ceilings)
    memory_us = moved / (ceilings.copy_gb_per_s * 1e3) if moved is not None and ceilings.copy_gb_per_s else None
    compute_us = work.flops / (rate * 1e6) if work.flops and rate else None
    return Floor(memory_us=memory_us, compute_us=compute_us, lane=chosen if rate else None)


def impossible_us(work: Work, ceilings: Ceilings) -> float | None:
    """A time below this cannot be: the bytes would have passed the card's reported peak. None where unknown.

    FLOPs raise no alarm: another algorithm may do fewer (Winograd, Strassen), but bytes that decide the answer must
    be read by any.
    """
    moved = moved_bytes(work, ceilings)
    if moved is None or not ceilings.peak_gb_per_s:
        return None
    least = moved / (ceilings.peak_gb_per_s * 1e3 * _ALARM_SLACK)
    return least if least > _CYCLE_US else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """One measured time against the roofs. Ratios are not clamped here."""

    floor_us: float | None
    ratio: float | None
    """floor / time; slightly above 1 is at the roof, for the roof was measured too."""
    bandwidth: float | None
    compute: float | None
    regime: str | None


def position(
    runtime_us: float, work: Work | None, ceilings: Ceilings | None, *, call_us: float | None, lane: str | None = None
) -> Position:
    """Where a device time stands. Everything that was not counted or measured is None."""
    launch = call_us is not None and call_us >= LAUNCH_RATIO * runtime_us and call_us - runtime_us >= 3.0
    regime = "launch-bound" if launch else None
    if work is None or ceilings is None or runtime_us <= 0:
        return Position(floor_us=None, ratio=None, bandwidth=None, compute=None, regime=regime)
    bound = floor(work, ceilings, lane=lane)
    bandwidth = bound.memory_us / runtime_us if bound.memory_us is not None else None
    compute = bound.compute_us / runtime_us if bound.compute_us is not None else None
    least = impossible_us(work, ceilings)
    if least is not None and runtime_us < least:
        regime = "memory-impossible"
    elif not launch:
        regime = _regime(bandwidth, compute)
    ratio = bound.floor_us / runtime_us if bound.floor_us else None
    return Position(floor_us=bound.floor_us, ratio=ratio, bandwidth=bandwidth, compute=compute, regime=regime)


def _regime(bandwidth: float | None, compute: float | None) -> str | None:
    if bandwidth is None and compute is None:
        return None
    memory, arithmetic = bandwidth or 0.0, compute or 0.0
    if max(memory, arithmetic) < _NEAR_ROOF:
        return "latency-bound"
    return "memory-bound" if memory >= arithmetic else "compute-bound"


def bottleneck(regime: str | None) -> BottleneckType | None:
    """The given three-way type for a regime; None where nothing was measured or the time cannot be."""
    return {
        "memory-bound": BottleneckType.MEMORY_BOUND,
        "compute-bound": BottleneckType.COMPUTE_BOUND,
        "latency-bound": BottleneckType.LATENCY_BOUND,
        "launch-bound": BottleneckType.LATENCY_BOUND,
    }.get(regime or "")


def roof_words(ratio: float | None, regime: str | None) -> str | None:
    """'at the roof', '54 % of the roof', or None. What cannot be is not called fast."""
    if ratio is None:
        return None
    if regime == "memory-impossible":
        return "faster than this card's memory can be"
    if ratio >= 0.97:
        return "at the roof"
    return f"{100 * ratio:.0f} % of the roof"


def strongest(opponents: Sequence[dict[str, object]]) -> dict[str, object] | None:
    """The fastest admissible opponent with a time, or None."""
    fair = [each for each in opponents if each.get("admissible") and isinstance(each.get("runtime_us"), (int, float))]
    return min(fair, key=lambda each: float(str(each["runtime_us"])), default=None)
