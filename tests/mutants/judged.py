"""Judges mutants with the real worker, and with a one-input check beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from evalcore.jobs import Measurement
from evalcore.problem import Case, CudaLaunch, Inputs, InputsKind, Problem, Program, ProgramKind
from tests.hostile.judging import Worker, problem_of
from tests.hostile.naive import verdicts
from tests.mutants.table import TEXTS, Mutant

LAUNCHES = {
    "cuda_axpy": CudaLaunch(
        grid="((x.shape[0] + 255) // 256,)",
        block="(256,)",
        args=("x", "y", "out", "0.25", "x.shape[0]"),
        outputs=("out",),
    ),
    "cuda_row_sum": CudaLaunch(grid="(x.shape[0],)", block="(256,)", args=("x", "out", "x.shape[1]"), outputs=("out",)),
    "cuda_transpose": CudaLaunch(
        grid="((x.shape[1] + 31) // 32, (x.shape[0] + 31) // 32)",
        block="(32, 32)",
        args=("x", "out", "x.shape[0]", "x.shape[1]"),
        outputs=("out",),
    ),
}


def problem(kernel: str, text: str | None = None) -> Problem:
    """The problem of a kernel, with `text` for its file where given."""
    reference = TEXTS / f"reference_{kernel}.py"
    if kernel not in LAUNCHES:
        return problem_of(TEXTS / f"{kernel}.py", reference, text=text)
    path = TEXTS / f"{kernel}.cu"
    entry = kernel.removeprefix("cuda_")
    return Problem(
        id=f"{path.name}::{entry}",
        format="comment",
        reference=Program(
            path=str(reference), text=reference.read_text("utf-8"), entry="reference", kind=ProgramKind.FUNCTION
        ),
        candidate=Program(
            path=str(path),
            text=path.read_text("utf-8") if text is None else text,
            entry=entry,
            kind=ProgramKind.CUDA_KERNEL,
            launch=LAUNCHES[kernel],
        ),
        inputs=Inputs(kind=InputsKind.GET_INPUTS, function="make_inputs"),
        cases=(Case(name="as given"),),
        kernels=(entry,),
        project_root=str(TEXTS),
    )


def judge(worker: Worker, mutant: Mutant) -> Measurement:
    """Our judge on one mutant."""
    return worker.judge(problem(mutant.kernel, mutant.text()))


def one_input_check(mutants: Sequence[Mutant]) -> dict[str, bool]:
    """Mutant id -> whether a check on one input, with allclose at 1e-2, calls it correct."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for mutant in mutants:
            path = Path(folder) / f"{mutant.id}.py"
            path.write_text(mutant.text(), encoding="utf-8")
            jobs.append((str(path), str(TEXTS / f"reference_{mutant.kernel}.py"), "early"))
        found = verdicts(jobs)
    return {Path(path).stem: right for path, right in found.items()}
