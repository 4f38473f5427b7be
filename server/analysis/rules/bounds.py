"""Owns upper bounds of index expressions inside a kernel, from the launches in sight. Never decides what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from server.analysis.kernel_view import Call, KernelView
from server.analysis.sight import LaunchView
from server.analysis.syntax import source, unwrap
from server.analysis.values import Number, cdiv, operate, whole

INT32 = 1 << 31
_MOST_DEPTH = 24
_BLOCKY = {"max_contiguous", "multiple_of", "broadcast_to", "expand_dims", "reshape", "view", "max_constancy"}


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest value of an index expression."""

    most: int
    exact: bool
    """True where that value is really reached."""
    wide: bool = False
    """True where it is computed in 64 bits."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """An operation whose result does not fit 32 bits, or nearly."""

    node: Node
    most: int


class Bounds:
    """Bounds of one kernel's expressions for one launch."""

    def __init__(self, kernel: KernelView, launch: LaunchView) -> None:
        self._kernel = kernel
        self._launch = launch
        self.largest: Overflow | None = None
        """The innermost operation with the largest 32-bit result that was met."""

    def of(self, node: Node, position: int, depth: int = 0) -> Bound | None:
        """The bound of an expression, or None where something in it is not known."""
        if depth > _MOST_DEPTH:
            return None
        node = unwrap(node)
        kind = node.type
        if kind == "integer":
            number = whole(source(node))
            return Bound(number, True) if number is not None else None
        if kind == "identifier":
            return self._name(source(node), position, depth)
        if kind == "binary_operator":
            return self._binary(node, position, depth)
        if kind == "subscript":
            head = node.child_by_field_name("value")
            return self.of(head, position, depth + 1) if head is not None else None
        if kind == "call":
            call = self._kernel.call_at(node)
            return self._call(call, position, depth) if call is not None else None
        return None

    def argument(self, name: str) -> Bound | None:
        """What a launch passes for a parameter. A value that needs 64 bits is passed in 64 bits."""
        value = self._launch.values.get(name)
        return Bound(value.most, value.exact, value.most >= INT32) if isinstance(value, Number) else None

    def _name(self, name: str, position: int, depth: int) -> Bound | None:
        bound = self._kernel.before(name, position)
        if bound is None:
            return self.argument(name)
        if bound.kind == "assign":
            return self.of(bound.value, bound.start, depth + 1)
        if bound.kind == "loop":
            return self._loop(bound.value, bound.start, depth)
        return None

    def _loop(self, node: Node, position: int, depth: int) -> Bound | None:
        """The last value of `range(stop)` or `range(start, stop, step)`."""
        call = self._kernel.call_at(node)
        if call is None or call.last not in ("range", "static_range") or not call.positional:
            return None
        parts = [self.of(each, position, depth + 1) for each in call.positional[:3]]
        stop = parts[1] if len(parts) > 1 else parts[0]
        if stop is None:
            return None
        return Bound(max(stop.most - 1, 0), False, stop.wide)

    def _binary(self, node: Node, position: int, depth: int) -> Bound | None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        one, other = self.of(left, position, depth + 1), self.of(right, position, depth + 1)
        if one is None or other is None:
            return None
        operator = source(node.child_by_field_name("operator"))
        value = operate(operator, Number(one.most, one.exact), Number(other.most, other.exact))
        if value is None:
            return None
        wide = one.wide or other.wide
        if operator in ("*", "+") and not wide and (self.largest is None or value.most > self.largest.most):
            inner = self.largest is not None and self.largest.most >= INT32
            if not inner:
                self.largest = Overflow(node, value.most)
        return Bound(value.most, value.exact, wide)

    def _call(self, call: Call, position: int, depth: int) -> Bound | None:
        if call.last == "to":
            return self._cast(call, position, depth)
        if call.last in ("program_id", "num_programs"):
            axis = call.argument(0, "axis")
            index = whole(source(axis)) if axis is not None else None
            grid = self._launch.grid
            number = grid[index] if index is not None and index < len(grid) else None
            less = 1 if call.last == "program_id" else 0
            return Bound(max(number.most - less, 0), number.exact) if number is not None else None
        if call.last == "arange" and len(call.positional) == 2:
            stop = self.of(call.positional[1], position, depth + 1)
            return Bound(stop.most - 1, stop.exact) if stop is not None else None
        if call.last == "cdiv" and len(call.positional) == 2:
            one, other = (self.of(each, position, depth + 1) for each in call.positional)
            number = cdiv(_number(one), _number(other))
            return Bound(number.most, number.exact) if number is not None else None
        if call.last in ("minimum", "min") and len(call.positional) == 2:
            parts = [self.of(each, position, depth + 1) for each in call.positional]
            known = [each for each in parts if each is not None]
            return Bound(min(each.most for each in known), False, all(each.wide for each in known)) if known else None
        if call.last in _BLOCKY and call.positional:
            return self.of(call.positional[0], position, depth + 1)
        return None

    def _cast(self, call: Call, position: int, depth: int) -> Bound | None:
        function = call.node.child_by_field_name("function")
        head = function.child_by_field_name("object") if function is not None else None
        inner = self.of(head, position, depth + 1) if head is not None else None
        target = call.argument(0, "dtype")
        wide = target is not None and source(target).endswith("int64")
        return Bound(inner.most, inner.exact, wide or inner.wide) if inner is not None else None


def _number(bound: Bound | None) -> Number | None:
    return Number(bound.most, bound.exact) if bound is not None else None


def offsets(kernel: KernelView, node: Node, position: int, depth: int = 0) -> list[tuple[Node, int]]:
    """(offset expression, where it stands) of an address: every term but the pointer itself, definitions followed."""
    node = unwrap(node)
    if depth > _MOST_DEPTH:
        return []
    if node.type == "identifier":
        found: list[tuple[Node, int]] = []
        for each in kernel.assignments.get(source(node), ()):
            if each.kind == "augment":
                continue
            if each.start < position:
                found = offsets(kernel, each.value, each.start, depth + 1)
        return found
    if node.type != "binary_operator" or source(node.child_by_field_name("operator")) not in ("+", "-"):
        return []
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    found = offsets(kernel, left, position, depth + 1) if left is not None else []
    return [*found, (right, position)] if right is not None else found
