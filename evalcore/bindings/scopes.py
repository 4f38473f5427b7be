"""Owns turning the way to a place in a file into one straight list of statements with known constants.

Branches with a known test are resolved, loops and test parameters are given one of their values, guards are dropped.
Never runs anything.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from evalcore.bindings.binding import loads, stores, unparse
from evalcore.bindings.calls import HostMap
from evalcore.bindings.compares import blocks
from evalcore.bindings.constants import UNKNOWN, assigned, evaluate
from evalcore.bindings.settings import Joint, axes_of, joints_of, sizes_of
from evalcore.names import dotted

_MOST_TRIES = 96
_SKIPS = {"pytest.skip", "skip", "unittest.skip", "sys.exit", "exit", "quit", "self.skipTest"}


@dataclass(slots=True)
class Scope:
    """Statements that lead to a place, straight, and what is known there."""

    statements: list[ast.stmt] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    """Values known at the place."""
    sizes: list[dict[str, int]] = field(default_factory=list)
    """Whole-number choices that the file lists for the chosen setting, e.g. by parametrize; the chosen one first."""
    function: str = ""
    """Name of the enclosing function, '' at module level."""


class _Dead(Exception):
    """The place cannot be reached with these values."""


def scope_of(
    path: tuple[ast.stmt, ...], tree: ast.Module, hosts: HostMap, *, given: Joint | None = None
) -> Scope | None:
    """The scope of the last statement of `path`, for the largest listed setting that reaches it; None if none does.

    `given` sets parameters of the enclosing function instead of what the file lists for them.
    """
    joints = joints_of([[given], *axes_of(path, tree)]) if given is not None else joints_of(axes_of(path, tree))
    for joint in joints[:_MOST_TRIES]:
        collector = _Collector(hosts, joint)
        try:
            collector.collect(tree.body, path, 0)
        except _Dead:
            continue
        scope = Scope(statements=collector.out, names=collector.names, function=_function_name(path))
        scope.sizes = sizes_of(joint, joints)
        return scope
    return None


def _function_name(path: tuple[ast.stmt, ...]) -> str:
    names = [each.name for each in path if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return names[-1] if names else ""


class _Collector:
    """Walks to the place, appending statements; keeps what is known about names on the way."""

    def __init__(self, hosts: HostMap, joint: Joint) -> None:
        self.out: list[ast.stmt] = []
        self.names: dict[str, Any] = {}
        self._hosts = hosts
        self._joint = joint
        self._in_function = False

    def collect(self, body: list[ast.stmt], path: tuple[ast.stmt, ...], depth: int) -> None:
        """Statements of `body` before the one on the path, then those inside it."""
        target = path[depth]
        self._in_function = any(isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) for each in path[:depth])
        if isinstance(target, (ast.FunctionDef, ast.AsyncFunctionDef)) and depth == 0:
            self._module(body)
        else:
            self._before(body, target)
        if depth == len(path) - 1:
            return
        following = path[depth + 1]
        block = next(each for each in blocks(target) if any(node is following for node in each))
        if isinstance(target, ast.If):
            self._choose(target, block)
        elif isinstance(target, ast.For):
            self._bind(sorted(stores(target.target)))
        elif isinstance(target, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._bind([each.arg for each in (*target.args.posonlyargs, *target.args.args, *target.args.kwonlyargs)])
        elif isinstance(target, ast.ClassDef):
            self.collect([], path, depth + 1)
            return
        self.collect(block, path, depth + 1)

    def _module(self, body: list[ast.stmt]) -> None:
        """All of the module's own statements: a function sees them all when it is called at the end."""
        for statement in body:
            try:
                self._statement(statement)
            except _Dead:
                return

    def _choose(self, target: ast.If, block: list[ast.stmt]) -> None:
        test = evaluate(target.test, self.names)
        if test is not UNKNOWN and bool(test) is not (block is target.body) and not _is_main(target.test):
            raise _Dead

    def _bind(self, names: list[str]) -> None:
        """Assign the joint's values to parameters or loop variables; at once where one value uses another's name."""
        chosen = [(name, self._joint[name]) for name in names if name in self._joint]
        for name in names:
            self.names.pop(name, None)
        clash = {name for name, _value in chosen} & set().union(*(loads(value) for _name, value in chosen), set())
        if clash and any(not (isinstance(value, ast.Name) and value.id == name) for name, value in chosen):
            left = ast.Tuple([ast.Name(name, ast.Store()) for name, _value in chosen], ast.Store())
            right = ast.Tuple([value for _name, value in chosen], ast.Load())
            self._append(_fixed(ast.Assign([left], right)))
            return
        for name, value in chosen:
            if not (isinstance(value, ast.Name) and value.id == name):
                self._append(_fixed(ast.Assign([ast.Name(name, ast.Store())], value)))

    def _before(self, body: list[ast.stmt], target: ast.stmt | None) -> None:
        for statement in body:
            if statement is target:
                return
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.If):
            self._branch(statement)
        elif isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            self._before(statement.body, None)
        elif isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)) or _skips(statement):
            raise _Dead
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if self._in_function:
                self._append(statement)
        elif not isinstance(statement, (ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global)):
            self._append(statement)

    def _branch(self, statement: ast.If) -> None:
        if _is_main(statement.test):
            return
        test = evaluate(statement.test, self.names)
        if test is not UNKNOWN:
            self._before(statement.body if test else statement.orelse, None)
        elif not _is_guard(statement):
            self._append(statement)

    def _append(self, statement: ast.stmt) -> None:
        for each in split_tuple(statement, self.names):
            target, value = assigned(each)
            if target is not None and self._is_definition(target, each):
                continue
            known = evaluate(value, self.names) if target is not None else UNKNOWN
            for name in stores(each):
                self.names.pop(name, None)
            if target is not None and known is not UNKNOWN:
                self.names[target] = known
            self.out.append(each)

    def _is_definition(self, name: str, statement: ast.stmt) -> bool:
        """Module-level `layer_norm = LayerNorm.apply` and compiled modules: they are in the module already."""
        value = getattr(statement, "value", None)
        mentioned = self._hosts.mentions.get(name)
        if isinstance(value, ast.Lambda) or (name not in self._hosts.mentions and name not in self._hosts.natives):
            return False
        return value is not None and mentioned == loads(value) and self._hosts.is_code(value)


def _fixed(node: ast.Assign) -> ast.stmt:
    """A made-up statement with positions, by way of its source."""
    return ast.parse(unparse(ast.fix_missing_locations(node))).body[0]


def split_tuple(statement: ast.stmt, names: dict[str, Any]) -> list[ast.stmt]:
    """`M, N = 512, 1024` as one statement a name, so that each can be overridden; anything else unchanged."""
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return [statement]
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        known = [evaluate(each, names) for each in value.elts]
        simple = all(isinstance(each, ast.Name) for each in target.elts)
        if simple and all(each is not UNKNOWN for each in known):
            return [_fixed(ast.Assign([left], right)) for left, right in zip(target.elts, value.elts, strict=False)]
    return [statement]


def _skips(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and dotted(statement.value.func) in _SKIPS
    )


def _is_guard(statement: ast.If) -> bool:
    """`if <unknown>: skip / return / raise / print` has no part in the data."""
    return not statement.orelse and all(
        isinstance(each, (ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Pass)) or _skips(each)
        for each in statement.body
    )


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
