"""Owns the scopes of host code in one piece: which names a function or the module binds, and what it calls.

Never evaluates anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from server.analysis.kernel_view import Assignment
from server.analysis.python_facts import FunctionFacts, LaunchFacts, PieceFacts
from server.analysis.syntax import dotted, source, walk


@dataclass(slots=True)
class Scope:
    """A function, or the module (facts None): its bindings in order."""

    piece: PieceFacts | None
    function: FunctionFacts | None
    bindings: dict[str, list[Assignment]] = field(default_factory=dict)
    calls: list[tuple[str, Node]] = field(default_factory=list)
    """(name as written, call)."""


@dataclass(slots=True)
class _PieceHost:
    """The host code of one piece, by name. Kept with the piece."""

    bindings: dict[str, list[Assignment]] = field(default_factory=dict)
    """At module level."""
    scopes: dict[str, Scope] = field(default_factory=dict)
    calls: dict[str, list[tuple[Node, Scope | None]]] = field(default_factory=dict)
    """Called name -> calls with the function around them, None at module level."""
    launches: dict[str, list[LaunchFacts]] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    """'LayerNorm.apply' -> module-level names bound to it."""


class HostIndex:
    """Host code of all pieces, asked by name. Cheap to make: it only collects what the pieces keep."""

    def __init__(self, pieces: list[PieceFacts]) -> None:
        self.module = Scope(None, None)
        """Stands for the module level of all pieces; its bindings are asked for by `bindings`."""
        self._pieces = [(piece, _host_of(piece)) for piece in pieces]

    def bindings(self, name: str, scope: Scope) -> list[Assignment]:
        """Bindings of a name in a function, or at module level in order."""
        if scope.function is not None:
            return scope.bindings.get(name, [])
        return [each for _piece, host in self._pieces if name in host.bindings for each in host.bindings[name]]

    def scope(self, qualname: str) -> Scope | None:
        """A function's scope by its qualified name, the last one of that name."""
        return next((host.scopes[qualname] for _piece, host in reversed(self._pieces) if qualname in host.scopes), None)

    def calls(self, name: str) -> list[tuple[Node, Scope]]:
        """Calls of a name, each with the scope around it."""
        return [
            (call, scope or self.module)
            for _piece, host in self._pieces
            if name in host.calls
            for call, scope in host.calls[name]
        ]

    def launches(self, kernel: str) -> list[tuple[LaunchFacts, PieceFacts]]:
        """Launches of a kernel with their pieces."""
        return [
            (each, piece) for piece, host in self._pieces if kernel in host.launches for each in host.launches[kernel]
        ]

    def aliases(self, target: str) -> list[str]:
        """Module-level names for `target`, itself included."""
        return [target, *(name for _piece, host in self._pieces for name in host.aliases.get(target, ()))]


def _host_of(piece: PieceFacts) -> _PieceHost:
    known = piece.memo.get("host")
    if isinstance(known, _PieceHost):
        return known
    found = _PieceHost()
    for scope in _read_scopes(piece):
        if scope.function is None:
            found.bindings = scope.bindings
        else:
            found.scopes[scope.function.qualname] = scope
        for name, call in scope.calls:
            found.calls.setdefault(name, []).append((call, scope if scope.function is not None else None))
    for launch in piece.launches:
        found.launches.setdefault(launch.kernel, []).append(launch)
    for name, bound in found.bindings.items():
        for each in bound:
            if each.value.type == "attribute":
                found.aliases.setdefault(dotted(each.value), []).append(name)
    piece.memo["host"] = found
    return found


def _read_scopes(piece: PieceFacts) -> list[Scope]:
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
