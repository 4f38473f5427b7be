"""Owns which statements of a module a slice keeps: what the wanted names need, backwards. Never changes text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evalcore.names import StatementNames, names_of

_SETTING_ROOTS = frozenset({"sys", "os", "torch", "warnings", "logging", "np", "numpy", "triton", "random"})
"""Roots of attribute chains whose top-level assignments are settings of the process, such as
`torch.backends.cuda.matmul.allow_tf32 = True`."""
_SETTING_CALLS = (
    "sys.path.", "sys.setrecursionlimit", "os.environ.", "os.putenv", "torch.set_", "torch.backends.", "torch._dynamo.",
    "torch._inductor.", "torch.library.", "torch.fx.wrap",
    "warnings.", "logging.", "triton.set_allocator", "load_dotenv",
)
_NEVER_METHODS = frozenset({"run", "print", "show", "savefig", "save", "write", "close", "backward", "plot", "main"})

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class Unit:
    """One statement that can be kept or blanked alone."""

    node: ast.stmt
    names: StatementNames
    children: list[list[Unit]]
    parent: Unit | None = None
    kept: bool = False


def unit_of(node: ast.stmt, parent: Unit | None) -> Unit:
    unit = Unit(node=node, names=names_of(node), children=[], parent=parent)
    if isinstance(node, Definition):
        return unit
    for body in _bodies(node):
        unit.children.append([unit_of(child, unit) for child in body])
    return unit


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list) and body:
            yield body
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def walk(units: list[Unit]) -> Iterator[Unit]:
    for unit in units:
        yield unit
        for body in unit.children:
            yield from walk(body)


class Marker:
    """Marks what is needed, from the wanted names backwards."""

    def __init__(self, units: list[Unit]) -> None:
        self.binders: dict[str, list[Unit]] = {}
        self.mutators: dict[str, list[Unit]] = {}
        self.leaves: list[Unit] = []
        for unit in walk(units):
            if _under_main_guard(unit):
                continue
            if not unit.children:
                self.leaves.append(unit)
            for name in unit.names.header_binds if unit.children else unit.names.binds:
                self.binders.setdefault(name, []).append(unit)
            for name in () if unit.children or is_check(unit.node) else unit.names.mutates:
                self.mutators.setdefault(name, []).append(unit)
        self.asked: set[str] = set()
        self.queue: list[Unit] = []

    def mark(self, keep: Iterable[str] | None, *, lean: bool = False) -> None:
        """Marks what `keep` needs; `lean` leaves out imports and settings that it does not."""
        always = _even_lean if lean else _always
        self.queue += [unit for unit in self.leaves if always(unit)]
        if keep is None:
            self.queue += [unit for unit in self.leaves if isinstance(unit.node, Definition)]
        else:
            for name in keep:
                self._ask(name.split(".")[0], None)
        while self.queue:
            for one in _with_parents(self.queue.pop()):
                if not one.kept:
                    one.kept = True
                    self._follow(one)

    def _follow(self, unit: Unit) -> None:
        names = unit.names
        if unit.children:
            for name in names.header_needs:
                self._ask(name, unit)
            return
        for name in names.needs_now:
            self._ask(name, unit)
        for name in names.needs_later:
            self._ask(name, None)

    def _ask(self, name: str, reader: Unit | None) -> None:
        """Queues what gives `name` its value: all of it, or what stands before `reader` where that runs at once."""
        if name in self.asked:
            return
        binders = self.binders.get(name, [])
        mutators = _kept_mutators(binders, self.mutators.get(name, []))
        if reader is None:
            self.asked.add(name)
        else:
            line = reader.node.lineno
            before = [one for one in binders if one.node.lineno <= line and one is not reader]
            if before:
                binders = before
                mutators = [one for one in mutators if one.node.lineno <= line]
        self.queue += binders + mutators


def _kept_mutators(binders: list[Unit], mutators: list[Unit]) -> list[Unit]:
    """Of the statements that change an object in place, those that its users depend on."""
    assigned = any(not isinstance(one.node, (*Definition, ast.Import, ast.ImportFrom)) for one in binders)
    defined = any(isinstance(one.node, Definition) for one in binders)
    return [one for one in mutators if assigned or (defined and not isinstance(one.node, ast.Expr))]


def _with_parents(unit: Unit) -> Iterator[Unit]:
    current: Unit | None = unit
    while current is not None:
        yield current
        current = current.parent


def _under_main_guard(unit: Unit) -> bool:
    return any(is_main_guard(one.node) for one in _with_parents(unit))


def is_main_guard(node: ast.stmt) -> bool:
    """True for `if __name__ == '__main__':`."""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def _even_lean(unit: Unit) -> bool:
    """What even a lean slice keeps: imports whose names cannot be known, and where imports are searched."""
    node = unit.node
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(alias.name == "*" for alias in node.names)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (
        _dotted(node.value.func).startswith("sys.path.")
    )


def _always(unit: Unit) -> bool:
    """Statements that every slice keeps: imports, docstrings, settings of the process, what a guard raises."""
    node = unit.node
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return unit.parent is None
        return _is_setting_call(node.value)
    if isinstance(node, ast.Assign):
        return all(_is_setting_target(target) for target in node.targets)
    if isinstance(node, ast.Raise):
        return unit.parent is not None and isinstance(unit.parent.node, ast.Try) and _has_import(unit.parent.node)
    return False


def _has_import(node: ast.stmt) -> bool:
    return any(isinstance(child, (ast.Import, ast.ImportFrom)) for child in ast.walk(node))


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _is_setting_call(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = _dotted(node.func)
    return name.startswith(_SETTING_CALLS) or name.split(".")[-1].startswith("register")


def _is_setting_target(target: ast.expr) -> bool:
    if not isinstance(target, (ast.Attribute, ast.Subscript)):
        return False
    name = _dotted(target)
    return "." in name and name.split(".")[0] in _SETTING_ROOTS


def is_check(node: ast.stmt) -> bool:
    """Plainly a check, a print or a benchmark run: nothing that a definition could need."""
    if isinstance(node, ast.Assert) or is_main_guard(node):
        return True
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    name = _dotted(node.value.func)
    if name in {"print", "torch.testing.assert_close", "triton.testing.assert_close", "pprint", "main", "pytest.main"}:
        return True
    return "." in name and name.split(".")[-1] in _NEVER_METHODS
