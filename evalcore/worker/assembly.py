"""Owns the machine code (SASS) of the kernels that a candidate really launches: loaded, run once on one case, asked.

Runs in a process of its own, confined like a case; never times and never judges.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(arguments: Sequence[str]) -> int:
    """REQUEST ANSWER: two files. The request has problem, case and device; the answer {"kernels": [...]} or {"error"}."""
    request_path, answer_path = (Path(each).absolute() for each in arguments)  # loading changes the folder
    request = json.loads(request_path.read_text(encoding="utf-8"))
    request["scratch"] = str(answer_path.parent)
    if request["device"] == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    answer: dict[str, Any]
    try:
        answer = {"kernels": _kernels(request)}
    except Exception as problem:  # noqa: BLE001 - this child's main: whatever it was, the caller gets a sentence
        answer = {"error": str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__}
    answer_path.write_text(json.dumps(answer), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # a kernel that hangs in a context's end must not hold us


def _kernels(request: dict[str, Any]) -> list[dict[str, Any]]:
    from evalcore.gpu import launched
    from evalcore.gpu.loading import init_inputs, load, make_inputs
    from evalcore.problem import Case, Problem, ProgramKind
    from evalcore.wire import decode

    problem, case = decode(Problem, request["problem"]), decode(Case, request["case"])
    sizes = dict(case.sizes)
    given: dict[str, Any] = {"sizes": sizes, "device": request["device"], "seed": 0, "scratch": request["scratch"]}
    init = None
    if problem.reference.kind is ProgramKind.MODULE and problem.inputs.init_function:
        bare = load(problem, _inputs_only(problem, problem.inputs.init_function), init_inputs=None, **given)
        init = init_inputs(bare)
    reference = load(problem, _inputs_only(problem, problem.inputs.function), init_inputs=init, **given)
    inputs = make_inputs(reference, problem, sizes=sizes, seed=0)
    launched.watch()
    launched.forget()
    candidate = load(problem, problem.candidate, init_inputs=init, **given)
    candidate.call(inputs)
    return [_kernel(variant) for variant in launched._variants.values()]


def _inputs_only(problem: Any, function: str) -> Any:
    """The reference as far as its inputs need it: a module is not built for that."""
    import dataclasses

    from evalcore.problem import InputsKind, ProgramKind

    if problem.inputs.kind is not InputsKind.GET_INPUTS:
        return problem.reference
    return dataclasses.replace(problem.reference, kind=ProgramKind.FUNCTION, entry=function)


def _kernel(variant: Any) -> dict[str, Any]:
    """Triton disassembles its own cubin, with the tool that its wheel brings."""
    return {"name": variant.function.fn.__name__, "launches": variant.launches, "sass": variant.kernel.asm["sass"]}
