"""Owns int32-offset-overflow: an offset that 32 bits cannot hold, or nearly, at a size that the file itself names."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from server.analysis.finding import Severity
from server.analysis.kernel_view import KernelView
from server.analysis.rules.bounds import INT32, Bounds, Overflow, offsets
from server.analysis.rules.draft import Change, Draft, Remedy
from server.analysis.sight import LaunchView, Sight
from server.analysis.syntax import source, unwrap

CODE = "int32-offset-overflow"
_NEAR = INT32 // 8
"""Within a factor of eight of the edge it is worth a hint: the next larger model is there."""
_ACCESSES = {"load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas"}


def check(kernel: KernelView, sight: Sight) -> Iterator[Draft]:
    """The operation with the largest result among all addresses of the kernel, once."""
    worst: tuple[Overflow, LaunchView] | None = None
    for launch in sight.launches(kernel.facts):
        bounds = Bounds(kernel, launch)
        for call in kernel.calls:
            if call.last not in _ACCESSES or not call.name.startswith(("tl.", "triton.")):
                continue
            node = call.argument(0, "pointer")
            for offset, position in offsets(kernel, node, call.node.start_byte) if node is not None else ():
                bounds.of(offset, position)
        if bounds.largest is not None and (worst is None or bounds.largest.most > worst[0].most):
            worst = bounds.largest, launch
    if worst is not None and worst[0].most >= _NEAR:
        yield _draft(kernel, *worst)


def _draft(kernel: KernelView, overflow: Overflow, launch: LaunchView) -> Draft:
    node = overflow.node
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert left is not None and right is not None
    reached = overflow.most >= INT32
    return Draft(
        code=CODE,
        severity=Severity.WARNING if reached else Severity.HINT,
        piece=kernel.piece,
        start=node.start_byte,
        end=node.end_byte,
        message=_message(kernel, launch, overflow, left, right),
        remedies=_widened(left),
    )


def _message(kernel: KernelView, launch: LaunchView, overflow: Overflow, left: Node, right: Node) -> str:
    text = " ".join(source(overflow.node).split())
    here = f"the largest size in this file gives {spaced(overflow.most)}"
    operator = source(overflow.node.child_by_field_name("operator"))
    factor = Bounds(kernel, launch).of(right, overflow.node.start_byte)
    if operator == "*" and factor is not None and factor.most > 1 and not _is_block(kernel, right):
        count = -(-INT32 // factor.most)
        return f"`{text}` overflows from {spaced(count)} rows at {factor.most} columns, being 32 bits; {here}"
    return f"`{text}` overflows from {spaced(INT32)} elements, being 32 bits; {here}"


def _is_block(kernel: KernelView, node: Node) -> bool:
    """A tile size rather than a row length: a constexpr or a number."""
    node = unwrap(node)
    return node.type == "integer" or source(node) in kernel.constexprs


def spaced(number: int) -> str:
    """524288 -> '524 288'."""
    return f"{number:,}".replace(",", " ")


def _widened(left: Node) -> tuple[Remedy, ...]:
    """Widen the left operand: the whole product is then computed in 64 bits."""
    inner = unwrap(left)
    simple = inner.type in ("identifier", "call") or left.type == "parenthesized_expression"
    title = "Compute the offset in 64 bits"
    if simple:
        return (Remedy(title, (Change(left.end_byte, left.end_byte, ".to(tl.int64)"),)),)
    if left.type == "subscript":
        head = left.child_by_field_name("value")
        if head is not None:
            return (Remedy(title, (Change(head.end_byte, head.end_byte, ".to(tl.int64)"),)),)
    changes = (Change(left.start_byte, left.start_byte, "("), Change(left.end_byte, left.end_byte, ").to(tl.int64)"))
    return (Remedy(title, changes),)
