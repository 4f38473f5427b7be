"""Owns the slice of a module: what of a text has to run so that its definitions can be used. Never runs or imports it.

A person's file often runs asserts and whole benchmarks when it is imported. The slice keeps imports, definitions and the
assignments that those need, and blanks every other top-level statement with spaces, so that each line and each column
stays where the person wrote it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evalcore.names import StatementNames, names_of
from evalcore.source_lines import Lines

_SETTING_ROOTS = frozenset({"sys", "os", "torch", "warnings", "logging", "np", "numpy", "triton", "random"})
"""Roots of attribute chains whose top-level assignments are settings of the process, such as
`torch.backends.cuda.matmul.allow_tf32 = True`."""
_SETTING_CALLS = (
    "sys.path.", "sys.setrecursionlimit", "os.environ.", "os.putenv", "torch.set_", "torch.backends.", "torch._dynamo.",
    "torch._inductor.", "torch.manual_seed", "torch.cuda.manual_seed", "torch.library.", "torch.fx.wrap",
    "warnings.", "logging.", "np.random.seed", "numpy.random.seed", "random.seed", "triton.set_allocator", "load_dotenv",
)
_NEVER_METHODS = frozenset({"run", "print", "show", "savefig", "save", "write", "close", "backward", "plot", "main"})

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class _Unit:
    """One statement that can be kept or blanked alone."""

    node: ast.stmt
    names: StatementNames
    children: list[list[_Unit]]
    parent: _Unit | None = None
    kept: bool = False


def slice_module(text: str, keep: Iterable[str] | None = None, *, gentle: bool = False) -> str:
    """Returns `text` with every top-level statement blanked that `keep` does not need.

    keep: names of functions, classes or variables (a dotted name counts by its first part); None keeps every definition.
    gentle: blank only what is plainly a check, a print or a benchmark run. For helper modules, whose other statements
    may matter. Raises SyntaxError as `compile` does; the result has as many lines as `text`.
    """
    clean = text.lstrip("\ufeff")
    tree = parse(clean)
    units = [_unit(node, None) for node in tree.body]
    if gentle:
        for unit in _walk(units):
            unit.kept = not _is_check(unit.node)
    else:
        _mark(units, keep)
    return _Blanker(clean).blank(units)


def parse(text: str) -> ast.Module:
    """ast.parse that answers every unreadable text with SyntaxError."""
    try:
        return ast.parse(text)
    except ValueError as error:  # null bytes, before Python 3.12
        raise SyntaxError(str(error)) from error


def override_constants(text: str, sizes: Mapping[str, int]) -> str:
    """Rewrites `NAME = <integer expression>` at module level for each name in `sizes`; lines stay where they are.

    Understands `A = B = 4`, `A: int = 4`, `A, B = 4, 8` and constant arithmetic such as `2 ** 12`. Other assignments to
    the name stay as they are.
    """
    if not sizes:
        return text
    try:
        tree = parse(text.lstrip("\ufeff"))
    except SyntaxError:
        return text
    lines = Lines(text.lstrip("\ufeff"))
    edits: list[tuple[int, int, str]] = []
    for node in tree.body:
        for target, value in _assigned_constants(node):
            if target in sizes:
                edits.append((*lines.span(value), str(int(sizes[target]))))
    return lines.replace(sorted(set(edits)))


def _assigned_constants(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    else:
        return
    for target, value in pairs:
        if isinstance(target, ast.Name) and constant_int(value) is not None:
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, its in zip(target.elts, value.elts, strict=True):
                if isinstance(one, ast.Name) and constant_int(its) is not None:
                    yield one.id, its


def constant_int(node: ast.expr) -> int | None:
    """The value of an integer literal or of plain arithmetic over literals, else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_int(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = constant_int(node.left), constant_int(node.right)
        if left is None or right is None:
            return None
        return _arithmetic(node.op, left, right)
    return None


def _arithmetic(op: ast.operator, left: int, right: int) -> int | None:
    if isinstance(op, ast.Mult):
        return left * right
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.FloorDiv) and right:
        return left // right
    if isinstance(op, ast.Pow) and 0 <= right <= 64 and abs(left) <= 1024:
        return int(left**right)
    if isinstance(op, ast.LShift) and 0 <= right <= 64:
        return left << right
    return None


def module_dependencies(text: str, path: str, root: str) -> list[str]:
    """Absolute paths of the project files that `text` imports, transitively, by syntax alone. Reads the disk.

    path: where `text` belongs; fixes relative imports and the folder searched first. root: the project's folder. Files
    outside both are not followed. The file itself is not in the list.
    """
    found: list[str] = []
    seen = {os.path.abspath(path)}
    queue = [(text, os.path.abspath(path))]
    while queue:
        current_text, current = queue.pop()
        for dependency in _direct_dependencies(current_text, current, root):
            if dependency in seen:
                continue
            seen.add(dependency)
            found.append(dependency)
            try:
                with open(dependency, encoding="utf-8", errors="replace") as handle:
                    queue.append((handle.read(), dependency))
            except OSError:
                continue
    return found


def _direct_dependencies(text: str, path: str, root: str) -> Iterator[str]:
    try:
        tree = parse(text.lstrip("\ufeff"))
    except SyntaxError:
        return
    folder = os.path.dirname(path)
    bases = list(dict.fromkeys([folder, package_root(folder), os.path.abspath(root) if root else folder]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolve(alias.name, (), bases)
        elif isinstance(node, ast.ImportFrom):
            start = bases
            if node.level:
                start = [os.path.abspath(os.path.join(folder, *[".."] * (node.level - 1)))]
            yield from _resolve(node.module or "", tuple(alias.name for alias in node.names), start)


def _resolve(dotted: str, members: tuple[str, ...], bases: list[str]) -> Iterator[str]:
    parts = dotted.split(".") if dotted else []
    for base in bases:
        location = os.path.join(base, *parts) if parts else base
        if os.path.isfile(location + ".py") and parts:
            yield location + ".py"
            return
        if os.path.isdir(location):
            hits = []
            for depth in range(1, len(parts) + 1):
                init = os.path.join(base, *parts[:depth], "__init__.py")
                if os.path.isfile(init):
                    hits.append(init)
            for member in members:
                for candidate in (os.path.join(location, member + ".py"), os.path.join(location, member, "__init__.py")):
                    if os.path.isfile(candidate):
                        hits.append(candidate)
            if hits:
                yield from hits
                return


def package_root(folder: str) -> str:
    """The first folder at or above `folder` that is not itself a package."""
    current = os.path.abspath(folder)
    while os.path.isfile(os.path.join(current, "__init__.py")):
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    return current


# ---------------------------------------------------------------------------------------------------------------- units


def _unit(node: ast.stmt, parent: _Unit | None) -> _Unit:
    unit = _Unit(node=node, names=names_of(node), children=[], parent=parent)
    if isinstance(node, Definition):
        return unit
    for body in _bodies(node):
        unit.children.append([_unit(child, unit) for child in body])
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


def _walk(units: list[_Unit]) -> Iterator[_Unit]:
    for unit in units:
        yield unit
        for body in unit.children:
            yield from _walk(body)


def _mark(units: list[_Unit], keep: Iterable[str] | None) -> None:
    leaves = [unit for unit in _walk(units) if not unit.children and not _under_main_guard(unit)]
    binders: dict[str, list[_Unit]] = {}
    mutators: dict[str, list[_Unit]] = {}
    for unit in leaves:
        for name in unit.names.binds:
            binders.setdefault(name, []).append(unit)
        for name in unit.names.mutates:
            mutators.setdefault(name, []).append(unit)
    for unit in _walk(units):
        for name in unit.names.header_binds if unit.children else ():
            binders.setdefault(name, []).append(unit)
    queue: list[_Unit] = [unit for unit in leaves if _always(unit)]
    if keep is None:
        queue += [unit for unit in leaves if isinstance(unit.node, Definition)]
    else:
        for name in keep:
            queue += binders.get(name.split(".")[0], [])
    asked: set[str] = set()
    while queue:
        unit = queue.pop()
        for one in _with_parents(unit):
            if one.kept:
                continue
            one.kept = True
            names = set(one.names.header_needs if one.children else one.names.needs | one.names.binds)
            for name in names - asked:
                queue += binders.get(name, []) if name not in one.names.binds or one.children else []
                queue += _kept_mutators(binders.get(name, []), mutators.get(name, []))
            asked |= names - one.names.binds


def _kept_mutators(binders: list[_Unit], mutators: list[_Unit]) -> list[_Unit]:
    """Of the statements that change an object in place, those that its users depend on."""
    assigned = any(not isinstance(one.node, (*Definition, ast.Import, ast.ImportFrom)) for one in binders)
    defined = any(isinstance(one.node, Definition) for one in binders)
    kept = []
    for unit in mutators:
        if _is_check(unit.node):
            continue
        is_call = isinstance(unit.node, ast.Expr)
        if assigned or (defined and not is_call):
            kept.append(unit)
    return kept


def _with_parents(unit: _Unit) -> Iterator[_Unit]:
    current: _Unit | None = unit
    while current is not None:
        yield current
        current = current.parent


def _under_main_guard(unit: _Unit) -> bool:
    return any(is_main_guard(one.node) for one in _with_parents(unit))


def is_main_guard(node: ast.stmt) -> bool:
    """True for `if __name__ == '__main__':`."""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def _always(unit: _Unit) -> bool:
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


def _is_check(node: ast.stmt) -> bool:
    """Plainly a check, a print or a benchmark run: nothing that a definition could need."""
    if isinstance(node, ast.Assert) or is_main_guard(node):
        return True
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    name = _dotted(node.value.func)
    if name in {"print", "torch.testing.assert_close", "triton.testing.assert_close", "pprint", "main", "pytest.main"}:
        return True
    return "." in name and name.split(".")[-1] in _NEVER_METHODS


# ------------------------------------------------------------------------------------------------------------- blanking


class _Blanker:
    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.chars = list(text)

    def blank(self, units: list[_Unit]) -> str:
        for unit in units:
            self._visit(unit, alone=self._alone(unit))
        return "".join(self.chars)

    def _visit(self, unit: _Unit, *, alone: bool) -> None:
        if not unit.kept:
            self._erase(unit, alone=alone)
            return
        for body in unit.children:
            for child in body:
                self._visit(child, alone=False)

    def _alone(self, unit: _Unit) -> bool:
        start, end = self.lines.span(unit.node)
        text = self.lines.text
        before = text[start - self.lines.position(start)[1] + 1 : start]
        after = text[end:].split("\n", 1)[0].strip()
        return not before.strip() and (not after or after.startswith("#"))

    def _erase(self, unit: _Unit, *, alone: bool) -> None:
        start, end = self.lines.span(unit.node)
        for index in range(start, end):
            if self.chars[index] not in "\r\n":
                self.chars[index] = " "
        if not alone:
            self.chars[start] = "0"  # an expression that does nothing: bodies and `a; b` lines stay valid
