"""Owns which parameters of a Triton kernel are addresses, and which of those hold integers that places hang on.

Read off the text by following sums back to parameters. Guesses for the front end only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_ADDRESSED = {"load", "store", "make_block_ptr", "make_tensor_descriptor", "prefetch"}


class Addresses:
    """`pointers`: parameters that addresses start from. `indices`: those whose values other places depend on."""

    def __init__(self, node: ast.FunctionDef, parameters: set[str]) -> None:
        self._definitions: dict[str, list[ast.expr]] = {}
        self._parameters = parameters
        self._scaled: set[str] = set()
        for part in ast.walk(node):
            self._look(part)
        addresses = list(_addresses(node))
        self.pointers = {origin for one in addresses if (origin := self._origin(one)) is not None}
        placing = self._placing(node, addresses)
        self.indices = {pointer for name in placing for pointer in self._loaded_from(name)}

    def _look(self, part: ast.AST) -> None:
        if isinstance(part, ast.Assign):
            for target in part.targets:
                self._define(target, part.value)
        elif isinstance(part, ast.AugAssign):
            self._define(part.target, part.value)
        elif isinstance(part, ast.BinOp) and not isinstance(part.op, (ast.Add, ast.Sub)):
            self._scaled |= _names(part.left) | _names(part.right)
        elif isinstance(part, ast.Compare) and not isinstance(part.ops[0], (ast.Is, ast.IsNot)):
            self._scaled |= _names(part)

    def _define(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._definitions.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, its in zip(target.elts, value.elts, strict=True):
                self._define(one, its)

    def _origin(self, address: ast.expr) -> str | None:
        wanted = self._parameters - self._scaled
        return next((one for one in _origins(address, self._definitions, set()) if one in wanted), None)

    def _placing(self, node: ast.FunctionDef, addresses: list[ast.expr]) -> set[str]:
        """Local names that addresses and loop bounds are computed from."""
        roots = [name for address in addresses for name in _names(address)]
        for part in ast.walk(node):
            if isinstance(part, ast.For) and isinstance(part.iter, ast.Call):
                roots += [name for argument in part.iter.args for name in _names(argument)]
        found: set[str] = set()
        while roots:
            name = roots.pop()
            if name not in found:
                found.add(name)
                for value in self._definitions.get(name, ()):
                    roots += _outside_loads(value)
        return found

    def _loaded_from(self, name: str) -> Iterator[str]:
        for value in self._definitions.get(name, ()):
            for part in ast.walk(value):
                if _is_load(part) and isinstance(part, ast.Call) and part.args:
                    origin = self._origin(part.args[0])
                    if origin is not None:
                        yield origin


def _is_load(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "load"


def _outside_loads(node: ast.AST) -> list[str]:
    """Names in an expression, not those inside a load: what is loaded there is another value."""
    if _is_load(node):
        return []
    found = [node.id] if isinstance(node, ast.Name) else []
    for child in ast.iter_child_nodes(node):
        found += _outside_loads(child)
    return found


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _addresses(node: ast.FunctionDef) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
            continue
        if part.func.attr in _ADDRESSED or part.func.attr.startswith("atomic_"):
            yield from part.args[:1]
            yield from (one.value for one in part.keywords if one.arg in {"base", "pointer"})


def _origins(node: ast.expr, definitions: Mapping[str, list[ast.expr]], seen: set[str]) -> Iterator[str]:
    """Names that an address is a sum of, leftmost first, through local variables."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _origins(node.left, definitions, seen)
        yield from _origins(node.right, definitions, seen)
    elif isinstance(node, ast.Name):
        if node.id not in seen:
            seen = seen | {node.id}
            yield node.id
            for value in definitions.get(node.id, ()):
                yield from _origins(value, definitions, seen)
    elif isinstance(node, ast.Subscript):
        yield from _origins(node.value, definitions, seen)
    elif isinstance(node, ast.Call) and node.args:
        yield from _origins(node.args[0], definitions, seen)
        if isinstance(node.func, ast.Attribute):
            yield from _origins(node.func.value, definitions, seen)
    elif isinstance(node, ast.IfExp):
        yield from _origins(node.body, definitions, seen)
