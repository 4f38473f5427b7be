"""Owns CriticDiagnosis and the rule-based critic that needs no model. Never invents a number.

Each rule looks only at what was measured, counted or labelled an estimate; where nothing was, there is no diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evalcore.jobs import Measurement
from evalcore.results import BottleneckType, ProfileData


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticDiagnosis:
    """Why the kernel is not faster, and what to try. The first two fields are copied from the profile."""

    bottleneck_type: BottleneckType | None
    roofline_position: float | None
    specific_issue: str
    recommendation: str
    estimated_headroom: float | None
    """Largest speedup that the measured roof leaves (an estimate: floor over time), or None."""
    confidence: float
    """0..1."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the rules may look at."""

    measurement: Measurement
    profile: ProfileData

    @property
    def regime(self) -> str | None:
        """The judge's name for where the time goes."""
        return self.measurement.regime

    def figure(self, name: str) -> float | None:
        """One of the three named times in microseconds, or None."""
        value = (self.measurement.timing or {}).get(name)
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def spilled_bytes(self) -> int:
        """Most bytes that any of the launched kernels spilled."""
        return max((kernel.spill_bytes or 0 for kernel in self.measurement.kernels), default=0)


Rule = Callable[[Evidence], tuple[str, str, float] | None]

STALL_ADVICE = {
    "long_scoreboard": "loads from memory are waited for: try wider loads, more warps, or more stages",
    "short_scoreboard": "shared memory is waited for: look for bank conflicts",
    "barrier": "warps wait at barriers: fewer or smaller synchronised steps",
    "math_pipe_throttle": "the arithmetic pipes are full: use tensor cores or do less arithmetic",
    "mio_throttle": "the shared-memory and special-function queue is full: fewer, wider accesses",
    "lg_throttle": "the load/store queue is full: fewer, wider global accesses",
    "wait": "fixed-latency instructions follow each other: more independent work per thread",
    "not_selected": "enough warps are ready: the scheduler is not the limit",
}
"""Plain words for warp stall reasons, after NVIDIA's documentation of them."""


def launch_bound(evidence: Evidence) -> tuple[str, str, float] | None:
    """The host takes longer than the card."""
    call, device = evidence.figure("call_us"), evidence.figure("device_us")
    if evidence.regime != "launch-bound" or call is None or device is None:
        return None
    issue = f"launch-bound: host {call:.0f} us, device {device:.1f} us"
    return issue, "capture the calls in a CUDA graph or do more in one launch; the kernel itself is not the limit", 0.9


def spilling(evidence: Evidence) -> tuple[str, str, float] | None:
    """Registers do not suffice."""
    if not evidence.spilled_bytes:
        return None
    issue = f"{evidence.spilled_bytes} bytes of registers spill to local memory"
    return issue, "a smaller tile, or more warps for the same tile", 0.8


def memory_bound(evidence: Evidence) -> tuple[str, str, float] | None:
    """Limited by bytes moved."""
    share = evidence.profile.bandwidth_utilization
    if evidence.profile.bottleneck_type is not BottleneckType.MEMORY_BOUND or share is None:
        return None
    issue = f"memory-bound, {share:.0%} of this card's measured copy rate"
    if share >= 0.9:
        return issue, "it is at the roof for this algorithm: move fewer bytes (fuse, or a smaller dtype)", 0.9
    advice = _stall_advice(evidence.profile) or "try wider loads, another block size, or more warps in flight"
    return issue, advice, 0.7


def compute_bound(evidence: Evidence) -> tuple[str, str, float] | None:
    """Limited by arithmetic."""
    share = evidence.profile.compute_utilization
    if evidence.profile.bottleneck_type is not BottleneckType.COMPUTE_BOUND or share is None:
        return None
    issue = f"compute-bound, {share:.0%} of this card's measured rate for the dtype"
    advice = (
        _stall_advice(evidence.profile) or "try a larger tile, more stages, or tensor cores where they are not used"
    )
    return issue, advice, 0.7


def latency_bound(evidence: Evidence) -> tuple[str, str, float] | None:
    """Neither bytes nor arithmetic: too little work in flight."""
    if evidence.profile.bottleneck_type is not BottleneckType.LATENCY_BOUND:
        return None
    occupancy = evidence.profile.occupancy
    share = f", occupancy {occupancy:.0%}" if occupancy is not None else ""
    return (
        f"latency-bound{share}",
        "more programs or more independent loads per program, so that the card is filled",
        0.6,
    )


RULES: tuple[Rule, ...] = (launch_bound, spilling, memory_bound, compute_bound, latency_bound)
"""In order: the first that speaks is the diagnosis."""


def _stall_advice(profile: ProfileData) -> str | None:
    if not profile.top_stalls:
        return None
    name, share = profile.top_stalls[0]
    advice = STALL_ADVICE.get(name)
    return f"{share:.0%} of stalls are {name.replace('_', '-')}: {advice}" if advice else None


def diagnose(measurement: Measurement) -> CriticDiagnosis | None:
    """The rule-based critic: one sentence and one recommendation, or None where nothing was measured."""
    profile = measurement.result.profile
    if profile is None or not measurement.result.correct:
        return None
    evidence = Evidence(measurement, profile)
    for rule in RULES:
        said = rule(evidence)
        if said is not None:
            issue, recommendation, confidence = said
            return CriticDiagnosis(
                bottleneck_type=profile.bottleneck_type,
                roofline_position=profile.roofline_position,
                specific_issue=issue,
                recommendation=recommendation,
                estimated_headroom=_headroom(measurement),
                confidence=confidence,
            )
    return None


def _headroom(measurement: Measurement) -> float | None:
    time_us, floor_us = measurement.result.runtime_us, measurement.floor_us
    if not time_us or not floor_us:
        return None
    return max(1.0, time_us / floor_us)
