"""Owns names in a kernel's text that exist nowhere: wrong whatever the types are. Never compiles."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any


def undefined(node: ast.FunctionDef, namespace: Mapping[str, Any]) -> Iterator[tuple[ast.expr, str]]:
    """(node, message) of names and module attributes in a kernel that exist nowhere, whatever the types are."""
    bound = {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
    bound |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    bound |= {part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef)}
    for statement in node.body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                if part.id not in bound and part.id not in namespace and not hasattr(builtins, part.id):
                    yield part, f"NameError: {part.id} is not defined"
            elif isinstance(part, ast.Attribute):
                missing = _missing_attribute(part, bound, namespace)
                if missing:
                    yield part, missing


def _missing_attribute(node: ast.Attribute, bound: set[str], namespace: Mapping[str, Any]) -> str | None:
    chain: list[str] = []
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        chain.append(root.attr)
        root = root.value
    if not isinstance(root, ast.Name) or root.id in bound:
        return None
    value = namespace.get(root.id)
    for name in reversed(chain):
        if not isinstance(value, ModuleType) or not value.__name__.startswith("triton"):
            return None
        if not hasattr(value, name):
            return f"AttributeError: module {value.__name__!r} has no attribute {name!r}" if name == node.attr else None
        value = getattr(value, name)
    return None
