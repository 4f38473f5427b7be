"""Owns one Triton kernel's body as rules look at it: calls, assignments in order, and where a name comes from.

Offsets are relative to the kernel's piece. Answers are by syntax: what cannot be seen is None, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from server.analysis.python_facts import FunctionFacts, PieceFacts
from server.analysis.syntax import arguments, dotted, source, unwrap, walk

_MOST_DEPTH = 24
_PASSING = {"make_block_ptr", "advance", "multiple_of", "max_contiguous", "broadcast_to", "make_tensor_descriptor"}
"""Calls whose result points where their first argument points."""


@dataclass(slots=True)
class Call:
    """A call in a kernel."""

    name: str
    """As written: 'tl.load', 'x.to'; '' where the function is no chain of names."""
    node: Node
    positional: list[Node]
    named: dict[str, Node]

    @property
    def last(self) -> str:
        """The last part of the name: 'load'."""
        return self.name.rsplit(".", 1)[-1]

    def argument(self, position: int, name: str) -> Node | None:
        """An argument by position or keyword."""
        return self.positional[position] if position < len(self.positional) else self.named.get(name)


@dataclass(slots=True)
class Assignment:
    """One binding of a name: `x = value`, `x += value`, `for x in value`."""

    start: int
    value: Node
    kind: str
    """'assign', 'augment', 'loop' or 'part' (one of several targets)."""


@dataclass(slots=True)
class KernelView:
    """A kernel with its calls and assignments."""

    facts: FunctionFacts
    piece: PieceFacts
    node: Node
    calls: list[Call] = field(default_factory=list)
    assignments: dict[str, list[Assignment]] = field(default_factory=dict)
    comparisons: list[Node] = field(default_factory=list)
    constexprs: frozenset[str] = frozenset()
    """Names of constexpr parameters."""
    runtime: frozenset[str] = frozenset()
    """Names of the other parameters: pointers, strides, sizes."""
    by_place: dict[tuple[int, int], Call] = field(default_factory=dict)

    def before(self, name: str, position: int) -> Assignment | None:
        """The last binding of `name` that stands before `position`; the first one where all stand after (a loop)."""
        found: Assignment | None = None
        for each in self.assignments.get(name, ()):
            if each.start >= position:
                break
            found = each
        return found

    def call_at(self, node: Node) -> Call | None:
        """The call that a node is."""
        return self.by_place.get((node.start_byte, node.end_byte))

    def leaves(self, node: Node, position: int, *, depth: int = 0) -> set[str]:
        """Names behind an expression, definitions followed, parameters and names without a definition kept."""
        found: set[str] = set()
        for each in identifiers(node):
            name = source(each)
            binding = self.before(name, position)
            if binding is None or depth >= _MOST_DEPTH:
                found.add(name)
            else:
                found |= self.leaves(binding.value, binding.start, depth=depth + 1)
        return found

    def pointer(self, node: Node, position: int, *, depth: int = 0) -> str | None:
        """The parameter that an address starts from: the leftmost term of its sum, definitions followed."""
        node = unwrap(node)
        if depth > _MOST_DEPTH:
            return None
        if node.type == "identifier":
            name = source(node)
            binding = self._origin(name, position)
            if binding is None:
                return name if name in self.runtime else None
            return self.pointer(binding.value, binding.start, depth=depth + 1)
        if node.type == "binary_operator":
            left = node.child_by_field_name("left")
            return self.pointer(left, position, depth=depth + 1) if left is not None else None
        if node.type == "call":
            inner = self._address_of(node)
            return self.pointer(inner, position, depth=depth + 1) if inner is not None else None
        return None

    def _address_of(self, node: Node) -> Node | None:
        """The address that a call passes on: a cast's head, a block pointer's base. No loaded pointer is followed."""
        call = self.call_at(node)
        function = node.child_by_field_name("function")
        if call is None or function is None:
            return None
        if call.last == "to" and function.type == "attribute":
            return function.child_by_field_name("object")
        return call.argument(0, "base") if call.last in _PASSING else None

    def _origin(self, name: str, position: int) -> Assignment | None:
        """The last plain binding before a position: `x += n` moves an address within what it points into."""
        found: Assignment | None = None
        for each in self.assignments.get(name, ()):
            if each.start >= position:
                break
            if each.kind != "augment":
                found = each
        return found


def view(facts: FunctionFacts, piece: PieceFacts) -> KernelView | None:
    """The view of a kernel; None where it is half-typed beyond reading. Kept with the piece."""
    if facts.node is None:
        return None
    key = f"view {facts.start}"
    known = piece.memo.get(key)
    if isinstance(known, KernelView):
        return known
    found = KernelView(
        facts, piece, facts.node,
        constexprs=frozenset(each.name for each in facts.params if each.constexpr),
        runtime=frozenset(each.name for each in facts.params if not each.constexpr),
    )  # fmt: skip
    body = facts.node.child_by_field_name("body")
    for node in walk(body) if body is not None else ():
        _collect(found, node)
    piece.memo[key] = found
    return found


def _collect(found: KernelView, node: Node) -> None:
    kind = node.type
    if kind == "call":
        positional, named = arguments(node)
        call = Call(dotted(node.child_by_field_name("function")) or _method(node), node, positional, named)
        found.calls.append(call)
        found.by_place[node.start_byte, node.end_byte] = call
    elif kind == "assignment":
        _bind(found, node.child_by_field_name("left"), node.child_by_field_name("right"), node.start_byte)
    elif kind == "augmented_assignment":
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        if target is not None and value is not None and target.type == "identifier":
            found.assignments.setdefault(source(target), []).append(Assignment(node.start_byte, value, "augment"))
    elif kind == "for_statement":
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        if target is not None and value is not None and target.type == "identifier":
            found.assignments.setdefault(source(target), []).append(Assignment(node.start_byte, value, "loop"))
    elif kind == "comparison_operator":
        found.comparisons.append(node)


def _bind(found: KernelView, target: Node | None, value: Node | None, start: int) -> None:
    if target is None or value is None:
        return
    if target.type == "identifier":
        found.assignments.setdefault(source(target), []).append(Assignment(start, value, "assign"))
    elif target.type in ("pattern_list", "tuple_pattern"):
        values = value.named_children if value.type in ("expression_list", "tuple") else []
        for index, each in enumerate(target.named_children):
            if each.type == "identifier":
                pair = values[index] if len(values) == target.named_child_count else value
                kind = "assign" if pair is not value else "part"
                found.assignments.setdefault(source(each), []).append(Assignment(start, pair, kind))


def _method(node: Node) -> str:
    """'.to' for a method of something that is no name: `(a + b).to(...)`."""
    function = node.child_by_field_name("function")
    if function is not None and function.type == "attribute":
        return "." + source(function.child_by_field_name("attribute"))
    return ""


def identifiers(node: Node) -> list[Node]:
    """Names that an expression reads; attributes' and keywords' own names are not among them."""
    found: list[Node] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if each.type == "identifier":
            found.append(each)
        elif each.type == "attribute":
            pending.append(each.named_children[0])
        elif each.type == "keyword_argument":
            value = each.child_by_field_name("value")
            if value is not None:
                pending.append(value)
        elif each.type == "call":
            function = each.child_by_field_name("function")
            if (
                function is not None
                and function.type == "attribute"
                and dotted(function).split(".")[0] not in ("tl", "triton")
            ):
                pending.append(function)
            holder = each.child_by_field_name("arguments")
            if holder is not None:
                pending.append(holder)
        else:
            pending.extend(reversed(each.named_children))
    return sorted(found, key=lambda each: each.start_byte)
