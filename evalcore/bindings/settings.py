"""Owns which values a file lists for parameters and loop variables: parametrize, calls, loops. Runs nothing."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from evalcore.bindings.binding import loads, unparse
from evalcore.bindings.compares import blocks
from evalcore.bindings.constants import assigned, evaluate, is_size
from evalcore.names import dotted

_MOST_JOINTS = 512
_CALLS = "_odyssey_calls"
Joint = dict[str, ast.expr]
"""One choice of values for parameters and loop variables that are bound together."""


def joints_of(axes: list[list[Joint]]) -> list[Joint]:
    """All choices, the largest sizes first; among equals those with more True, then file order."""
    combined: list[Joint] = []
    for choice in itertools.islice(itertools.product(*axes), _MOST_JOINTS):
        joint: Joint = {}
        for part in choice:
            joint.update(part)
        combined.append(joint)

    def rank(joint: Joint) -> tuple[int, int]:
        values = [evaluate(value, {}) for value in joint.values()]
        volume = 1
        for value in values:
            for each in value if isinstance(value, (tuple, list)) else (value,):
                volume *= each if is_size(each) else 1
        return -volume, -sum(value is True for value in values)

    return sorted(combined, key=rank)


def sizes_of(chosen: Joint, joints: list[Joint]) -> list[dict[str, int]]:
    """Whole-number values of the joints that agree with the chosen one in everything else."""

    def split(joint: Joint) -> tuple[dict[str, int], dict[str, str]]:
        numbers, others = {}, {}
        for name, node in joint.items():
            value = evaluate(node, {})
            if is_size(value):
                numbers[name] = value
            else:
                others[name] = unparse(node)
        return numbers, others

    mine, rest = split(chosen)
    found = [mine] if mine else []
    for joint in joints:
        numbers, others = split(joint)
        if others == rest and numbers.keys() == mine.keys() and numbers not in found:
            found.append(numbers)
    return found


def axes_of(path: tuple[ast.stmt, ...], tree: ast.Module) -> list[list[Joint]]:
    """For each function and loop on the way: the choices that the file gives for its parameters or variables."""
    axes: list[list[Joint]] = []
    for node in path[:-1]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            axes += _parameter_axes(node, tree)
        elif isinstance(node, ast.For):
            choices = _loop_choices(node.target, _named_list(node.iter, path, tree))
            if choices:
                axes.append(choices)
    return [axis for axis in axes if axis]


def _named_list(values: ast.expr, path: tuple[ast.stmt, ...], tree: ast.Module) -> ast.expr:
    """The list behind a name that a loop goes over, looked for from the inside out; else the expression itself."""
    if not isinstance(values, ast.Name):
        return values
    bodies = [each.body for each in reversed(path) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.If))]
    for body in (*bodies, tree.body):
        for statement in body:
            name, value = assigned(statement)
            if name == values.id and isinstance(value, (ast.List, ast.Tuple)):
                return value
    return values


def _parameter_axes(node: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.Module) -> list[list[Joint]]:
    axes = [choices for decorator in node.decorator_list if (choices := _parametrized(decorator))]
    given = {name for axis in axes for name in axis[0]}
    defaults = {name: value for name, value in _defaults(node).items() if name not in given}
    if not axes:
        calls = [{**defaults, **joint} for joint in _call_sites(node, tree)]
        return [calls or [defaults]]
    return [[defaults], *axes] if defaults else axes


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Joint:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found: Joint = {}
    for argument, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        found[argument.arg] = value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False):
        if default is not None:
            found[argument.arg] = default
    return found


def _parametrized(decorator: ast.expr) -> list[Joint]:
    """Choices of one `@pytest.mark.parametrize(names, values)`."""
    if (
        not isinstance(decorator, ast.Call)
        or not dotted(decorator.func).endswith("parametrize")
        or len(decorator.args) < 2
    ):
        return []
    names = evaluate(decorator.args[0], {})
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return []
    target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    return _loop_choices(target if len(names) > 1 else target.elts[0], decorator.args[1])


def _loop_choices(target: ast.expr, values: ast.expr) -> list[Joint]:
    """Choices for a loop's variables over a literal list, or over anything that can be evaluated."""
    nodes: list[ast.expr] = []
    if isinstance(values, (ast.List, ast.Tuple)):
        nodes = list(values.elts)
    else:
        known = evaluate(values, {})
        if isinstance(known, (list, tuple)):
            nodes = [ast.parse(repr(value), mode="eval").body for value in known]
    found = []
    for node in nodes[:_MOST_JOINTS]:
        if isinstance(node, ast.Call) and dotted(node.func).endswith("param"):
            node = ast.Tuple(node.args, ast.Load()) if len(node.args) > 1 else node.args[0]
        joint = _unpack(target, node)
        if joint:
            found.append(joint)
    return found


def _unpack(target: ast.expr, value: ast.expr) -> Joint:
    if isinstance(target, ast.Name):
        known = evaluate(value, {})
        return {target.id: ast.Constant(known) if is_size(known) else value}
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return {}
    found: Joint = {}
    if len(target.elts) == len(value.elts):
        for each, node in zip(target.elts, value.elts, strict=False):
            found.update(_unpack(each, node))
    return found


def _call_sites(function: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.Module) -> list[Joint]:
    """Arguments of the calls of a function at module level (also under `if __name__`), loops around them unrolled."""
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    found: list[Joint] = []
    for call, loops in _calls_of(tree, function.name):
        if any(isinstance(each, ast.Starred) for each in call.args):
            continue
        joint: Joint = dict(zip(parameters, call.args, strict=False))
        joint.update({word.arg: word.value for word in call.keywords if word.arg})
        axes = [choices for loop in loops if (choices := _loop_choices(loop.target, loop.iter))]
        for choice in itertools.islice(itertools.product(*axes), _MOST_JOINTS):
            variables = {name: node for part in choice for name, node in part.items()}
            found.append({name: _substitute(node, variables) for name, node in joint.items()})
    return found


_Calls = list[tuple[ast.Call, tuple[ast.For, ...]]]


def _calls_of(tree: ast.Module, name: str) -> _Calls:
    """Calls of a plain name at module level with the loops around them. The index is kept with the tree."""
    known: dict[str, _Calls] | None = getattr(tree, _CALLS, None)
    if known is None:
        known = {}
        for call, loops in _calls(tree.body, ()):
            assert isinstance(call.func, ast.Name)
            known.setdefault(call.func.id, []).append((call, loops))
        setattr(tree, _CALLS, known)
    return known.get(name, [])


def _calls(body: list[ast.stmt], loops: tuple[ast.For, ...]) -> Iterator[tuple[ast.Call, tuple[ast.For, ...]]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if statement.name == "main":
                yield from _calls(statement.body, loops)
            continue
        inner = (*loops, statement) if isinstance(statement, ast.For) else loops
        nested = blocks(statement)
        for block in nested:
            yield from _calls(block, inner)
        if not nested:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    yield node, loops


def _substitute(node: ast.expr, values: Joint) -> ast.expr:
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if not (loads(node) & values.keys()):
        return node
    return _Substitution(values).visit(ast.parse(unparse(node), mode="eval").body)


class _Substitution(ast.NodeTransformer):
    def __init__(self, values: Joint) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
