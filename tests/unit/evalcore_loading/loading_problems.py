"""Problems for the tests of loading, made by hand, and a short way to run both sides interpreted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind


def expression(path: str, text: str, candidate: str, reference: str, statements: str, **more: Any) -> Problem:
    """Tutorial style: two expressions over what the statements leave."""
    names = more.pop("names")
    return Problem(
        id=Path(path).name, format="tutorial",
        reference=Program(path=path, text=text, entry="", kind=ProgramKind.EXPRESSION, call=reference),
        candidate=Program(path=path, text=text, entry="", kind=ProgramKind.EXPRESSION, call=candidate),
        inputs=Inputs(
            kind=InputsKind.STATEMENTS, statements=statements, names=tuple(names),
            constants=tuple(more.pop("constants", {}).items()),
        ),
        cases=(Case(name="given"),), **more,
    )


def module(path: str, text: str, answer_path: str = "", answer: str = "", **more: Any) -> Problem:
    """KernelBench style: Model and ModelNew, in one file or in two."""
    return Problem(
        id=Path(path).name, format="kernelbench",
        reference=Program(path=path, text=text, entry="Model", kind=ProgramKind.MODULE),
        candidate=Program(path=answer_path or path, text=answer or text, entry="ModelNew", kind=ProgramKind.MODULE),
        inputs=Inputs(kind=InputsKind.GET_INPUTS, init_function="get_init_inputs"),
        cases=(Case(name="given"),), **more,
    )


def both(problem: Problem, sizes: dict[str, int] | None = None, seed: int = 0) -> tuple[Any, Any, Any]:
    """(wanted, got, the loaded candidate), interpreted in this process."""
    from evalcore.gpu.loading import init_inputs, load, make_inputs

    sizes = sizes or {}
    reference = load(problem, problem.reference, sizes=sizes, device="cpu", seed=seed, init_inputs=None, scratch="")
    inputs = make_inputs(reference, problem, sizes=sizes, seed=seed)
    made = init_inputs(reference)
    if problem.reference.kind is ProgramKind.MODULE:
        reference = load(problem, problem.reference, sizes=sizes, device="cpu", seed=seed, init_inputs=made, scratch="")
    wanted = reference.call([one.clone() if hasattr(one, "clone") else one for one in inputs])
    candidate = load(problem, problem.candidate, sizes=sizes, device="cpu", seed=seed, init_inputs=made, scratch="")
    return wanted, candidate.call(inputs), candidate


def crash_of(problem: Problem, sizes: dict[str, int] | None = None) -> Any:
    """The Crash that the candidate ends in; fails the test where it does not."""
    from evalcore.gpu.faults import CandidateFault

    try:
        both(problem, sizes)
    except CandidateFault as fault:
        return fault.crash
    raise AssertionError("the candidate ran to its end")


def marked(problem: Problem, crash: Any) -> str:
    """The text under the crash's place."""
    assert crash.place is not None, crash
    lines = problem.candidate.text.split("\n")
    line = lines[crash.place.line - 1]
    end = crash.place.end_column if crash.place.end_line == crash.place.line else None
    return line[crash.place.column - 1 : end - 1 if end else None].strip()
