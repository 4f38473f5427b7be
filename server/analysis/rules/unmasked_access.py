"""Owns unmasked-access: a load or store of a block without a mask where the block may overrun.

Three strengths of evidence: the same kernel guards the same offsets elsewhere; the sizes in the file prove an
overrun; a simple kernel rounds its grid up and guards nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from server.analysis.finding import Severity
from server.analysis.kernel_view import Call, KernelView, identifiers
from server.analysis.rules.bounds import Bounds, offsets
from server.analysis.rules.draft import Draft, Remedy, before_closing
from server.analysis.rules.int32_offset_overflow import spaced
from server.analysis.sight import LaunchView, Sight
from server.analysis.syntax import source, unwrap, walk
from server.analysis.values import TensorValue

CODE = "unmasked-access"
_BLOCK_POINTERS = {"make_block_ptr", "advance", "make_tensor_descriptor"}
_PROMISES = ("static_assert", "device_assert", "assume", "multiple_of")


@dataclass(frozen=True, slots=True)
class _Guard:
    """A mask of the kernel: which offsets it bounds, by what, and under which name."""

    blocks: frozenset[tuple[str, int]]
    """(name, start of its binding): the same name bound anew is another block."""
    mask: str
    """The variable, '' where it is written in place."""
    limit: str


def check(kernel: KernelView, sight: Sight) -> Iterator[Draft]:
    """One finding at each such access."""
    accesses = [call for call in kernel.calls if call.name in ("tl.load", "tl.store") and not _has_mask(call)]
    if not accesses:
        return
    blocks = _block_names(kernel)
    guards = _guards(kernel, blocks)
    launches = sight.launches(kernel.facts)
    for call in accesses:
        node = call.argument(0, "pointer")
        if node is None or _is_block_pointer(kernel, node, call) or _in_chosen_branch(kernel, call.node):
            continue
        used = _direct_blocks(kernel, node, call.node.start_byte, blocks)
        if not used:
            continue
        guard = next((each for each in guards if each.blocks & used), None)
        if guard is not None:
            yield _unguarded(kernel, call, guard, used)
            continue
        proof = _proven(kernel, call, node, launches)
        if proof is not None:
            yield _draft(kernel, call, Severity.WARNING, proof, ())
        elif not guards and _looks_unguarded(kernel, launches, used):
            yield _draft(kernel, call, Severity.INFORMATION, _plain_words(kernel, used), ())


def _has_mask(call: Call) -> bool:
    place = 1 if call.last == "load" else 2
    return "mask" in call.named or "boundary_check" in call.named or len(call.positional) > place


def _is_block_pointer(kernel: KernelView, node: Node, call: Call) -> bool:
    """Block pointers and descriptors carry their own bounds; a plain parameter is a scalar or a block pointer."""
    position = call.node.start_byte
    for _depth in range(12):
        node = unwrap(node)
        if node.type == "call":
            inner = kernel.call_at(node)
            return inner is not None and inner.last in _BLOCK_POINTERS
        if node.type != "identifier":
            return False
        bound = kernel.before(source(node), position)
        if bound is None:
            return source(node) in kernel.runtime and not kernel.assignments.get(source(node))
        if bound.kind == "augment":
            return False
        node, position = bound.value, bound.start
    return False


def _in_chosen_branch(kernel: KernelView, node: Node) -> bool:
    """Inside `if EVEN_K:` and the like: the branch is taken only where the constexpr says that nothing overruns."""
    parent = node.parent
    while parent is not None and parent != kernel.node:
        if parent.type in ("if_statement", "elif_clause", "conditional_expression"):
            test = parent.child_by_field_name("condition")
            names = {source(each) for each in identifiers(test)} if test is not None else set()
            if names & kernel.constexprs:
                return True
        if parent.type == "else_clause" and parent.parent is not None:
            test = parent.parent.child_by_field_name("condition")
            if test is not None and {source(each) for each in identifiers(test)} & kernel.constexprs:
                return True
        parent = parent.parent
    return False


def _block_names(kernel: KernelView) -> frozenset[str]:
    """Variables that hold a block of offsets: made from `tl.arange`, not wrapped by `%` and not clamped."""
    found: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name, bound in kernel.assignments.items():
            if name in found:
                continue
            if any(_makes_block(kernel, each.value, found) for each in bound):
                found.add(name)
                changed = True
    return frozenset(found)


def _makes_block(kernel: KernelView, node: Node, known: set[str]) -> bool:
    node = unwrap(node)
    if node.type == "identifier":
        return source(node) in known
    if node.type == "call":
        call = kernel.call_at(node)
        if call is None:
            return False
        if call.last == "arange":
            return True
        if call.last == "to":
            function = node.child_by_field_name("function")
            head = function.child_by_field_name("object") if function is not None else None
            return head is not None and _makes_block(kernel, head, known)
        return False
    if node.type == "subscript":
        head = node.child_by_field_name("value")
        return head is not None and _makes_block(kernel, head, known)
    if node.type == "binary_operator":
        if source(node.child_by_field_name("operator")) not in ("+", "-", "*"):
            return False
        sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        return any(each is not None and _makes_block(kernel, each, known) for each in sides)
    return False


_Block = tuple[str, int]


def _direct_blocks(
    kernel: KernelView, node: Node, position: int, blocks: frozenset[str], depth: int = 0
) -> set[_Block]:
    """Offset variables in an address, each with its binding; pointer variables are followed to what they hold."""
    found: set[_Block] = set()
    for each in identifiers(node):
        name = source(each)
        if name not in blocks:
            continue
        bound = kernel.before(name, position)
        root = kernel.pointer(each, position)
        if root is not None and bound is not None and depth < 12:
            found |= _direct_blocks(kernel, bound.value, bound.start, blocks, depth + 1)
        elif bound is not None and not _wraps(bound.value):
            found.add((name, bound.start))
            found |= _parts(kernel, name, position, blocks)
    return found


def _wraps(node: Node) -> bool:
    """`(...) % M` cannot pass the end."""
    node = unwrap(node)
    return node.type == "binary_operator" and source(node.child_by_field_name("operator")) == "%"


def _parts(kernel: KernelView, name: str, position: int, blocks: frozenset[str], depth: int = 0) -> set[_Block]:
    """Offset variables that an offset variable is made of: `offs = start + cols` -> cols."""
    bound = kernel.before(name, position)
    if bound is None or depth > 8:
        return set()
    found: set[_Block] = set()
    for each in identifiers(bound.value):
        inner = source(each)
        part = kernel.before(inner, bound.start)
        if inner in blocks and inner != name and part is not None and not _wraps(part.value):
            found |= {(inner, part.start)} | _parts(kernel, inner, bound.start, blocks, depth + 1)
    return found


def _guards(kernel: KernelView, blocks: frozenset[str]) -> list[_Guard]:
    """Comparisons of offsets with a scalar that are used as masks of some access."""
    masks = _mask_nodes(kernel)
    found: list[_Guard] = []
    for node in kernel.comparisons:
        parts = node.named_children
        if len(parts) != 2 or not any(each.type in ("<", "<=") for each in node.children):
            continue
        left, right = parts
        names = [source(each) for each in identifiers(left) if source(each) in blocks]
        if not names or {source(each) for each in identifiers(right)} & blocks:
            continue
        used = next((name for name, span in masks if span[0] <= node.start_byte < span[1]), None)
        bounded = {(name, bound.start) for name in names if (bound := kernel.before(name, node.start_byte)) is not None}
        if used is not None and bounded:
            found.append(_Guard(frozenset(bounded), used, source(right)))
    return found


def _mask_nodes(kernel: KernelView) -> list[tuple[str, tuple[int, int]]]:
    """(variable or '', span) of every expression that is, or is part of, a mask of a load or store."""
    found: list[tuple[str, tuple[int, int]]] = []
    pending: list[tuple[Node, int]] = []
    for call in kernel.calls:
        if call.last in ("load", "store", "atomic_add"):
            place = 1 if call.last == "load" else 2
            mask = call.named.get("mask") or (call.positional[place] if len(call.positional) > place else None)
            if mask is not None:
                found.append(("", (mask.start_byte, mask.end_byte)))
                pending.append((mask, call.node.start_byte))
    seen: set[int] = set()
    while pending:
        node, _position = pending.pop()
        for each in identifiers(node):
            for bound in kernel.assignments.get(source(each), ()):
                if bound.start not in seen:
                    seen.add(bound.start)
                    found.append((source(each), (bound.value.start_byte, bound.value.end_byte)))
                    pending.append((bound.value, bound.start))
    return found


def _unguarded(kernel: KernelView, call: Call, guard: _Guard, used: set[_Block]) -> Draft:
    name = sorted(guard.blocks & used)[0][0]
    message = (
        f"`{name}` may pass `{guard.limit}` here, and this {call.last} has no mask; the kernel guards it elsewhere"
    )
    remedies: tuple[Remedy, ...] = ()
    bound = kernel.before(guard.mask, call.node.start_byte) if guard.mask else None
    if bound is not None:
        change = before_closing(kernel.piece.data, call.node.end_byte, f"mask={guard.mask}")
        remedies = (Remedy(f"Add mask={guard.mask}", (change,)),)
    return _draft(kernel, call, Severity.WARNING, message, remedies)


def _proven(kernel: KernelView, call: Call, node: Node, launches: list[LaunchView]) -> str | None:
    """Words that prove an overrun from the sizes of one launch, or None."""
    pointer = kernel.pointer(node, call.node.start_byte)
    for launch in launches:
        tensor = launch.values.get(pointer) if pointer is not None else None
        numel = tensor.numel if isinstance(tensor, TensorValue) else None
        terms = offsets(kernel, node, call.node.start_byte)
        if numel is None or not numel.exact or not terms or _moves(kernel, node) or _is_conditional(kernel, call.node):
            continue
        bounds = Bounds(kernel, launch)
        values = [bounds.of(each, position) for each, position in terms]
        if any(each is None or not each.exact for each in values):
            continue
        last = sum(each.most for each in values if each is not None)
        if last >= numel.most:
            return (
                f"without a mask this {call.last} reaches element {spaced(last)} of `{pointer}`, "
                f"which has {spaced(numel.most)} at the sizes in this file"
            )
    return None


def _is_conditional(kernel: KernelView, node: Node) -> bool:
    """Whether an access may be left out: then the largest offset need not be reached."""
    parent = node.parent
    while parent is not None and parent != kernel.node:
        if parent.type in ("if_statement", "while_statement", "for_statement", "conditional_expression"):
            return True
        parent = parent.parent
    return False


def _moves(kernel: KernelView, node: Node) -> bool:
    """Whether the address is moved by `+=` in a loop: then its bound is not in its definition."""
    names = {source(each) for each in identifiers(node)}
    return any(each.kind == "augment" for name in names for each in kernel.assignments.get(name, ()))


def _looks_unguarded(kernel: KernelView, launches: list[LaunchView], used: set[_Block]) -> bool:
    """A plain kernel with a rounded-up grid, no mask at all, and no promise that the size is a multiple of the block.

    Kernels with a `tl.dot` commonly ask for sizes that their tiles divide, so they are left out.
    """
    if any(call.last in _PROMISES or call.last == "dot" for call in kernel.calls):
        return False
    if not any(_starts_at_program(kernel, name) for name, _start in used):
        return False
    return any(_rounds_up(launch) and not _asserts_multiple(launch) for launch in launches)


def _starts_at_program(kernel: KernelView, name: str) -> bool:
    """`pid * BLOCK + tl.arange(0, BLOCK)`."""
    bound = kernel.assignments.get(name, [])[:1]
    if not bound or bound[0].value.type != "binary_operator":
        return False
    names = {source(each) for each in identifiers(bound[0].value)}
    ids = {
        name for name, each in kernel.assignments.items()
        if any("program_id" in source(bound.value) for bound in each)
    }  # fmt: skip
    return bool(names & ids) or "program_id" in source(bound[0].value)


def _rounds_up(launch: LaunchView) -> bool:
    grid = launch.grid_words
    return "cdiv" in grid or ("- 1) //" in grid and "+" in grid)


def _asserts_multiple(launch: LaunchView) -> bool:
    """The launching function checks `n % BLOCK == 0`, or pads."""
    owner = launch.scope.function
    if owner is None or owner.node is None or launch.scope.piece is None:
        return False
    for each in walk(owner.node):
        if each.type in ("assert_statement", "if_statement") and "%" in source(each.named_children[0]):
            return True
    return False


def _plain_words(kernel: KernelView, used: set[_Block]) -> str:
    name = next(name for name, _start in sorted(used) if _starts_at_program(kernel, name))
    return f"`{name}` may pass the end in the last block: the grid is rounded up, and nothing here has a mask"


def _draft(kernel: KernelView, call: Call, severity: Severity, message: str, remedies: tuple[Remedy, ...]) -> Draft:
    return Draft(
        code=CODE, severity=severity, piece=kernel.piece, start=call.node.start_byte, end=call.node.end_byte,
        message=message, remedies=remedies,
    )  # fmt: skip
