"""Owns turning the way to a place in a file into one straight list of statements with known constants.

Branches with a known test are resolved, loops and test parameters are given one of their values, guards are dropped.
Never runs anything.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evalcore.bindings.binding import dotted, loads, stores, unparse
from evalcore.bindings.calls import HostMap
from evalcore.bindings.compares import blocks
from evalcore.bindings.constants import UNKNOWN, assigned, evaluate, is_size

_MOST_JOINTS = 512
_MOST_TRIES = 96
_SKIPS = {"pytest.skip", "skip", "unittest.skip", "sys.exit", "exit", "quit", "self.skipTest"}
Joint = dict[str, ast.expr]
"""One choice of values for parameters and loop variables that are bound together."""


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
    joints = _joints([[given], *_axes(path, tree)]) if given is not None else _joints(_axes(path, tree))
    for joint in joints[:_MOST_TRIES]:
        collector = _Collector(hosts, joint)
        try:
            collector.collect(tree.body, path, 0)
        except _Dead:
            continue
        scope = Scope(statements=collector.out, names=collector.names, function=_function_name(path))
        scope.sizes = _sizes(joint, joints)
        return scope
    return None


def _function_name(path: tuple[ast.stmt, ...]) -> str:
    names = [each.name for each in path if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return names[-1] if names else ""


def _joints(axes: list[list[Joint]]) -> list[Joint]:
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


def _sizes(chosen: Joint, joints: list[Joint]) -> list[dict[str, int]]:
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


def _axes(path: tuple[ast.stmt, ...], tree: ast.Module) -> list[list[Joint]]:
    """For each function and loop on the way: the choices that the file gives for its parameters or variables."""
    axes: list[list[Joint]] = []
    for node in path[:-1]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            axes += _parameter_axes(node, tree)
        elif isinstance(node, ast.For):
            choices = _loop_choices(node.target, node.iter)
            if choices:
                axes.append(choices)
    return [axis for axis in axes if axis]


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
    for call, loops in _calls(tree.body, function.name, ()):
        if any(isinstance(each, ast.Starred) for each in call.args):
            continue
        joint: Joint = dict(zip(parameters, call.args, strict=False))
        joint.update({word.arg: word.value for word in call.keywords if word.arg})
        axes = [choices for loop in loops if (choices := _loop_choices(loop.target, loop.iter))]
        for choice in itertools.islice(itertools.product(*axes), _MOST_JOINTS):
            variables = {name: node for part in choice for name, node in part.items()}
            found.append({name: _substitute(node, variables) for name, node in joint.items()})
    return found


def _calls(
    body: list[ast.stmt], name: str, loops: tuple[ast.For, ...]
) -> Iterator[tuple[ast.Call, tuple[ast.For, ...]]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if statement.name == "main":
                yield from _calls(statement.body, name, loops)
            continue
        inner = (*loops, statement) if isinstance(statement, ast.For) else loops
        nested = blocks(statement)
        for block in nested:
            yield from _calls(block, name, inner)
        if not nested:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
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
        return value is not None and mentioned == loads(value)


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
