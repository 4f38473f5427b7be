"""Owns the scopes of host code in one piece: which names a function or the module binds, and what it calls.

Never evaluates anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from server.analysis.kernel_view import Assignment
from server.analysis.python_facts import FunctionFacts, PieceFacts
from server.analysis.syntax import dotted, source, walk


@dataclass(slots=True)
class Scope:
    """A function, or the module (facts None): its bindings in order."""

    piece: PieceFacts | None
    function: FunctionFacts | None
    bindings: dict[str, list[Assignment]] = field(default_factory=dict)
    calls: list[tuple[str, Node]] = field(default_factory=list)
    """(name as written, call)."""


def read_scopes(piece: PieceFacts) -> list[Scope]:
    """Scopes of one piece: its host functions and its module level."""
    module = Scope(piece, None)
    functions = [each for each in piece.functions if not each.kernel and each.node is not None]
    scopes = [Scope(piece, each) for each in functions]
    kernels = [each for each in piece.functions if each.kernel]
    if kernels and not functions and piece.tree.root_node.named_child_count == 1:
        return [module]
    for node in walk(piece.tree.root_node):
        if node.type not in ("assignment", "call", "for_statement", "return_statement"):
            continue
        if any(each.start <= node.start_byte < each.end for each in kernels):
            continue
        inner = [
            each
            for each in scopes
            if each.function is not None and each.function.start <= node.start_byte < each.function.end
        ]
        scope = inner[-1] if inner else module
        if node.type == "call":
            name = dotted(node.child_by_field_name("function"))
            if name:
                scope.calls.append((name, node))
        elif node.type == "return_statement":
            for value in node.named_children[:1]:
                scope.bindings.setdefault("return", []).append(Assignment(node.start_byte, value, "assign"))
        else:
            _bind(scope, node)
    return [module, *scopes]


def _bind(scope: Scope, node: Node) -> None:
    target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    if target is None or value is None:
        return
    kind = "loop" if node.type == "for_statement" else "assign"
    if target.type == "identifier":
        scope.bindings.setdefault(source(target), []).append(Assignment(node.start_byte, value, kind))
    elif target.type in ("pattern_list", "tuple_pattern") and kind == "assign":
        for index, each in enumerate(target.named_children):
            if each.type == "identifier":
                bound = Assignment(node.start_byte, value, f"part {index}")
                scope.bindings.setdefault(source(each), []).append(bound)


def last_before(bindings: list[Assignment], position: int) -> Assignment | None:
    """The last binding that stands before a position."""
    found: Assignment | None = None
    for each in bindings:
        if each.start >= position:
            break
        found = each
    return found
