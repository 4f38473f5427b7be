"""Owns writing one side of a comparison as a Program: an expression where it fits in one, else a small function.

The function is appended below the file's own text, so that every line of the person keeps its number. Runs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from evalcore.bindings.binding import Source, loads, unparse
from evalcore.bindings.constants import assigned, evaluate
from evalcore.bindings.slices import Flow, Side
from evalcore.problem import Program, ProgramKind

_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Written:
    """One side as code that is not yet a Program."""

    side: Side
    expression: ast.expr | None
    used: frozenset[str]
    """Names that it reads."""


def write(flow: Flow, side: Side, literals: Mapping[str, int]) -> Written:
    """The side as an expression where it fits in one, and the names that it reads."""
    expression = _as_expression(flow, side, literals)
    if expression is not None:
        return Written(side, expression, frozenset(loads(expression)))
    used = loads(side.result).union(*(loads(flow.statements[index]) for index in side.statements), set())
    return Written(side, None, frozenset(used - literals.keys()))


def make_program(
    source: Source, flow: Flow, written: Written, names: list[str], literals: Mapping[str, int], entry: str
) -> Program:
    """The program whose inputs are `names`, in that order."""
    if written.expression is not None:
        call = unparse(written.expression)
        return Program(path=source.path, text=source.text, entry="", kind=ProgramKind.EXPRESSION, call=call)
    function = _as_function(flow, written.side, names, literals, entry)
    text = f"{source.text.rstrip()}\n\n\n{function}\n"
    return Program(path=source.path, text=text, entry=entry, kind=ProgramKind.FUNCTION)


def _as_expression(flow: Flow, side: Side, literals: Mapping[str, int]) -> ast.expr | None:
    """The result with its definitions written in place; None where one is used twice, changed, or too long."""
    end = len(flow.statements)
    result = _Inline({name: ast.Constant(value) for name, value in literals.items()}).visit(_copy(side.result))
    left = set(side.statements)
    while left:
        index = max(left)
        left.remove(index)
        name, value = assigned(flow.statements[index])
        if name is None or value is None or flow.version(name, end) != index:
            return None
        uses = sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(result))
        if uses > 1 and not flow.is_plain(index):
            return None
        if any(flow.version(each, index) != flow.version(each, end) for each in loads(value)):
            return None
        result = _Inline({name: value}).visit(result)
        if len(unparse(result)) > _LONGEST:
            return None
    result = _Inline({name: ast.Constant(value) for name, value in literals.items()}).visit(result)
    return ast.fix_missing_locations(_Picked().visit(result))


def _as_function(flow: Flow, side: Side, names: list[str], literals: Mapping[str, int], entry: str) -> str:
    lines = [f"def {entry}({', '.join(names)}):"]
    lines += [f"    {name} = {value}" for name, value in literals.items()]
    for index in side.statements:
        lines += ["    " + line for line in unparse(flow.statements[index]).splitlines()]
    lines.append(f"    return {unparse(side.result)}")
    return "\n".join(lines)


def _copy(node: ast.expr) -> ast.expr:
    return ast.parse(unparse(node), mode="eval").body


class _Inline(ast.NodeTransformer):
    """Replaces names by expressions; a lambda's own parameters are left alone."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        return _copy(value) if value is not None and isinstance(node.ctx, ast.Load) else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        inner = {name: value for name, value in self._values.items() if name not in own}
        node.body = _Inline(inner).visit(node.body)
        return node


class _Picked(ast.NodeTransformer):
    """`(M, N)[-1]` becomes `N`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        index = evaluate(node.slice, {})
        items = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else []
        return items[index] if isinstance(index, int) and -len(items) <= index < len(items) else node
