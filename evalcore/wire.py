"""Owns the frames between server and worker: one JSON object a line, both ways. Never does IO.

server -> loop:  hello, evaluate, cancel, check, prepare, ceilings, opponents, shutdown
loop -> server:  hello, stage, done, refused, checked, log; unasked: amended (a measurement again, with its A/B),
                 prepared, ceilings, opponents

Every frame is {"frame": NAME, ...}. Dataclasses are encoded by field name; decoding is strict about unknown frames,
lenient about unknown fields (a newer peer may send more), and never evaluates anything.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from enum import Enum
from typing import Any, TypeVar

PROTOCOL = 1
"""Raised on every incompatible change of a frame."""

MAX_LINE_BYTES = 1 << 20
"""A longer frame is refused; larger things travel as files in the scratch folder named in hello."""

T = TypeVar("T")


class WireError(ValueError):
    """A frame that cannot be understood. The message names the field."""


def encode(value: Any) -> Any:
    """Turn dataclasses, enums, tuples and dicts into plain JSON values. NaN and infinities become strings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"$float": repr(value)}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise WireError(f"a {type(value).__name__} cannot cross a process")


def decode(kind: type[T], value: Any) -> T:
    """Rebuild a dataclass of `kind` from what `encode` made. Raises WireError naming the field that does not fit."""
    return _decode(kind, value, kind.__name__)  # type: ignore[no-any-return]


def _decode(kind: Any, value: Any, where: str) -> Any:
    if isinstance(value, dict) and set(value) == {"$float"}:
        value = float(value["$float"])
    origin = typing.get_origin(kind)
    if kind is Any:
        return _plain(value)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(kind, value, where)
    if origin is tuple:
        return _decode_tuple(kind, value, where)
    if origin is list:
        (item,) = typing.get_args(kind)
        return [_decode(item, each, f"{where}[{i}]") for i, each in enumerate(_expect(value, list, where))]
    if origin is dict:
        _key, item = typing.get_args(kind)
        return {key: _decode(item, each, f"{where}.{key}") for key, each in _expect(value, dict, where).items()}
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise WireError(f"{where}: {value!r} is not one of {[e.value for e in kind]}") from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(value, kind, where)


def _decode_union(kind: Any, value: Any, where: str) -> Any:
    arms = typing.get_args(kind)
    if value is None and type(None) in arms:
        return None
    failure: WireError | None = None
    for arm in arms:
        if arm is type(None):
            continue
        try:
            return _decode(arm, value, where)
        except WireError as problem:
            failure = problem
    raise failure or WireError(f"{where}: nothing fits")


def _decode_tuple(kind: Any, value: Any, where: str) -> Any:
    arms = typing.get_args(kind)
    items = _expect(value, list, where)
    if len(arms) == 2 and arms[1] is Ellipsis:
        return tuple(_decode(arms[0], each, f"{where}[{i}]") for i, each in enumerate(items))
    if len(arms) != len(items):
        raise WireError(f"{where}: {len(items)} items instead of {len(arms)}")
    return tuple(_decode(arm, each, f"{where}[{i}]") for i, (arm, each) in enumerate(zip(arms, items, strict=True)))


_HINTS: dict[type, dict[str, Any]] = {}


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    given = _expect(value, dict, where)
    hints = _HINTS.get(kind)
    if hints is None:
        hints = _HINTS[kind] = typing.get_type_hints(kind)
    fields = {}
    for item in dataclasses.fields(kind):
        if item.name in given:
            fields[item.name] = _decode(hints[item.name], given[item.name], f"{where}.{item.name}")
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise WireError(f"{where}.{item.name} is missing")
    return kind(**fields)


def _expect(value: Any, kind: Any, where: str) -> Any:
    if isinstance(value, bool) and kind is not bool:
        raise WireError(f"{where}: a bool instead of {kind.__name__}")
    if not isinstance(value, kind):
        raise WireError(f"{where}: {type(value).__name__} instead of {kind.__name__}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$float"}:
            return float(value["$float"])
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def frame(name: str, **fields: Any) -> bytes:
    """One line, ready to be written, with its newline. Raises WireError where it is too long."""
    line = json.dumps({"frame": name, **encode(fields)}, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise WireError(f"frame {name} has {len(line)} bytes, more than {MAX_LINE_BYTES}")
    return line


def parse(line: bytes) -> dict[str, Any]:
    """One line into its frame, still plain JSON. Raises WireError where it is no frame."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise WireError(f"not JSON: {problem}") from None
    if not isinstance(value, dict) or not isinstance(value.get("frame"), str):
        raise WireError("no frame name")
    return value
