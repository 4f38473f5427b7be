"""Makes Measurements for tests of what stands behind the judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalcore.jobs import Cause, Environment, EvalJob, Measurement, Mode
from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind
from evalcore.results import EvalResult, correct


def problem(text: str, *, path: str = "/p/kernel.py", kernel: str = "k") -> Problem:
    """A problem whose reference and candidate stand in one file."""
    program = Program(path=path, text=text, entry=kernel, kind=ProgramKind.FUNCTION)
    return Problem(
        id=f"{path}::{kernel}", format="comment", reference=replace(program, entry="reference"), candidate=program,
        inputs=Inputs(kind=InputsKind.GET_INPUTS), cases=(Case(name="as given"),), kernels=(kernel,),
    )  # fmt: skip


def job(text: str, *, kernel: str = "k", sha: str = "0" * 64) -> EvalJob:
    """A job on that problem."""
    return EvalJob(
        job_id="job", cause=Cause.SAVE, mode=Mode.FAST, problem=problem(text, kernel=kernel), kernel=kernel,
        kernel_sha=sha,
    )  # fmt: skip


def measurement(result: EvalResult | None = None, **changes: Any) -> Measurement:
    """A measurement, correct and untimed unless told otherwise."""
    environment = Environment(
        card="Test Card", uuid="GPU-test", driver="1", torch="2", triton="3", python="3.11", interpreted=False,
        evaluator_sha="e" * 64, evaluator_md5="e" * 32,
    )  # fmt: skip
    base = Measurement(
        job_id="job", cause=Cause.SAVE, mode=Mode.FAST, file="/p/kernel.py", kernel="k", kernel_sha="0" * 64,
        problem_id="/p/kernel.py::k", problem_sha="1" * 64, format="comment", result=result or correct(), reason=None,
        environment=environment,
    )  # fmt: skip
    return replace(base, **changes)
