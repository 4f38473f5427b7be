"""Owns finding the places where a file compares one value with another. Never decides which side is the candidate."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from evalcore.bindings.constants import UNKNOWN, evaluate
from evalcore.names import dotted

_PAIR_CALLS = {
    "allclose", "assert_close", "assert_allclose", "assert_almost_equal", "assert_verbose_allclose", "isclose", "equal",
    "assert_equal", "assert_array_equal", "assert_array_almost_equal", "dist", "l1_loss", "mse_loss",
    "cosine_similarity", "calc_diff", "calculate_error", "check_close", "assert_similar",
}  # fmt: skip
_REDUCING = {"abs", "norm", "max", "amax", "sum", "mean"}
_STRIPPED = {"cpu", "detach", "numpy", "item", "clone", "contiguous"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """Two expressions that the file says should be (nearly) equal."""

    left: ast.expr
    right: ast.expr
    form: str
    """'torch.allclose', 'abs(a - b)', ..."""
    line: int
    atol: float | None
    rtol: float | None
    path: tuple[ast.stmt, ...]
    """Statements that enclose it, outermost first; the last one holds it."""


def find_compares(tree: ast.Module) -> list[Compare]:
    """All comparisons of a module in file order, those inside functions, loops and branches too."""
    found: list[Compare] = []
    for path in _statements(tree.body, ()):
        for node in _own_expressions(path[-1]):
            pair = _pair(node)
            if pair is not None:
                left, right, form, call = pair
                atol, rtol = _tolerances(call) if call else (None, None)
                found.append(
                    Compare(
                        left=strip(left), right=strip(right), form=form, line=getattr(node, "lineno", 0),
                        atol=atol, rtol=rtol, path=path,
                    )
                )  # fmt: skip
    return found


def _statements(body: list[ast.stmt], path: tuple[ast.stmt, ...]) -> Iterator[tuple[ast.stmt, ...]]:
    for statement in body:
        here = (*path, statement)
        yield here
        for block in blocks(statement):
            yield from _statements(block, here)


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside a compound statement."""
    found = [getattr(statement, name) for name in ("body", "orelse", "finalbody") if getattr(statement, name, None)]
    found += [handler.body for handler in getattr(statement, "handlers", ())]
    return [block for block in found if isinstance(block, list)]


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Expression nodes of a statement itself, not of statements inside it, nor of a definition's decorators."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    pending: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.expr, ast.withitem))
    ]
    while pending:
        node = pending.pop(0)
        yield node
        if not isinstance(node, ast.Lambda):
            pending[:0] = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _pair(node: ast.AST) -> tuple[ast.expr, ast.expr, str, ast.Call | None] | None:
    if not isinstance(node, ast.Call):
        return None
    name = dotted(node.func)
    last = name.rsplit(".", 1)[-1] if name else getattr(node.func, "attr", "")
    if last in _PAIR_CALLS:
        sides = _two_sides(node, last)
        return (*sides, name or f".{last}", node) if sides else None
    if last in _REDUCING:
        inside = node.args[0] if name and node.args else getattr(node.func, "value", None)
        difference = _difference(inside)
        if difference is not None and last in {"abs", "norm"}:
            return difference.left, difference.right, f"{last}(a - b)", None
    return _exact(node, last)


def _two_sides(node: ast.Call, last: str) -> tuple[ast.expr, ast.expr] | None:
    if len(node.args) >= 2:
        return node.args[0], node.args[1]
    words = {word.arg: word.value for word in node.keywords}
    for first, second in (
        ("actual", "expected"),
        ("input", "other"),
        ("got", "want"),
        ("x", "y"),
        ("desired", "actual"),
    ):
        if first in words and second in words:
            return words[first], words[second]
    if len(node.args) == 1:
        other = words.get("expected") or words.get("other")
        if other is not None:
            return node.args[0], other
        if (
            isinstance(node.func, ast.Attribute)
            and last in {"allclose", "equal", "isclose"}
            and not _is_module(node.func)
        ):
            return node.func.value, node.args[0]
    return None


def _is_module(func: ast.Attribute) -> bool:
    return dotted(func).split(".")[0] in {"torch", "np", "numpy", "triton"}


def _difference(node: ast.AST | None) -> ast.BinOp | None:
    """The `a - b` inside abs, norm, float conversions and the like."""
    for _depth in range(4):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            node = node.func.value
        else:
            return None
    return None


def _exact(node: ast.Call, last: str) -> tuple[ast.expr, ast.expr, str, None] | None:
    """`(a == b).all()` and `torch.all(a == b)`."""
    if last != "all":
        return None
    inside = node.args[0] if node.args else getattr(node.func, "value", None)
    if isinstance(inside, ast.Compare) and len(inside.ops) == 1 and isinstance(inside.ops[0], ast.Eq):
        return inside.left, inside.comparators[0], "(a == b).all()", None
    return None


def _tolerances(call: ast.Call) -> tuple[float | None, float | None]:
    """(atol, rtol) where they are written as numbers."""
    words = {word.arg: evaluate(word.value, {}) for word in call.keywords}

    def number(name: str) -> float | None:
        value = words.get(name, UNKNOWN)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    return number("atol"), number("rtol")


def strip(node: ast.expr) -> ast.expr:
    """The value without what only moves or wraps it: `y.detach().cpu().numpy()` -> `y`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _STRIPPED
        and not node.args
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id in {"torch", "np"})
    ):
        node = node.func.value
    return node
