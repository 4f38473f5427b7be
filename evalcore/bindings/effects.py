"""Owns what one statement reads, binds and changes, by syntax. Never follows a name to another statement."""

from __future__ import annotations

import ast
import re

from evalcore.names import dotted

_CHANGED = "_odyssey_changed"
_IGNORED_CALLS = {
    "print", "manual_seed", "synchronize", "seed", "empty_cache", "set_printoptions", "filterwarnings", "backward",
    "retain_grad", "allclose", "info", "debug", "do_bench", "run",
}  # fmt: skip
_IGNORED_STARTS = ("assert", "check_", "test_", "print_", "log_")


def makes_module(value: ast.expr) -> bool:
    """Whether an expression builds a torch.nn module, with parameters that are drawn."""
    calls = (each for each in ast.walk(value) if isinstance(each, ast.Call))
    return any(re.match(r"(?:torch\.)?nn\.[A-Z]", dotted(call.func)) for call in calls)


def ordered_loads(node: ast.AST) -> list[str]:
    """Names that are read, in the order in which they stand."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    names.sort(key=lambda each: (getattr(each, "lineno", 0), getattr(each, "col_offset", 0)))
    return list(dict.fromkeys(each.id for each in names))


def last_name(node: ast.expr) -> str:
    """The last part of a called name: `normal_` of `x.normal_`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def kills(statement: ast.stmt) -> bool:
    """Whether a statement replaces what it binds, rather than perhaps or partly."""
    return isinstance(statement, (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef))


def changed(statement: ast.stmt) -> frozenset[str]:
    """Variables that a statement changes in place: `x[...] = `, `x.grad = `, `x += `, `x.requires_grad_()`, `f(x)`."""
    known = getattr(statement, _CHANGED, None)
    if known is None:
        known = frozenset(_changed(statement) - {""})
        setattr(statement, _CHANGED, known)
    return known


def _changed(statement: ast.stmt) -> set[str]:
    found: set[str] = set()
    for each in ast.walk(statement):
        if isinstance(each, (ast.Subscript, ast.Attribute)) and isinstance(each.ctx, ast.Store):
            if not (isinstance(each, ast.Attribute) and each.attr == "grad"):
                found.add(root_of(each))
        elif isinstance(each, ast.AugAssign):
            found.add(root_of(each.target))
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            found |= _changed_by_call(each.value)
    return found


def _changed_by_call(call: ast.Call) -> set[str]:
    if only_looks(call):
        return set()
    found = {root_of(call.func)} if isinstance(call.func, ast.Attribute) else set()
    found |= {root_of(word.value) for word in call.keywords}
    return found | {root_of(each) for each in call.args}


def root_of(node: ast.AST) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def only_looks(call: ast.Call) -> bool:
    """Whether a call leaves its arguments as they are: prints, checks, seeds, backward passes."""
    name = last_name(call.func)
    return name in _IGNORED_CALLS or name.startswith(_IGNORED_STARTS)
