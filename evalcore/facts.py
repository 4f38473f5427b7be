"""Owns the raw facts that a run produces, before anybody judges them. Never decides anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStats:
    """One output of one trial against the answer key. Made by the referee, on its own copy of the bytes."""

    output: str
    """'out', 'out[1]', 'grad x', 'input x' (mutation check), ..."""
    elements: int
    out_of_tolerance: int
    max_abs_error: float | None
    max_rel_error: float | None
    worst_index: tuple[int, ...] | None
    got: float | None
    want: float | None
    region: str | None
    """Where the wrong elements lie, in words: 'all in the last 7 columns', 'rows >= 4096 untouched'."""
    nonfinite_mismatch: int = 0
    """Elements where exactly one side is NaN or infinite, or infinities differ in sign."""
    reference_error: float | None = None
    """The reference's own max abs error at its dtype against the float64 key; None where it cannot be lifted."""
    problem: str | None = None
    """A structural fault instead of numbers: 'shape [4, 8] instead of [4, 9]', 'dtype float16 instead of float32'."""
    atol: float | None = None
    rtol: float | None = None
    """The tolerance that decides. origin 'measured' means: atol + rtol * the largest |want| of the same row."""
    tolerance_origin: str = ""
    """'format', 'person' or 'measured'; 'exact' for integers and bools."""
    dtype: str = ""
    """torch's name without the prefix, of the wanted output."""
    magnitude: float | None = None
    """Largest finite |want|."""
    exact_error: float | None = None
    """Max abs error against the float64 key, as `reference_error` is; None where there is no such key."""
    measured_rtol: float | None = None
    """Our own tolerance, relative to the row's largest |want|, beside a format's."""
    measured_out: int | None = None
    """Elements out of our own tolerance, beside `out_of_tolerance` by the deciding one."""
    note: str | None = None
    """A remark that decides nothing: 'strides [1, 4] instead of [4, 1]'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of the candidate on one case with one seed."""

    case: str
    seed: int
    outputs: tuple[ErrorStats, ...]
    """Empty where the run did not get that far; then `crash` says why."""
    mutated_inputs: tuple[str, ...] = ()
    crash: Crash | None = None
    kind: str = "correctness"
    """'correctness', 'timed' (an output sampled from a timed launch), 'neighbour', 'config', 'backward',
    'range' (inputs scaled, shifted, or with NaN and infinities), 'ablated' (the text's own kernels were made to do
    nothing: a right answer here proves a decoy), 'repeat' (the same inputs again: outputs must be as before)."""
    origin: str = "given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a text that a person can open. Lines and columns from 1; columns count Unicode code points."""

    path: str
    line: int
    column: int = 1
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """How a run ended when it did not end well."""

    kind: str
    """'compile' | 'exception' | 'out_of_resources' | 'out_of_bounds' | 'out_of_memory' | 'timeout' | 'killed' |
    'exit' | 'cannot_interpret'."""
    message: str
    """For a person; secrets and our own paths already taken out."""
    place: Place | None = None
    detail: str = ""
    """Log tail or traceback, cut to 4 kB."""
    signal: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Raw timings of one thing by one timer, in the order in which they were taken."""

    subject: str
    """'candidate', 'reference', 'previous', 'torch.compile default', ..."""
    figure: str
    """'device' (kernel activity on the card), 'call' (host call to completion), 'graph' (CUDA-graph replay)."""
    timer: str
    """'proton-cupti', 'events', 'graph', 'host', ..."""
    values_us: tuple[float, ...]
    case: str = ""
    discarded: tuple[tuple[float, str], ...] = ()
    """(value, reason) of samples not used."""
    sm_clock_mhz: tuple[int, ...] = ()
    throttle: tuple[str, ...] = ()
    foreign_processes: int | None = None
    """Other processes seen on the card; None where the driver shows none at all."""
    cold: bool = True
    cpu_threads: int | None = None
    empty_kernel_us: float | None = None
    """What this timer reads for an empty kernel on this card, measured in the same process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """What the compiler made of one kernel variant that really ran or was really compiled."""

    name: str
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    warps: int | None = None
    stages: int | None = None
    theoretical_occupancy: float | None = None
    config: str = ""
    """The autotune config or constexprs in words."""
    launches: int | None = None
    origin: str = "compiler"
    signature: str = ""
    """How it was launched, for compiling it elsewhere (evalcore.gpu.signatures); '' where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawProfile:
    """What one profiler saw: per-kernel device time and, where allowed, stalls."""

    profiler: str
    kernels: tuple[tuple[str, int, float], ...] = ()
    """(kernel name, launches, total device time in microseconds)."""
    stalls: tuple[tuple[str, float], ...] = ()
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """This card's measured roofs. Never from a table."""

    card: str
    uuid: str
    copy_gb_per_s: float | None
    """Bytes read plus bytes written per second, best of copy, read, write and triad."""
    tflops: tuple[tuple[str, float], ...] = ()
    """(dtype or lane: 'float32', 'tf32', 'float16', 'bfloat16', 'float64'; TFLOP/s on random data)."""
    l2_bytes: int | None = None
    sm_count: int | None = None
    peak_gb_per_s: float | None = None
    """Reported peak: memory clock x bus width, the physical limit for the alarm only."""
    peak_tflops: tuple[tuple[str, float], ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLog:
    """How the candidate was built."""

    seconds: float
    cached: bool
    text: str = ""
