"""Owns what is asked of a worker (EvalJob) and what comes back (Measurement or Refusal). Never does IO."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from evalcore.facts import KernelFacts, Samples
from evalcore.problem import Problem
from evalcore.results import EvalResult


class Mode(str, Enum):
    """How much is measured."""

    FAST = "fast"
    """5 correctness trials, 10 timing trials."""
    THOROUGH = "thorough"
    """5 and 100, neighbour shapes, probes, stalls, the outside clock."""


class Cause(str, Enum):
    """Why a job exists."""

    SAVE = "save"
    COMMAND = "command"
    PAUSE = "pause"
    WATCH = "watch"
    SEARCH = "search"


class Reason(str, Enum):
    """Refines status error or incorrect."""

    TIMEOUT = "timeout"
    CRASH = "crash"
    OUT_OF_MEMORY = "out_of_memory"
    CHEATING = "cheating"
    NOT_JUDGEABLE = "not_judgeable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time and memory limits of one case. Seconds are wall clock."""

    build_s: float = 120.0
    run_s: float = 60.0
    memory_bytes: int = 16 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalJob:
    """One evaluation of one text."""

    job_id: str
    cause: Cause
    mode: Mode
    problem: Problem
    kernel: str
    """The kernel (or entry) that the verdict stands beside."""
    kernel_sha: str
    """sha256 of the candidate file's text."""
    device: str = "auto"
    """'auto', 'cpu' or 'cuda:N'."""
    case: str | None = None
    """Name of the case that stands on the line; None for the first."""
    trusted: bool = True
    """False for a model's text: the screen is then a gate and the outside clock always runs."""
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    """Base seed; None draws a fresh one that the row records."""
    compare_with: str | None = None
    """Full text of an earlier version of the candidate's file for an interleaved A/B, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A remark that a person should see beside a verdict."""

    code: str
    """'lower-precision', 'no-custom-kernel', 'degenerate-problem', 'reduced-sizes', 'interpreted', 'bf16-as-fp32', ..."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A message at a place in a file. Lines and columns from 1; columns count Unicode code points."""

    path: str
    line: int
    column: int
    severity: str
    """'error' | 'warning' | 'information' | 'hint'."""
    code: str
    message: str
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """The verdict on one case, over its trials."""

    name: str
    sizes: dict[str, int]
    origin: str
    status: str
    """'right' | 'wrong' | 'error' | 'skipped'."""
    trials: int
    trials_right: int
    seeds: tuple[int, ...] = ()
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    out_ratio: float | None = None
    """Elements out of tolerance over all elements, worst trial, 0..1."""
    worst_index: tuple[int, ...] | None = None
    region: str | None = None
    atol: float | None = None
    rtol: float | None = None
    tolerance_origin: str | None = None
    reference_error: float | None = None
    runtime_us: float | None = None
    ref_runtime_us: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a measurement was taken. A number never travels without it."""

    card: str | None
    """None on a machine without a GPU."""
    uuid: str | None
    driver: str | None
    torch: str | None
    triton: str | None
    python: str
    interpreted: bool
    evaluator_sha: str
    evaluator_md5: str
    isolation: tuple[str, ...] = ()
    """Layers that were really applied: 'process', 'rlimits', 'netns', 'landlock', 'no-secrets', ..."""
    flags: dict[str, Any] = field(default_factory=dict)
    """TF32 and other precision flags, CUDA_VISIBLE_DEVICES, TRITON_* that were set, CPU threads."""
    host: str = ""
    hostile_clock: str = ""
    """Which clock the time rests on: 'inside' (the case's), 'bounded' (checked from outside)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Everything known about one judged text: one ledger row, and the object that `eval --json` prints."""

    job_id: str
    cause: Cause
    mode: Mode
    file: str
    kernel: str
    kernel_sha: str
    problem_id: str
    problem_sha: str
    format: str
    result: EvalResult
    reason: Reason | None
    environment: Environment
    flags: tuple[Flag, ...] = ()
    cases: tuple[CaseReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    samples: tuple[Samples, ...] = ()
    kernels: tuple[KernelFacts, ...] = ()
    timing: dict[str, Any] | None = None
    """{"case", "device_us", "call_us", "graph_us", "n", "interval_us": [lo, hi], "timer", "cold", "cpu_threads"}."""
    regime: str | None = None
    """'launch-bound' | 'memory-bound' | 'compute-bound' | 'latency-bound' | 'memory-impossible'."""
    floor_us: float | None = None
    """Least time by counted work over measured ceilings."""
    probes: tuple[dict[str, Any], ...] = ()
    """Test of the test: {"probe": "zeros", "caught": true, ...}."""
    opponents: tuple[dict[str, Any], ...] = ()
    """{"name", "admissible", "runtime_us", "error", "reason"}."""
    ab: dict[str, Any] | None = None
    """{"against": sha, "verdict": "faster|slower|same|ambiguous", "ratio", "interval": [lo, hi], "n"}."""
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds by stage, for the trace of where the time goes: 'build', 'trials', 'timing', 'queue', ..."""
    dependencies: tuple[tuple[str, str], ...] = ()
    """(path, sha) of project modules that were really loaded: an edit of one makes the verdict old."""
    seed: int = 0
    parents: tuple[str, ...] = ()
    author: str = "person"
    """'person' | 'tuner' | 'model' | 'agent'."""
    git_sha: str | None = None
    git_dirty: bool | None = None
    measured_at: str = ""
    """UTC, ISO 8601; set by the server's host clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """We cannot or will not do it, and what would make it possible. Data, not an exception."""

    code: str
    """'no_reference' | 'no_torch' | 'no_triton' | 'no_gpu' | 'toolchain_missing' | 'unreadable' | 'untrusted' |
    'cancelled' | 'worker_lost' | 'protocol_mismatch' | 'no_kernel' | ..."""
    message: str
    remedy: str
