"""Owns the slice of a module: what of a text has to run so that its definitions can be used. Never runs it.

A person's file often runs asserts and whole benchmarks when it is imported. The slice keeps imports, definitions and
the assignments that those need, and blanks every other top-level statement with spaces, so that each line and each
column stays where the person wrote it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping

from evalcore.blanking import Blanker
from evalcore.slice_marks import Marker, is_check, unit_of, walk
from evalcore.source_lines import Lines


def slice_module(
    text: str, keep: Iterable[str] | None = None, *, gentle: bool = False, lean: bool = False
) -> str:
    """Returns `text` with every top-level statement blanked that `keep` does not need.

    keep: names of functions, classes or variables (a dotted name counts by its first part); None keeps every
    definition.
    gentle: blank only what is plainly a check, a print or a benchmark run. For helper modules, whose other statements
    may matter. lean: drop unneeded imports as well, for checks that should touch as little as they can. Raises
    SyntaxError as `compile` does; the result has as many lines as `text`.
    """
    clean = text.lstrip("\ufeff")
    tree = parse(clean)
    units = [unit_of(node, None) for node in tree.body]
    if gentle:
        for unit in walk(units):
            unit.kept = not is_check(unit.node)
    else:
        Marker(units).mark(keep, lean=lean)
    return Blanker(clean).blank(units)


def bound_names(text: str) -> frozenset[str]:
    """Every name that the module's statements bind. Raises SyntaxError."""
    units = [unit_of(node, None) for node in parse(text.lstrip("\ufeff")).body]
    return frozenset(name for unit in units for name in unit.names.binds)


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
        pairs: list[tuple[ast.expr, ast.expr]] = [(node.target, node.value)]
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
    """Files that one import reads: the packages on the way, the module, and members that are modules themselves."""
    parts = dotted.split(".") if dotted else []
    for base in bases:
        location = os.path.join(base, *parts)
        wanted = [os.path.join(base, *parts[:depth], "__init__.py") for depth in range(0 if not parts else 1, len(parts))]
        wanted += [location + ".py"] if parts else []
        wanted.append(os.path.join(location, "__init__.py"))
        for member in members:
            wanted += [os.path.join(location, member + ".py"), os.path.join(location, member, "__init__.py")]
        hits = [path for path in wanted if os.path.isfile(path)]
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
