"""Makes facts for tests of the judge: a right run, to be spoiled one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalcore.facts import Ceilings, Crash, ErrorStats, Samples, Trial
from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind, Work
from evalcore.run_facts import RunFacts

GIVEN = Case(name="4096x4096")
CEILINGS = Ceilings(
    card="Card", uuid="GPU-1", copy_gb_per_s=4000.0, tflops=(("float32", 50.0), ("tf32", 360.0)), l2_bytes=50 << 20,
    peak_gb_per_s=4800.0,
)  # fmt: skip


def problem(**changes: Any) -> Problem:
    """A two-file problem."""
    reference = Program(path="/p/reference.py", text="class Model: ...", entry="Model", kind=ProgramKind.MODULE)
    candidate = Program(path="/p/new.py", text="class ModelNew: ...", entry="ModelNew", kind=ProgramKind.MODULE)
    made = Problem(
        id="new.py::ModelNew", format="comment", reference=reference, candidate=candidate,
        inputs=Inputs(kind=InputsKind.GET_INPUTS), cases=(GIVEN,),
    )  # fmt: skip
    return replace(made, **changes)


def stats(**changes: Any) -> ErrorStats:
    """One right float32 output, twice as exact as it must be."""
    made = ErrorStats(
        output="out", elements=1000, out_of_tolerance=0, max_abs_error=1e-7, max_rel_error=1e-7, worst_index=(3, 5),
        got=1.0, want=1.0, region=None, reference_error=1e-7, exact_error=1e-7, atol=0.0, rtol=1e-5,
        tolerance_origin="measured", dtype="float32", magnitude=1.0, measured_rtol=1e-5, measured_out=0,
    )  # fmt: skip
    return replace(made, **changes)


WRONG = stats(
    out_of_tolerance=4, max_abs_error=0.013, max_rel_error=0.01, worst_index=(3, 512), measured_out=4,
    exact_error=0.013, region="all in the last 7 columns",
)  # fmt: skip


def trial(*outputs: ErrorStats, **changes: Any) -> Trial:
    """One trial on the given case."""
    return replace(Trial(case=GIVEN.name, seed=1, outputs=outputs or (stats(),)), **changes)


def facts(**changes: Any) -> RunFacts:
    """Five right trials and nothing else."""
    trials = tuple(trial(seed=seed) for seed in range(5))
    return replace(RunFacts(problem=problem(), cases=(GIVEN,), trials=trials, launched=True), **changes)


def samples(subject: str, figure: str, *values: float, timer: str = "proton-cupti", **changes: Any) -> Samples:
    """Timings of the given case."""
    made = Samples(subject=subject, figure=figure, timer=timer, values_us=values, case=GIVEN.name)
    return replace(made, **changes)


def crash(kind: str, message: str = "it broke", **changes: Any) -> Crash:
    """How a run ended."""
    return replace(Crash(kind=kind, message=message), **changes)


WORK = Work(flops=100_000_000, bytes_read=64 << 20, bytes_written=64 << 20, dtype="float32", origin="counted")
