"""Owns making the sizes of inputs variable: whole numbers in shapes become named constants that a Case can override.

Equal numbers stay tied to one name unless the file itself tells them apart, so that no override can break a product of
matching shapes. Never runs anything.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evalcore.bindings.binding import loads, unparse
from evalcore.bindings.calls import HostMap
from evalcore.bindings.constants import assigned, evaluate, is_size, looks_like_batch
from evalcore.problem import Case

_FIRST_IS_SHAPE = {
    "rand", "randn", "empty", "zeros", "ones", "full", "new_empty", "new_zeros", "new_ones", "new_full", "make_tensor",
}  # fmt: skip
_SHAPE_ANYWHERE = {"randint", "normal", "random"}
_GENERIC = ("size", "width", "depth", "extent")
MOST_CASES = 6

Dim = "str | int"


@dataclass(slots=True)
class Sizes:
    """Statements whose sizes have names, and the cases that the file lists for them."""

    statements: list[ast.stmt]
    constants: dict[str, int] = field(default_factory=dict)
    dims: dict[str, list[str]] = field(default_factory=dict)
    """Tensor variable -> its dimensions, each a constant's name or a number or '?'."""
    batch_like: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The statements as text, a line each."""
        return "\n".join(unparse(each) for each in self.statements)


@dataclass(slots=True)
class _Slot:
    """One dimension in one shape: where it is written, and of which variable."""

    variable: str
    position: int
    holder: list[ast.expr]
    index: int

    @property
    def node(self) -> ast.expr:
        return self.holder[self.index]


def name_sizes(statements: list[ast.stmt], hints: Mapping[str, list[str]], taken: Iterable[str]) -> Sizes:
    """Give a name to each whole number in a shape. `hints` proposes names by variable and position."""
    owned = copy.deepcopy(statements)
    slots = find_slots(owned)
    named = _named(owned, slots)
    reserved = set(taken) | {name for each in owned for name in _all_names(each)}
    chosen = _choose(slots, named, hints, reserved)
    new: dict[str, int] = {}
    for slot in slots:
        name = chosen.get((slot.variable, slot.position))
        if name is not None and isinstance(slot.node, ast.Constant):
            new.setdefault(name, _number(slot.node))
            slot.holder[slot.index] = ast.copy_location(ast.Name(name, ast.Load()), slot.node)
    head = [ast.parse(f"{name} = {value}").body[0] for name, value in new.items() if name not in named]
    constants = {**dict(named.items()), **new}
    dims = _dims(slots)
    ordered = _by_use(constants, dims, named)
    return Sizes([*head, *owned], ordered, dims, _batch_like(ordered, dims))


def find_slots(statements: Sequence[ast.stmt]) -> list[_Slot]:
    """All dimensions that are written in factory calls, those behind a name for a shape included."""
    shapes = {}
    for statement in statements:
        name, value = assigned(statement)
        if name is not None and isinstance(value, (ast.Tuple, ast.List)):
            shapes[name] = value.elts
    found: list[_Slot] = []
    for statement in statements:
        target = _target(statement)
        for call in ast.walk(statement):
            holder = _shape_holder(call, shapes) if isinstance(call, ast.Call) else None
            if holder is not None:
                found += [_slot(target, index, holder, shapes) for index in range(len(holder))]
                break
    return found


def _slot(target: str, position: int, holder: list[ast.expr], shapes: Mapping[str, list[ast.expr]]) -> _Slot:
    """The place where a dimension is written: for `size[0]` that is the tuple behind the name."""
    node = holder[position]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in shapes:
        items = shapes[node.value.id]
        index = evaluate(node.slice, {})
        if isinstance(index, int) and -len(items) <= index < len(items):
            return _Slot(target, position, items, index % len(items))
    return _Slot(target, position, holder, position)


def _target(statement: ast.stmt) -> str:
    name, _value = assigned(statement)
    if name is not None:
        return name
    names = [each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return names[0] if names else ""


def _shape_holder(call: ast.Call, shapes: Mapping[str, list[ast.expr]]) -> list[ast.expr] | None:
    """The list of nodes that holds a factory call's dimensions."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in _FIRST_IS_SHAPE and name not in _SHAPE_ANYWHERE:
        return None
    for word in call.keywords:
        if word.arg in {"size", "shape"}:
            return _elements(word.value, shapes)
    if name in _SHAPE_ANYWHERE:
        return next((held for each in call.args if (held := _elements(each, shapes)) is not None), None)
    if not call.args:
        return None
    held = _elements(call.args[0], shapes)
    if held is not None or name in {"full", "new_full"}:
        return held
    return call.args


def _elements(node: ast.expr, shapes: Mapping[str, list[ast.expr]]) -> list[ast.expr] | None:
    if isinstance(node, (ast.Tuple, ast.List)):
        return node.elts
    return shapes.get(node.id) if isinstance(node, ast.Name) else None


def _all_names(statement: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}


def _named(statements: list[ast.stmt], slots: list[_Slot]) -> dict[str, int]:
    """`NAME = <whole number>` statements that a shape uses, directly or through other statements."""
    plain: dict[str, int] = {}
    mentions: dict[str, set[str]] = {}
    for statement in statements:
        name, value = assigned(statement)
        if name is not None:
            known = evaluate(value, {})
            if is_size(known) and value is not None and not loads(value):
                plain[name] = known
            mentions.setdefault(name, set()).update(loads(value) if value is not None else ())
    used: set[str] = set()
    pending = [name for slot in slots for name in loads(slot.node)]
    while pending:
        name = pending.pop()
        if name not in used:
            used.add(name)
            pending.extend(mentions.get(name, ()))
    return {name: value for name, value in plain.items() if name in used}


def _choose(
    slots: list[_Slot], named: Mapping[str, int], hints: Mapping[str, list[str]], reserved: set[str]
) -> dict[tuple[str, int], str]:
    literal = [(slot, _number(slot.node)) for slot in slots if _number(slot.node) >= 2]
    hinted = _from_hints(literal, hints, reserved, named)
    chosen = _tie(literal, named, hinted, reserved)
    return chosen if chosen is not None else _tie(literal, named, {}, reserved) or {}


def _number(node: ast.expr) -> int:
    return int(str(node.value)) if isinstance(node, ast.Constant) and is_size(node.value) else 0


def _from_hints(
    literal: list[tuple[_Slot, int]], hints: Mapping[str, list[str]], reserved: set[str], named: Mapping[str, int]
) -> dict[tuple[str, int], str]:
    values: dict[str, int] = {}
    found: dict[tuple[str, int], str] = {}
    for slot, value in literal:
        names = hints.get(slot.variable, [])
        name = names[slot.position] if slot.position < len(names) else ""
        usable = name.isidentifier() and (name not in reserved or named.get(name) == value)
        if usable and values.setdefault(name, value) == value:
            found[slot.variable, slot.position] = name
    return found


def _tie(
    literal: list[tuple[_Slot, int]], named: Mapping[str, int], hinted: dict[tuple[str, int], str], reserved: set[str]
) -> dict[tuple[str, int], str] | None:
    """A name for every literal: the hinted one, else one of the same value, else a new one. None where unclear."""
    by_value: dict[int, set[str]] = {}
    for name, value in named.items():
        by_value.setdefault(value, set()).add(name)
    for slot, value in literal:
        given = hinted.get((slot.variable, slot.position))
        if given is not None:
            by_value.setdefault(value, set()).add(given)
    chosen = dict(hinted)
    fresh = iter(_fresh_names(reserved | set(hinted.values())))
    for slot, value in literal:
        key = (slot.variable, slot.position)
        if key in chosen:
            continue
        same = by_value.setdefault(value, set())
        if len(same) > 1 and hinted:
            return None
        if not same:
            same.add(next(fresh))
        chosen[key] = min(same)
    return chosen


def _fresh_names(reserved: set[str]) -> Iterable[str]:
    for name in _GENERIC:
        if name not in reserved:
            yield name
    for index in range(2, 1000):
        if f"size{index}" not in reserved:
            yield f"size{index}"


def _dims(slots: list[_Slot]) -> dict[str, list[str]]:
    dims: dict[str, list[str]] = {}
    for slot in slots:
        node = slot.node
        word = node.id if isinstance(node, ast.Name) else str(_number(node) or "?")
        dims.setdefault(slot.variable, []).append(word)
    return dims


def _by_use(constants: dict[str, int], dims: dict[str, list[str]], named: Mapping[str, int]) -> dict[str, int]:
    """Those that the person named in the person's order, then ours as the tensors use them."""
    order = list(dict.fromkeys(word for words in dims.values() for word in words if word in constants))
    first = [name for name in constants if name in named]
    return {name: constants[name] for name in dict.fromkeys([*first, *order, *constants])}


def _batch_like(constants: Mapping[str, int], dims: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Names that read as a batch, or that stand only as the first of several dimensions."""
    found = []
    for name in constants:
        places = [(words.index(name), len(words)) for words in dims.values() if name in words]
        leading = bool(places) and all(position == 0 and length > 1 for position, length in places)
        if leading or (looks_like_batch(name) and all(position == 0 for position, _length in places)):
            found.append(name)
    return tuple(found)


def wrapper_hints(call: ast.expr, hosts: HostMap) -> dict[str, list[str]]:
    """Names that a wrapper itself gives to its arguments' dimensions: `M, K = a.shape` -> {'a': ['M', 'K']}."""
    found: dict[str, list[str]] = {}
    for each in ast.walk(call):
        function = (
            hosts.functions.get(each.func.id)
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
            else None
        )
        if function is None or not isinstance(each, ast.Call):
            continue
        inside = unpacked_shapes(function)
        parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        for parameter, value in zip(parameters, each.args, strict=False):
            if isinstance(value, ast.Name) and parameter in inside:
                found[value.id] = inside[parameter]
    return found


def unpacked_shapes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for statement in ast.walk(function):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in {"size", "numel"}
        ):
            value = value if value.args else value.func
        if not (isinstance(value, ast.Attribute) and value.attr in {"shape", "size", "numel"}):
            continue
        if not isinstance(value.value, ast.Name):
            continue
        if isinstance(target, ast.Tuple):
            names = [each.id if isinstance(each, ast.Name) and each.id != "_" else "" for each in target.elts]
            found.setdefault(value.value.id, names)
        elif isinstance(target, ast.Name) and value.attr == "numel":
            found.setdefault(value.value.id, [target.id])
    return found


def make_cases(constants: Mapping[str, int], settings: list[dict[str, int]]) -> tuple[Case, ...]:
    """At most MOST_CASES cases: the largest first, then the file's own, the smallest, and some between."""
    own = dict(constants)
    full = [{**own, **{name: value for name, value in each.items() if name in own}} for each in settings]
    distinct = [dict(pairs) for pairs in dict.fromkeys(tuple(each.items()) for each in [*full, own])]
    ranked = sorted(distinct, key=lambda sizes: math.prod(sizes.values()), reverse=True)
    picked = [ranked[0]]
    if own not in picked:
        picked.append(own)
    rest = [each for each in ranked if each not in picked]
    room = MOST_CASES - len(picked)
    if len(rest) > room:
        step = (len(rest) - 1) / max(room - 1, 1)
        rest = [rest[round(index * step)] for index in range(room)]
    return tuple(Case(name=case_name(each), sizes=_changed(each, own)) for each in [*picked, *rest])


def _changed(sizes: Mapping[str, int], own: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, value) for name, value in sizes.items() if own.get(name) != value)


def case_name(sizes: Mapping[str, int]) -> str:
    """'4096x12672', 'size=98432', 'as given' where nothing has a name."""
    if not sizes:
        return "as given"
    if len(sizes) == 1:
        return ", ".join(f"{name}={value}" for name, value in sizes.items())
    return "x".join(str(value) for value in sizes.values())
