"""Owns building Measurements for the server's unit tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalcore import results
from evalcore.jobs import CaseReport, Cause, Environment, Measurement, Mode

PATH = "/w/add.py"


def case(**values: Any) -> CaseReport:
    """A right case."""
    given: dict[str, Any] = {
        "name": "4096x4096", "sizes": {}, "origin": "given", "status": "right", "trials": 5, "trials_right": 5,
    }  # fmt: skip
    return CaseReport(**{**given, **values})


def measurement(**values: Any) -> Measurement:
    """A right, timed measurement; fields may be replaced."""
    made = Measurement(
        job_id="j",
        cause=Cause.SAVE,
        mode=Mode.FAST,
        file=PATH,
        kernel="add_kernel",
        kernel_sha="a" * 64,
        problem_id="add.py::add",
        problem_sha="b" * 64,
        format="tutorial",
        result=results.correct(runtime_us=34.4, ref_runtime_us=79.5),
        reason=None,
        environment=environment(),
        cases=(case(),),
    )
    return replace(made, **values)


def environment(*, interpreted: bool = False) -> Environment:
    """Where it was measured."""
    return Environment(
        card=None if interpreted else "H200",
        uuid=None if interpreted else "GPU-1",
        driver=None if interpreted else "570",
        torch="2.13.0",
        triton="3.7.1",
        python="3.11.7",
        interpreted=interpreted,
        evaluator_sha="c" * 64,
        evaluator_md5="d" * 32,
    )
