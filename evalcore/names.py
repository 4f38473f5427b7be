"""Owns which names a statement binds, mutates and needs. Never resolves them and never runs anything.

Names are read off the compiled code of the statement, so that a function's own locals are never taken for globals.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_MUTATING_METHODS_SKIP = frozenset({"run", "print", "show", "backward", "plot", "main", "write", "close", "savefig"})


@dataclass(frozen=True, slots=True)
class StatementNames:
    """Names of one module-level statement."""

    binds: frozenset[str]
    """Names that it assigns, imports or defines (also by `global` inside a function)."""
    mutates: frozenset[str]
    """Names whose object it changes in place: `NAME += x`, `NAME.append(x)`, `NAME[k] = v`, `NAME.attr = v`."""
    needs_now: frozenset[str]
    """Global names that it reads when it runs: decorators, defaults, class bodies, right-hand sides."""
    needs_later: frozenset[str]
    """Global names that functions defined in it read when they are called."""
    header_needs: frozenset[str]
    """For a compound statement: names that its own line reads (a test, an iterable, a context)."""
    header_binds: frozenset[str]
    """For a compound statement: names that its own line binds (a loop variable, `as name`)."""


def dotted(node: ast.AST | None) -> str:
    """'torch.nn.functional' for a chain of names and attributes, '' for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def names_of(node: ast.stmt) -> StatementNames:
    """Names of a module-level statement; compound statements include what stands inside them."""
    now, later = _loads(node)
    return StatementNames(
        binds=frozenset(_binds(node)),
        mutates=frozenset(_mutates(node)),
        needs_now=frozenset(now),
        needs_later=frozenset(later),
        header_needs=frozenset(_header_needs(node)),
        header_binds=frozenset(_header_binds(node)),
    )


def _split_loads(code: CodeType, now: set[str], later: set[str]) -> None:
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        reads = name.startswith("LOAD") and ("GLOBAL" in name or "NAME" in name or "CLASSDEREF" in name)
        if reads and isinstance(instruction.argval, str):
            now.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _split_loads(constant, now if _runs_at_once(constant) else later, later)


def _runs_at_once(code: CodeType) -> bool:
    """True for a class body or a comprehension, which run where they stand; False for a function."""
    return not code.co_flags & inspect.CO_OPTIMIZED or code.co_name.endswith(("comp>", "<genexpr>"))


def _loads(node: ast.stmt) -> tuple[set[str], set[str]]:
    now: set[str] = set()
    later: set[str] = set()
    try:
        code = compile(ast.Module(body=[node], type_ignores=[]), "<slice>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # `return` or `await` outside a function and the like: every name that stands there
        now.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
        return now, later
    _split_loads(code, now, later)
    now.update(_aug_names(node))
    return now, later


def _aug_names(node: ast.stmt) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def _header_needs(node: ast.stmt) -> Iterator[str]:
    heads: list[ast.expr] = []
    for name in ("test", "iter", "subject"):
        part = getattr(node, name, None)
        if isinstance(part, ast.expr):
            heads.append(part)
    heads += [item.context_expr for item in getattr(node, "items", ())]
    heads += [handler.type for handler in getattr(node, "handlers", ()) if handler.type is not None]
    for case in getattr(node, "cases", ()):
        heads += [part for part in ast.walk(case.pattern) if isinstance(part, ast.expr)]
        heads += [case.guard] if case.guard is not None else []
    for head in heads:
        yield from (part.id for part in ast.walk(head) if isinstance(part, ast.Name))


def _header_binds(node: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(node, (ast.For, ast.AsyncFor)):
        targets.append(node.target)
    for item in getattr(node, "items", ()):
        if item.optional_vars is not None:
            targets.append(item.optional_vars)
    for target in targets:
        yield from _target_names(target)
    for handler in getattr(node, "handlers", ()):
        if handler.name:
            yield handler.name


def _target_names(target: ast.expr) -> Iterator[str]:
    for part in ast.walk(target):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def _binds(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0]
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            yield part.id
        elif isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            yield part.name
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            for alias in part.names:
                yield alias.asname or alias.name.split(".")[0]


def _mutates(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.AugAssign):
        yield from _root(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                yield from _root(target)
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield from _root(target)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr not in _MUTATING_METHODS_SKIP:
            yield from _root(function.value)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
