"""Owns autotune-inplace: a pointer that a kernel both reads and writes while autotune runs it once for each config."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from server.analysis.finding import Severity
from server.analysis.kernel_view import Call, KernelView
from server.analysis.python_facts import DecoratorFacts
from server.analysis.rules.draft import Draft, Remedy, before_closing
from server.analysis.sight import Sight
from server.analysis.syntax import arguments, source, walk

CODE = "autotune-inplace"
_ADDING = {"atomic_add", "atomic_xor"}
"""Atomics that give another result when they are run twice; max, min, and, or do not."""


def check(kernel: KernelView, sight: Sight) -> Iterator[Draft]:
    """One finding a decorator, which names all pointers that are not restored."""
    tuner = next((each for each in kernel.facts.decorators if each.kind == "autotune"), None)
    call = next((each for each in tuner.node.named_children if each.type == "call"), None) if tuner else None
    if tuner is None or call is None or _single_config(call):
        return
    _positional, named = arguments(call)
    if any(word in named for word in ("pre_hook", "post_hook")) or (not _all_in_sight(call) and sight.hooks):
        return
    kept = _strings(named.get("restore_value")) | _strings(named.get("reset_to_zero"))
    if any(word in named and named[word].type not in ("list", "tuple") for word in ("restore_value", "reset_to_zero")):
        return
    read, written, added = _accesses(kernel)
    in_place = [name for name in _order(kernel, read & written) if name not in kept]
    summed = [name for name in _order(kernel, added) if name not in kept and name not in in_place]
    if in_place or summed:
        yield _draft(kernel, tuner, call, in_place, summed)


def _single_config(call: Node) -> bool:
    """One config in sight is run without tuning."""
    positional, named = arguments(call)
    configs = named.get("configs") or (positional[0] if positional else None)
    return configs is not None and configs.type == "list" and configs.named_child_count == 1


def _all_in_sight(call: Node) -> bool:
    """Whether every config stands in the decorator itself, without a hook."""
    positional, named = arguments(call)
    configs = named.get("configs") or (positional[0] if positional else None)
    if configs is None or configs.type != "list" or "hook" in source(configs):
        return False
    return all(each.type in ("call", "comment") for each in configs.named_children)


def _strings(node: Node | None) -> set[str]:
    return {source(each).strip("'\"") for each in walk(node) if each.type == "string"} if node is not None else set()


def _accesses(kernel: KernelView) -> tuple[set[str], set[str], set[str]]:
    """(read, written, changed by atomics): parameters whose memory is touched."""
    read: set[str] = set()
    written: set[str] = set()
    added: set[str] = set()
    for call in kernel.calls:
        if not call.name.startswith(("tl.", "triton.")):
            continue
        target = _pointer(kernel, call)
        if target is None:
            continue
        if call.last == "load":
            read.add(target)
        elif call.last == "store":
            written.add(target)
        elif call.last in _ADDING:
            added.add(target)
    return read, written, added


def _pointer(kernel: KernelView, call: Call) -> str | None:
    node = call.argument(0, "pointer")
    return kernel.pointer(node, call.node.start_byte) if node is not None else None


def _order(kernel: KernelView, names: set[str]) -> list[str]:
    return [each.name for each in kernel.facts.params if each.name in names]


def _draft(kernel: KernelView, tuner: DecoratorFacts, call: Node, in_place: list[str], summed: list[str]) -> Draft:
    names = in_place + summed
    listed = ", ".join(f"`{name}`" for name in names)
    how = "is read and written" if in_place else "is added to"
    how = how.replace("is ", "are ") if len(names) > 1 else how
    message = (
        f"{listed} {how} by the kernel, and tuning runs it many times on the same memory: the first result is wrong. "
        "Say restore_value or reset_to_zero"
    )
    head = call.child_by_field_name("function") or call
    data = kernel.piece.data
    remedies = []
    if summed and not in_place:
        remedies.append(_remedy(data, call, "reset_to_zero", summed, preferred=True))
        remedies.append(_remedy(data, call, "restore_value", summed, preferred=False))
    else:
        remedies.append(_remedy(data, call, "restore_value", names, preferred=True))
    return Draft(
        code=CODE, severity=Severity.WARNING, piece=kernel.piece, start=head.start_byte, end=head.end_byte,
        message=message, remedies=tuple(remedies) if call.end_byte == tuner.end or _closed(data, call) else (),
    )  # fmt: skip


def _closed(data: bytes, call: Node) -> bool:
    return data[call.end_byte - 1 : call.end_byte] == b")"


def _remedy(data: bytes, call: Node, word: str, names: list[str], *, preferred: bool) -> Remedy:
    values = ", ".join(f'"{name}"' for name in names)
    change = before_closing(data, call.end_byte, f"{word}=[{values}]")
    return Remedy(f"Add {word}=[{values}]", (change,), preferred)
