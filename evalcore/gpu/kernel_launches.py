"""Owns launches of Triton kernels in a text: which constants a call site fixes. By syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Launch:
    """One `kernel[grid](...)` in the text: values that the text itself shows."""

    kernel: str
    values: dict[str, Any]
    """Parameter -> a constant that the call site fixes."""
    literal_floats: frozenset[str]
    """Parameters that get a float."""


def launches(tree: ast.Module, parameters: Mapping[str, list[str]], namespace: Mapping[str, Any]) -> list[Launch]:
    """Launches of the kernels in `parameters` (name -> parameter names), constants resolved through the text."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.Module)):
            continue
        local = _single_constants(function, namespace) if isinstance(function, ast.FunctionDef) else {}
        for part in _own_nodes(function):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Subscript):
                target = part.func.value
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                if name in parameters:
                    found.append(_launch(part, name, parameters[name], {**namespace, **local}))
    return found


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions inside it."""
    queue = list(ast.iter_child_nodes(function))
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            queue.extend(ast.iter_child_nodes(node))


def _single_constants(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Local names that are bound once, to a constant."""
    counts: dict[str, int] = {}
    values: dict[str, Any] = {}
    for part in _own_nodes(function):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            counts[part.id] = counts.get(part.id, 0) + 1
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            value = constant(part.value, namespace)
            if value is not UNKNOWN:
                values[part.targets[0].id] = value
    parameters = {one.arg for one in [*function.args.args, *function.args.kwonlyargs]}
    return {name: value for name, value in values.items() if counts.get(name) == 1 and name not in parameters}


UNKNOWN = object()


def _launch(call: ast.Call, kernel: str, names: list[str], namespace: Mapping[str, Any]) -> Launch:
    given = dict(zip(names, call.args, strict=False)) if not any(isinstance(a, ast.Starred) for a in call.args) else {}
    given.update({one.arg: one.value for one in call.keywords if one.arg in names})
    values: dict[str, Any] = {}
    floats: set[str] = set()
    for name, node in given.items():
        value = constant(node, namespace)
        if isinstance(value, float):
            floats.add(name)
        if value is not UNKNOWN:
            values[name] = value
    return Launch(kernel, values, frozenset(floats))


def constant(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """The value of a literal, a known name or arithmetic over those; UNKNOWN for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        value = namespace.get(node.id, UNKNOWN)
        return value if isinstance(value, (int, float, str, bool, type(None))) else UNKNOWN
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand, namespace)
        return -value if isinstance(value, (int, float)) else UNKNOWN
    if isinstance(node, ast.BinOp):
        left, right = constant(node.left, namespace), constant(node.right, namespace)
        if type(left) is int and type(right) is int:
            return _arithmetic(node.op, left, right)
    return UNKNOWN


def _arithmetic(op: ast.operator, left: int, right: int) -> Any:
    if isinstance(op, ast.Mult):
        return left * right
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.FloorDiv) and right:
        return left // right
    if isinstance(op, ast.Pow) and 0 <= right <= 31:
        return left**right
    return UNKNOWN
