"""Owns putting several modules' code into one: a slice of each, its own names made unlike the others'. Never runs it.

Renames by scope, not by spelling: attributes, keyword arguments, parameters and strings stay. Imports are shared; two
modules that import different things under one name cannot be merged, and it says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evalcore.slicing import slice_module


class CannotMerge(Exception):
    """These texts cannot stand in one module; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One module's share."""

    text: str
    """Its definitions, renamed, without imports."""
    imports: tuple[str, ...]
    """Import statements, each on one line."""
    names: dict[str, str]
    """Old top-level name -> new one."""


def part(text: str, keep: Iterable[str], suffix: str) -> Part:
    """The slice of `text` that `keep` needs, its own top-level names ending in `suffix`. Raises CannotMerge."""
    try:
        sliced = slice_module(text, keep)
        tree = ast.parse(sliced)
    except SyntaxError as problem:
        raise CannotMerge(f"a candidate's text does not parse: {problem}") from problem
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    bound_by_imports = {name for node in imports for name in _bound(node)}
    own = {name for node in tree.body for name in _top_names(node)} - bound_by_imports
    names = {name: f"{name}_{suffix}" for name in own if not name.startswith("__")}
    renamer = _Renamer(names)
    renamer.visit(tree)
    gone: list[ast.stmt] = [*imports, *([tree.body[0]] if ast.get_docstring(tree) is not None else [])]
    cuts = [(node.lineno, node.end_lineno or node.lineno) for node in gone]
    body = _tidy(_without(_edited(sliced, renamer.edits), cuts))
    return Part(text=body, imports=tuple(ast.unparse(node) for node in imports), names=names)


def shared_imports(parts: Iterable[Part]) -> list[str]:
    """All import lines once, `__future__` first. Raises CannotMerge where one name would mean two things."""
    meaning: dict[str, str] = {}
    lines: list[str] = []
    for each in parts:
        for line in each.imports:
            node = ast.parse(line).body[0]
            for name, what in _meanings(node):
                if meaning.setdefault(name, what) != what:
                    raise CannotMerge(f"{name!r} means {meaning[name]} in one candidate and {what} in another")
            if line not in lines:
                lines.append(line)
    return sorted(lines, key=lambda line: (not line.startswith("from __future__"), line.startswith("from "), line))


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)


def _meanings(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0], alias.name.split(".")[0])
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"


def _top_names(node: ast.stmt) -> set[str]:
    """Names that a top-level statement binds in the module."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    return _stored(node)


def _stored(node: ast.AST) -> set[str]:
    """Names bound by a statement, not looking into functions, classes, lambdas and comprehensions."""
    found: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(each.name)
            continue
        if isinstance(each, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(each, ast.Name) and isinstance(each.ctx, (ast.Store, ast.Del)):
            found.add(each.id)
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            found |= set(_bound(each))
        elif isinstance(each, ast.ExceptHandler) and each.name:
            found.add(each.name)
        pending += ast.iter_child_nodes(each)
    return found


def _locals(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    arguments = node.args
    found = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    found |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
    if isinstance(node, ast.Lambda):
        return found
    for statement in node.body:
        found |= _stored(statement)
    declared = {name for each in ast.walk(node) if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
    return found - declared


@dataclass(slots=True)
class _Renamer(ast.NodeVisitor):
    """Collects edits: (line, start byte, end byte, new text)."""

    names: dict[str, str]
    edits: list[tuple[int, int, int, str]] = field(default_factory=list)
    scopes: list[set[str]] = field(default_factory=list)
    """Local names of the enclosing functions and comprehensions."""

    def _new(self, name: str) -> str | None:
        return None if any(name in scope for scope in self.scopes) else self.names.get(name)

    def visit_Name(self, node: ast.Name) -> None:
        new = self._new(node.id)
        if new is not None:
            self.edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, new))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Before Python 3.12 places inside an f-string are not known: such a string is written anew, whole."""
        wanted = [each for each in ast.walk(node) if isinstance(each, ast.Name) and self._new(each.id) is not None]
        if not wanted:
            return
        if node.end_lineno != node.lineno:
            raise CannotMerge(f"an f-string over several lines names {wanted[0].id!r}")
        for each in wanted:
            each.id = self._new(each.id) or each.id
        self.edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, ast.unparse(node)))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._definition(node, "def")
        for each in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self._outside(each)
        self.scopes.append(_locals(node))
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def _outside(self, node: ast.AST) -> None:
        """Decorators, defaults and annotations belong to the scope around a function."""
        if isinstance(node, ast.arguments):
            for each in (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg):
                if each is not None and each.annotation is not None:
                    self.visit(each.annotation)
            for default in (*node.defaults, *(each for each in node.kw_defaults if each is not None)):
                self.visit(default)
        else:
            self.visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._outside(node.args)
        self.scopes.append(_locals(node))
        self.visit(node.body)
        self.scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._definition(node, "class")
        for each in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self.visit(each)
        own = {name for statement in node.body for name in _stored(statement)}
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._method(statement)
            else:
                self.scopes.append(own)
                self.visit(statement)
                self.scopes.pop()

    def _method(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A class's names are not seen inside its methods, so its scope is not on the stack."""
        self.scopes.append({node.name})
        self.scopes[-1].clear()
        for each in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self._outside(each)
        self.scopes[-1] |= _locals(node)
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        inner = {each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        self.scopes.append(inner)
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Global(self, node: ast.Global) -> None:
        if any(name in self.names for name in node.names):
            words = ", ".join(self.names.get(name, name) for name in node.names)
            self.edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, f"global {words}"))

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, word: str) -> None:
        """The name in `def NAME` or `class NAME`: where it stands is found by its word."""
        new = self._new(node.name)
        if new is not None:
            self.edits.append((node.lineno, -1, -1, f"{word} {node.name} {new}"))


def _edited(text: str, edits: list[tuple[int, int, int, str]]) -> str:
    lines = [line.encode() for line in text.split("\n")]
    for number, start, end, new in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
        line = lines[number - 1]
        if start < 0:
            word, old, name = new.split(" ")
            lines[number - 1] = re.sub(rb"\b(%s\s+)%s\b" % (word.encode(), old.encode()),
                                       lambda found, name=name: found[1] + name.encode(), line, count=1)  # type: ignore[misc]  # fmt: skip
        else:
            lines[number - 1] = line[:start] + new.encode() + line[end:]
    return "\n".join(line.decode() for line in lines)


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    lines = text.split("\n")
    for first, last in cuts:
        for number in range(first - 1, last):
            lines[number] = ""
    return "\n".join(lines)


def _tidy(text: str) -> str:
    """No trailing blanks, at most two empty lines in a row."""
    stripped = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{4,}", "\n\n\n", stripped).strip("\n") + "\n"
