"""Owns what a binding is, and a text read by syntax (Source). Never imports or runs a person's code, reads no file.

Everything in `evalcore.bindings` works on text that it was given; siblings come through the `read` callable.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from evalcore.jobs import Refusal
from evalcore.problem import Problem

_LOADS = "_odyssey_loads"
_STORES = "_odyssey_stores"
Reader = Callable[[str], "str | None"]
"""Absolute path -> text (an unsaved buffer wins over the disk), or None where there is no such file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One way to judge kernels of one file."""

    problem: Problem
    kernels: tuple[str, ...]
    """All kernels of the file that this binding exercises, helpers included, in file order."""
    wrapper: str
    """What is called, for a person: 'softmax', 'ModelNew', 'attention'."""
    evidence: str
    """Why it was bound, for a person: 'torch.allclose in line 142'."""
    line: int = 0
    """1-based line of the evidence in the candidate's file; 0 where the evidence lies elsewhere."""


@dataclass(frozen=True, slots=True)
class Source:
    """A Python text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The file's name, the first half of a problem's id."""
        return PurePath(self.path).name


def parse(path: str, text: str) -> Source | Refusal:
    """The tree of a text, or a refusal that names the line where Python's own syntax ends."""
    try:
        return Source(path, text, ast.parse(text.removeprefix("\ufeff")))
    except SyntaxError as error:
        where = f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
        return Refusal(
            code="syntax_error", message=f"not Python yet ({where})", remedy="Finish the line and save again."
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return Refusal(code="unreadable", message=f"cannot be read as Python: {error}", remedy="Save it as UTF-8 text.")


def no_reference(what: str, why: str = "", *, cuda: bool = False) -> Refusal:
    """The refusal for a kernel that is bound to nothing, with the two ways to give it a reference."""
    if cuda:
        return Refusal(
            code="no_reference",
            message=f"{what} has no reference to be compared with",
            remedy="Write `// odyssey: reference=torch.relu(x) inputs=x=torch.randn(1024) grid=(4,) block=(256,) "
            "args=(x, out, 1024) outputs=out` above it, or give it a [[kernel]] table in odyssey.toml.",
        )
    reason = f" ({why})" if why else ""
    return Refusal(
        code="no_reference",
        message=f"{what} has no reference to be compared with{reason}",
        remedy="Compare it with torch in this file, e.g. `torch.testing.assert_close(mine(x), torch.softmax(x, 1))`, "
        "or write `# odyssey: reference=... inputs=...` above it.",
    )


def unparse(node: ast.AST) -> str:
    """The source of a tree; '' for what cannot be written."""
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError, AttributeError):
        return ""


def loads(node: ast.AST) -> frozenset[str]:
    """Names that are read anywhere in a tree, nested functions included. Remembered for statements."""
    known = getattr(node, _LOADS, None)
    if known is None:
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
        known = frozenset(each.id for each in names if isinstance(each.ctx, ast.Load))
        if isinstance(node, ast.stmt):
            setattr(node, _LOADS, known)
    return known


def stores(node: ast.AST) -> frozenset[str]:
    """Names that a statement binds at its own level: assignments, loops, with, imports, definitions. Remembered."""
    known = getattr(node, _STORES, None)
    if known is None:
        known = frozenset(_stores(node))
        if isinstance(node, ast.stmt):
            setattr(node, _STORES, known)
    return known


def _stores(node: ast.AST) -> set[str]:
    found: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(each.name)
            continue
        if isinstance(each, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.split(".")[0] for alias in each.names}
        pending.extend(ast.iter_child_nodes(each))
    return found
