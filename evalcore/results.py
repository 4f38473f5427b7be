"""Owns the verdict types whose fields are given: EvalResult and ProfileData. Never grows other fields.

What these two lack goes into the record around them (`evalcore.jobs.Measurement`), never into them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Status(str, Enum):
    """The four verdicts a judged text can have."""

    CORRECT = "correct"
    COMPILE_ERROR = "compile_error"
    INCORRECT = "incorrect"
    ERROR = "error"


class BottleneckType(str, Enum):
    """What a kernel's time is bound by."""

    COMPUTE_BOUND = "compute_bound"
    MEMORY_BOUND = "memory_bound"
    LATENCY_BOUND = "latency_bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileData:
    """Why a kernel is as fast as it is. A value that was not measured, counted or estimated is None."""

    bottleneck_type: BottleneckType | None = None
    """The resource that limits the kernel, or None where nothing was measured."""
    roofline_position: float | None = None
    """Floor time over measured time, 0..1 (1 is at this card's measured roof)."""
    cache_efficiency: float | None = None
    """L2 hit rate, 0..1."""
    occupancy: float | None = None
    """Achieved (or, where raw_metrics says so, theoretical) active warps over the most the SM can hold, 0..1."""
    bandwidth_utilization: float | None = None
    """Counted bytes per second over this card's measured copy rate, 0..1."""
    compute_utilization: float | None = None
    """Counted FLOP per second over this card's measured matrix or vector rate for the dtype, 0..1."""
    top_stalls: tuple[tuple[str, float], ...] = ()
    """(stall reason, share of samples 0..1), largest first; empty where stalls were not sampled."""
    raw_metrics: dict[str, Any] = field(default_factory=dict)
    """Anything else, and for each field above its origin: 'measured', 'counted' or 'estimated', by which tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """The verdict on one text. Made by the four constructors below, so that impossible mixtures cannot be written."""

    status: Status
    correct: bool
    speedup: float | None = None
    """ref_runtime_us / runtime_us, or None where either was not measured."""
    runtime_us: float | None = None
    """Device time of the kernel, median, microseconds."""
    ref_runtime_us: float | None = None
    """Device time of the reference, median, microseconds, by the same timer."""
    profile: ProfileData | None = None
    error: str | None = None
    """What is wrong, in one readable paragraph; None when correct."""


def correct(
    *, runtime_us: float | None = None, ref_runtime_us: float | None = None, profile: ProfileData | None = None
) -> EvalResult:
    """A text whose every judged case was right. Times are None where nothing was timed."""
    speedup = ref_runtime_us / runtime_us if runtime_us and ref_runtime_us else None
    return EvalResult(
        status=Status.CORRECT,
        correct=True,
        speedup=speedup,
        runtime_us=runtime_us,
        ref_runtime_us=ref_runtime_us,
        profile=profile,
    )


def incorrect(error: str) -> EvalResult:
    """A text that ran and gave a wrong answer. It has no speed: speed without correctness is nothing."""
    return EvalResult(status=Status.INCORRECT, correct=False, error=error)


def compile_error(error: str) -> EvalResult:
    """A text that the compiler (Triton, NVRTC, nvcc or Python's parser) refused."""
    return EvalResult(status=Status.COMPILE_ERROR, correct=False, error=error)


def error(message: str) -> EvalResult:
    """A text that could not be judged to the end: it raised, crashed, hung, cheated, or cannot be judged here."""
    return EvalResult(status=Status.ERROR, correct=False, error=message)
