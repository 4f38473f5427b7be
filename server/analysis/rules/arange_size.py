"""Owns arange-size: `tl.arange(a, b)` over a range that is not a power of two, which Triton refuses to compile."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from server.analysis.finding import Severity
from server.analysis.kernel_view import Call, KernelView
from server.analysis.python_facts import PieceFacts
from server.analysis.rules.draft import Change, Draft, Remedy
from server.analysis.sight import Sight
from server.analysis.syntax import source, unwrap
from server.analysis.values import operate, whole

CODE = "arange-size"


def check(kernel: KernelView, sight: Sight) -> Iterator[Draft]:
    """One finding at a literal range, or at the value that a launch or a config gives a constexpr."""
    for call in kernel.calls:
        if call.last != "arange" or call.name.startswith("torch") or len(call.positional) != 2:
            continue
        first, second = call.positional
        low, high = _literal(first, kernel), _literal(second, kernel)
        if low is not None and high is not None:
            if high - low > 0 and not _is_power(high - low):
                yield _at(kernel.piece, call.node, _words(high - low), _fixes(second, low, high))
        elif low == 0 and second.type == "identifier":
            yield from _by_name(kernel, sight, call, source(second))


def _is_power(value: int) -> bool:
    return value & (value - 1) == 0


def _words(size: int) -> str:
    return f"{size} is not a power of two, and Triton's ranges must be; use {_next(size)} and mask what is past {size}"


def _next(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _literal(node: Node, kernel: KernelView, depth: int = 0) -> int | None:
    """A whole number from literals and from the kernel's own single assignments."""
    node = unwrap(node)
    if node.type == "integer":
        return whole(source(node))
    if node.type == "identifier" and depth < 8:
        bound = kernel.assignments.get(source(node), [])
        single = len(bound) == 1 and bound[0].kind == "assign"
        return _literal(bound[0].value, kernel, depth + 1) if single else None
    if node.type == "binary_operator":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        one, other = _literal(left, kernel, depth + 1), _literal(right, kernel, depth + 1)
        return _operated(source(node.child_by_field_name("operator")), one, other)
    return None


def _operated(operator: str, left: int | None, right: int | None) -> int | None:
    from server.analysis.values import Number

    if left is None or right is None:
        return None
    value = operate(operator, Number(left), Number(right))
    return value.most if value is not None else None


def _by_name(kernel: KernelView, sight: Sight, call: Call, name: str) -> Iterator[Draft]:
    """A constexpr whose value stands at a launch or in an autotune config."""
    if name not in kernel.constexprs or name in kernel.assignments:
        return
    line = kernel.piece.data[: call.node.start_byte].count(b"\n") - kernel.piece.data[: kernel.facts.start].count(b"\n")
    where = f"{name} is the range of tl.arange, {line} lines below the kernel's first"
    for number, node in sight.tuned(kernel.facts, name):
        if number > 0 and not _is_power(number):
            yield _at(kernel.piece, node, f"{_words(number)} ({where})", _replace(node, _next(number)))
    for launch in sight.launches(kernel.facts):
        given = launch.nodes.get(name)
        number_given = whole(source(given)) if given is not None and given.type == "integer" else None
        if given is not None and number_given is not None and number_given > 0 and not _is_power(number_given):
            words = f"{_words(number_given)} ({name} is the range of tl.arange in {kernel.facts.name})"
            yield _at(launch.piece, given, words, _replace(given, _next(number_given)))


def _fixes(second: Node, low: int, high: int) -> tuple[Remedy, ...]:
    return _replace(second, low + _next(high - low)) if second.type == "integer" else ()


def _replace(node: Node, value: int) -> tuple[Remedy, ...]:
    change = Change(node.start_byte, node.end_byte, str(value))
    return (Remedy(f"Use {value}, and mask what is past the end", (change,)),)


def _at(piece: PieceFacts, node: Node, message: str, remedies: tuple[Remedy, ...]) -> Draft:
    return Draft(
        code=CODE, severity=Severity.ERROR, piece=piece, start=node.start_byte, end=node.end_byte, message=message,
        remedies=remedies,
    )  # fmt: skip
