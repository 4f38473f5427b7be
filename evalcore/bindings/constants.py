"""Owns evaluating literal expressions and finding size constants, by syntax. Never calls anything but arithmetic."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

UNKNOWN = object()
"""What `evaluate` answers where the value is not known from the text."""

_LARGEST = 1 << 62
_LONGEST = 4096
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_BATCH_WORDS = ("batch", "rows", "n_rows", "num_rows", "m", "b", "bs", "bsz", "z", "tokens", "n_tokens", "num_tokens")


def evaluate(node: ast.AST | None, names: Mapping[str, Any]) -> Any:
    """The value of a literal expression over known names, else UNKNOWN. Bounded: no huge powers, no long sequences."""
    try:
        return _evaluate(node, names)
    except (TypeError, ValueError, ArithmeticError, KeyError, IndexError, RecursionError, MemoryError):
        return UNKNOWN


def _evaluate(node: ast.AST | None, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, (ast.Tuple, ast.List)):
        items = _items(node.elts, names)
        return items if items is UNKNOWN else (tuple(items) if isinstance(node, ast.Tuple) else items)
    if isinstance(node, ast.UnaryOp):
        return _unary(node, names)
    if isinstance(node, ast.BinOp):
        return _binary(node, names)
    if isinstance(node, ast.BoolOp):
        return _bool(node, names)
    if isinstance(node, ast.Compare):
        return _comparison(node, names)
    if isinstance(node, ast.IfExp):
        return _conditional(node, names)
    if isinstance(node, ast.Subscript):
        value, index = _evaluate(node.value, names), _evaluate(node.slice, names)
        return UNKNOWN if value is UNKNOWN or index is UNKNOWN else value[index]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _comprehension(node, names)
    if isinstance(node, ast.Call):
        return _call(node, names)
    if isinstance(node, ast.Dict):
        return _mapping(node, names)
    return UNKNOWN


def _items(nodes: list[ast.expr], names: Mapping[str, Any]) -> Any:
    items: list[Any] = []
    for each in nodes:
        if isinstance(each, ast.Starred):
            inner = _evaluate(each.value, names)
            if inner is UNKNOWN:
                return UNKNOWN
            items.extend(inner)
            continue
        value = _evaluate(each, names)
        if value is UNKNOWN:
            return UNKNOWN
        items.append(value)
    return items if len(items) <= _LONGEST else UNKNOWN


def _mapping(node: ast.Dict, names: Mapping[str, Any]) -> dict[Any, Any]:
    """Entries whose value is not known are left out: `args={'M': 4096, 'dtype': torch.float16}` still gives M."""
    found = {}
    for key, value in zip(node.keys, node.values, strict=False):
        left, right = evaluate(key, names), evaluate(value, names)
        if left is not UNKNOWN and right is not UNKNOWN and key is not None:
            found[left] = right
    return found


def _unary(node: ast.UnaryOp, names: Mapping[str, Any]) -> Any:
    value = _evaluate(node.operand, names)
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.USub):
        return -value
    return value if isinstance(node.op, ast.UAdd) else ~value


def _binary(node: ast.BinOp, names: Mapping[str, Any]) -> Any:
    left, right = _evaluate(node.left, names), _evaluate(node.right, names)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(node.op, ast.Pow):
        return left**right if abs(left) <= 1 << 20 and abs(right) <= 62 else UNKNOWN
    if isinstance(node.op, (ast.LShift, ast.RShift)) and not 0 <= right <= 62:
        return UNKNOWN
    if isinstance(node.op, ast.Mult) and (
        isinstance(left, (list, tuple, str)) or isinstance(right, (list, tuple, str))
    ):
        length = len(left) * right if isinstance(left, (list, tuple, str)) else len(right) * left
        if length > _LONGEST:
            return UNKNOWN
    function = _BINARY.get(type(node.op))
    value = function(left, right) if function else UNKNOWN
    return UNKNOWN if isinstance(value, int) and abs(value) > _LARGEST else value


def _bool(node: ast.BoolOp, names: Mapping[str, Any]) -> Any:
    """Short-circuits like Python; one known False decides an `and` also where the other side is unknown."""
    values = [_evaluate(each, names) for each in node.values]
    known = [value for value in values if value is not UNKNOWN]
    if isinstance(node.op, ast.And):
        if any(not value for value in known):
            return next(value for value in known if not value)
    elif any(known):
        return next(value for value in known if value)
    return values[-1] if len(known) == len(values) else UNKNOWN


def _comparison(node: ast.Compare, names: Mapping[str, Any]) -> Any:
    left = _evaluate(node.left, names)
    for op, right_node in zip(node.ops, node.comparators, strict=False):
        right = _evaluate(right_node, names)
        function = _COMPARE.get(type(op))
        if left is UNKNOWN or right is UNKNOWN or function is None:
            return UNKNOWN
        if not function(left, right):
            return False
        left = right
    return True


def _conditional(node: ast.IfExp, names: Mapping[str, Any]) -> Any:
    """With an unknown test: what both branches share (for lists), else the `else` branch, the plain case."""
    test = _evaluate(node.test, names)
    if test is not UNKNOWN:
        return _evaluate(node.body if test else node.orelse, names)
    first, second = _evaluate(node.body, names), _evaluate(node.orelse, names)
    if isinstance(first, list) and isinstance(second, list):
        return [value for value in second if value in first]
    return second


def _comprehension(node: ast.ListComp | ast.GeneratorExp, names: Mapping[str, Any]) -> Any:
    if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
        return UNKNOWN
    loop = node.generators[0]
    assert isinstance(loop.target, ast.Name)
    values = _evaluate(loop.iter, names)
    if values is UNKNOWN or len(values) > _LONGEST:
        return UNKNOWN
    found = []
    for value in values:
        inner = {**names, loop.target.id: value}
        kept = [_evaluate(test, inner) for test in loop.ifs]
        if any(test is UNKNOWN for test in kept):
            return UNKNOWN
        if all(kept):
            item = _evaluate(node.elt, inner)
            if item is UNKNOWN:
                return UNKNOWN
            found.append(item)
    return found


def _call(node: ast.Call, names: Mapping[str, Any]) -> Any:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if node.keywords:
        return UNKNOWN
    arguments = _items(node.args, names)
    if arguments is UNKNOWN:
        return UNKNOWN
    if name == "range":
        values = range(*arguments)
        return list(values) if len(values) <= _LONGEST else UNKNOWN
    simple: dict[str, Callable[..., Any]] = {
        "int": int, "float": float, "bool": bool, "len": len, "min": min, "max": max, "list": list, "tuple": tuple,
        "abs": abs, "sqrt": math.sqrt, "cdiv": lambda a, b: -(-a // b),
        "next_power_of_2": lambda n: 1 << max(n - 1, 0).bit_length(),
    }  # fmt: skip
    return simple[name](*arguments) if name in simple else UNKNOWN


def module_constants(body: list[ast.stmt]) -> dict[str, Any]:
    """Module-level names whose value is known from the text, the last assignment winning."""
    names: dict[str, Any] = {}
    for statement in body:
        target, value = assigned(statement)
        if target is not None:
            known = evaluate(value, names)
            if known is UNKNOWN:
                names.pop(target, None)
            else:
                names[target] = known
    return names


def assigned(statement: ast.stmt) -> tuple[str | None, ast.expr | None]:
    """(name, value) of `name = value` or `name: T = value`, else (None, None)."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, statement.value
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        return statement.target.id, statement.value
    return None, None


def is_size(value: Any) -> bool:
    """A whole number that may be a size: at least 1, and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def looks_like_batch(name: str) -> bool:
    """Whether a constant's name reads as a batch or row count: reduced first when a problem is too large."""
    lower = name.lower()
    return lower in _BATCH_WORDS or "batch" in lower or lower.endswith(("_rows", "_tokens"))
