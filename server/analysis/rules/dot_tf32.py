"""Owns dot-tf32: a `tl.dot` of two float32 operands without `input_precision`, which rounds them to TF32."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from server.analysis.finding import Severity
from server.analysis.kernel_view import Call, KernelView
from server.analysis.rules.draft import Draft, Remedy, before_closing
from server.analysis.sight import Sight
from server.analysis.syntax import source, unwrap
from server.analysis.values import TensorValue

CODE = "dot-tf32"
_CHOSEN = ("input_precision", "allow_tf32")
_SAME = {"trans", "exp", "exp2", "log", "sqrt", "abs", "reshape", "view", "broadcast_to", "expand_dims", "permute", "T"}
_MOST_DEPTH = 16


def check(kernel: KernelView, sight: Sight) -> Iterator[Draft]:
    """One finding at each such call."""
    dots = [call for call in kernel.calls if call.name in ("tl.dot", "triton.language.dot")]
    if not dots:
        return
    types = _Types(kernel, sight)
    for call in dots:
        if any(word in call.named for word in _CHOSEN) or len(call.positional) > 3:
            continue
        first, second = call.argument(0, "input"), call.argument(1, "other")
        if first is None or second is None:
            continue
        position = call.node.start_byte
        if types.of(first, position) == "float32" and types.of(second, position) == "float32":
            yield _draft(kernel, call)


def _draft(kernel: KernelView, call: Call) -> Draft:
    function = call.node.child_by_field_name("function") or call.node
    change = before_closing(kernel.piece.data, call.node.end_byte, 'input_precision="ieee"')
    return Draft(
        code=CODE, severity=Severity.INFORMATION, piece=kernel.piece, start=function.start_byte, end=function.end_byte,
        message="both operands are float32, and tl.dot rounds them to TF32 (about 3 digits) unless told otherwise",
        remedies=(Remedy('Add input_precision="ieee"', (change,)),),
    )  # fmt: skip


class _Types:
    """Element types of expressions, as far as casts, accumulators and the tensors in sight show."""

    def __init__(self, kernel: KernelView, sight: Sight) -> None:
        self._kernel = kernel
        self._sight = sight

    def of(self, node: Node, position: int, depth: int = 0) -> str | None:
        """torch's name of the element type; a value that came from a narrower type counts as narrow."""
        if depth > _MOST_DEPTH:
            return None
        node = unwrap(node)
        if node.type == "identifier":
            bound = self._kernel.before(source(node), position)
            return (
                self.of(bound.value, bound.start, depth + 1) if bound is not None and bound.kind == "assign" else None
            )
        if node.type == "binary_operator":
            return self._binary(node, position, depth)
        if node.type == "subscript":
            head = node.child_by_field_name("value")
            return self.of(head, position, depth + 1) if head is not None else None
        if node.type == "call":
            call = self._kernel.call_at(node)
            return self._call(call, position, depth) if call is not None else None
        return None

    def _binary(self, node: Node, position: int, depth: int) -> str | None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        one, other = self.of(left, position, depth + 1), self.of(right, position, depth + 1)
        if "float32" in (one, other):
            return "float32"
        plain = {"integer", "float"}
        if unwrap(right).type in plain:
            return one
        return other if unwrap(left).type in plain else (one if one == other else None)

    def _call(self, call: Call, position: int, depth: int) -> str | None:
        if call.last == "to":
            return self._cast(call, position, depth)
        if not call.name.startswith(("tl.", "triton.")):
            return None
        if call.last == "load":
            return self._loaded(call, position)
        if call.last in ("zeros", "full"):
            node = call.named.get("dtype") or (call.positional[-1] if len(call.positional) > 1 else None)
            return source(node).removeprefix("tl.") if node is not None else None
        if call.last == "where" and len(call.positional) == 3:
            return self.of(call.positional[1], position, depth + 1)
        if call.last in _SAME and call.positional:
            return self.of(call.positional[0], position, depth + 1)
        return None

    def _cast(self, call: Call, position: int, depth: int) -> str | None:
        """A cast from a type that TF32 holds exactly loses nothing, so it counts as that type."""
        target = call.argument(0, "dtype")
        name = source(target).removeprefix("tl.") if target is not None else ""
        function = call.node.child_by_field_name("function")
        head = function.child_by_field_name("object") if function is not None else None
        inner = self.of(head, position, depth + 1) if head is not None else None
        if name == "float32" and inner in ("float16", "bfloat16"):
            return inner
        return name if name in ("float32", "float16", "bfloat16", "float64") else None

    def _loaded(self, call: Call, position: int) -> str | None:
        node = call.argument(0, "pointer")
        name = self._kernel.pointer(node, position) if node is not None else None
        if name is None:
            return None
        seen = {
            value.dtype if isinstance(value, TensorValue) else None
            for launch in self._sight.launches(self._kernel.facts)
            for value in (launch.values.get(name),)
        }
        return seen.pop() if len(seen) == 1 else None
