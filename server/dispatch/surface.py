"""Owns how a candidate and its baseline are called: the public function or class, its parameters, what they stand for.

Reads syntax only. What it cannot see through it refuses: a dispatch that guessed would be wrong for somebody.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from evalcore.problem import Problem, ProgramKind
from server.dispatch.merging import CannotMerge


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What the dispatch module shows to its callers."""

    public: str
    """Name of the function or class that callers use, the same in all candidates."""
    kind: ProgramKind
    """MODULE or FUNCTION."""
    signature: str
    """Parameters with defaults, as they stand in the candidate: 'x, eps=1e-05'. '' for a module."""
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    """Those parameters that carry the problem's inputs, in the inputs' order."""
    fixed: tuple[tuple[str, Any], ...] = ()
    """(parameter, value) that the problem always passes: judged with no other."""


def surface(problem: Problem, text: str) -> Surface:
    """How the candidate in `text` is called. Raises CannotMerge."""
    candidate = problem.candidate
    if candidate.kind is ProgramKind.MODULE:
        return Surface(public=candidate.entry, kind=ProgramKind.MODULE, signature="", parameters=(), inputs=())
    if candidate.kind is ProgramKind.CUDA_KERNEL:
        raise CannotMerge("a bare CUDA kernel has no Python function to dispatch from; wrap it (load_inline)")
    tree = _parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if candidate.kind is ProgramKind.FUNCTION and candidate.entry in functions:
        return _direct(candidate.entry, functions[candidate.entry])
    call, names = _call(problem)
    if not isinstance(call.func, ast.Name) or call.func.id not in functions:
        raise CannotMerge(f"{ast.unparse(call.func)} is no function of the candidate's file")
    return _called(functions[call.func.id], call, names)


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as problem:
        raise CannotMerge(f"the candidate's text does not parse: {problem}") from problem


def _direct(name: str, node: ast.FunctionDef) -> Surface:
    """The entry itself gets the inputs in order."""
    parameters = _parameters(node)
    return Surface(public=name, kind=ProgramKind.FUNCTION, signature=ast.unparse(node.args).strip(),
                   parameters=parameters, inputs=parameters)  # fmt: skip


def _parameters(node: ast.FunctionDef) -> tuple[str, ...]:
    arguments = node.args
    if arguments.vararg is not None or arguments.kwarg is not None:
        raise CannotMerge(f"{node.name} takes *arguments: what they stand for cannot be read")
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        each.annotation = None  # may name what the module does not have
    return tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _call(problem: Problem) -> tuple[ast.Call, tuple[str, ...]]:
    """The one call that the problem makes, and the names of its inputs."""
    candidate = problem.candidate
    if candidate.kind is ProgramKind.EXPRESSION:
        node: ast.expr | None = ast.parse(candidate.call, mode="eval").body
        names = problem.inputs.names
    else:
        wrapper = next((each for each in _parse(candidate.text).body
                        if isinstance(each, ast.FunctionDef) and each.name == candidate.entry), None)  # fmt: skip
        if wrapper is None:
            raise CannotMerge(f"the candidate's file has no function {candidate.entry!r}")
        last = wrapper.body[-1]
        node = last.value if len(wrapper.body) == 1 and isinstance(last, ast.Return) else None
        names = tuple(each.arg for each in wrapper.args.args)
    if not isinstance(node, ast.Call):
        raise CannotMerge(
            "the candidate is not called by one plain call; name its wrapper in a comment or odyssey.toml"
        )
    return node, names


def _called(node: ast.FunctionDef, call: ast.Call, names: tuple[str, ...]) -> Surface:
    parameters = _parameters(node)
    given = dict(zip(parameters, call.args, strict=False))
    given.update({word.arg: word.value for word in call.keywords if word.arg is not None})
    inputs: dict[str, str] = {}
    fixed: list[tuple[str, Any]] = []
    for parameter, value in given.items():
        if isinstance(value, ast.Name) and value.id in names:
            inputs[value.id] = parameter
            continue
        try:
            fixed.append((parameter, ast.literal_eval(value)))
        except ValueError:
            raise CannotMerge(
                f"{ast.unparse(call)}: {ast.unparse(value)} is neither an input nor a plain value"
            ) from None
    missing = [name for name in names if name not in inputs]
    if missing:
        raise CannotMerge(f"{ast.unparse(call)} does not pass the input {missing[0]!r} on")
    return Surface(
        public=node.name, kind=ProgramKind.FUNCTION, signature=ast.unparse(node.args).strip(), parameters=parameters,
        inputs=tuple(inputs[name] for name in names), fixed=tuple(fixed),
    )  # fmt: skip


def baseline_source(problem: Problem) -> tuple[str, str]:
    """(text, entry) of the reference: a function of the inputs, or the module's class."""
    reference = problem.reference
    if reference.kind is ProgramKind.EXPRESSION:
        function = f"def reference({', '.join(problem.inputs.names)}):\n    return {reference.call}\n"
        return f"{reference.text.rstrip()}\n\n\n{function}", "reference"
    if reference.kind in (ProgramKind.FUNCTION, ProgramKind.MODULE):
        return reference.text, reference.entry
    raise CannotMerge("the reference is no Python code")
