"""Owns a parsed candidate text as the screen's rules see it: what the candidate reaches, with names resolved.

Never decides. A person's file also holds benchmarks, tests and a main; only what the candidate's entry reaches, and
the statements that run when the module is loaded, are looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from evalcore.names import dotted

Find = Callable[["Text"], Iterable[tuple[ast.AST, str]]]
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CUDA_MARKS = ("__global__", "__device__", "cudaStream", "cudaGraph")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, how strong a hit is, and the function that finds hits."""

    name: str
    gate: bool
    proof: bool
    find: Find


@dataclass
class Text:
    """The tree with what rules ask of it."""

    tree: ast.Module
    lines: list[str] = field(default_factory=list)
    entry: str = ""
    module: str = ""
    candidate: str = ""

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Local name -> dotted origin, from every import in the text: {'F': 'torch.nn.functional'}."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.split(".")[0]
                    found[alias.asname or root] = alias.name if alias.asname else root
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                origin = dotted(node.value)
                if origin and origin.split(".")[0] in found and "." in origin:
                    first, _, rest = origin.partition(".")
                    found.setdefault(node.targets[0].id, f"{found[first]}.{rest}")
        return found

    def dotted(self, node: ast.AST) -> str:
        """'torch.cuda.Event' for an attribute chain on an imported name; the bare chain otherwise; '' for the rest."""
        chain = dotted(node)
        first, _, rest = chain.partition(".")
        origin = self.aliases.get(first, first)
        return f"{origin}.{rest}" if rest else origin

    @cached_property
    def reached(self) -> list[ast.stmt]:
        """Top-level definitions that the candidate's entry needs, itself included; all where no entry is known."""
        body = {node.name: node for node in self.tree.body if isinstance(node, _DEFS)}
        if self.candidate not in body:
            return [node for node in body.values() if node.name != self.entry or self.module]
        pending, seen = [self.candidate], set[str]()
        while pending:
            name = pending.pop()
            if name in seen or name not in body or (name == self.entry and name != self.candidate):
                continue
            seen.add(name)
            pending += [each.id for each in ast.walk(body[name]) if isinstance(each, ast.Name)]
        return [node for name, node in body.items() if name in seen]

    @cached_property
    def outer(self) -> list[ast.stmt]:
        """Statements that run when the module is loaded; not definitions, not `if __name__ == '__main__'`."""
        return [node for node in self.tree.body if not isinstance(node, _DEFS) and not _is_main(node)]

    @cached_property
    def inner_nodes(self) -> list[ast.AST]:
        """Every node in the reached definitions."""
        return [each for node in self.reached for each in ast.walk(node)]

    @cached_property
    def all_nodes(self) -> list[ast.AST]:
        """Every node in the reached definitions and the outer statements."""
        return self.inner_nodes + [each for node in self.outer for each in ast.walk(node)]

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions and methods in the reached definitions, device code (@triton.jit) left out."""
        found = [node for node in self.inner_nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return [node for node in found if not self.is_kernel(node)]

    def is_kernel(self, node: ast.AST) -> bool:
        """True for a function under triton.jit (also below autotune and heuristics)."""
        marks = [
            self.dotted(each.func if isinstance(each, ast.Call) else each)
            for each in getattr(node, "decorator_list", ())
        ]
        return any(mark.endswith((".jit", ".autotune", ".heuristics")) or mark == "jit" for mark in marks)

    def calls(self, *, inner: bool = True) -> Iterator[tuple[ast.Call, str]]:
        """(call, resolved dotted name of what is called) in the reached definitions, or also outside them."""
        for node in self.inner_nodes if inner else self.all_nodes:
            if isinstance(node, ast.Call):
                yield node, self.dotted(node.func)

    def mentions(self, *names: str) -> bool:
        """Whether any reached or outer node is an attribute or name of one of these."""
        for node in self.all_nodes:
            if isinstance(node, ast.Attribute) and node.attr in names:
                return True
            if isinstance(node, ast.Name) and node.id in names:
                return True
        return False

    def cuda_strings(self) -> Iterator[tuple[str, int]]:
        """String literals that hold CUDA text, with the line they begin on."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
                found = [mark for mark in _CUDA_MARKS if mark in node.value]
                if found:
                    yield node.value, node.lineno


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test)
    )


def strings(node: ast.AST) -> list[str]:
    """Every string constant below a node."""
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def is_launch(node: ast.AST) -> bool:
    """`kernel[grid](...)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
