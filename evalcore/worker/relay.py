"""Owns what the loop believes of a case's words: checked fields, rebuilt one by one. Never passes a message on as it came.

Everything here comes from a process that runs a candidate. What has the wrong form ends that process; what has the right
form is still only a claim, bounded in size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalcore.facts import Crash, KernelFacts, Place, RawProfile, Samples
from evalcore.gpu.stubs import is_plain
from evalcore.jobs import Flag
from evalcore.wire import WireError, decode

_MOST_BYTES = 1 << 40
_MOST_OUTPUTS = 300
_MOST_DIMENSIONS = 64
_IPC_HEX_CHARS = 128
_DTYPE = re.compile(r"[a-z][a-z0-9_]{0,30}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_MOST_CHARS = 4096


class Breach(ValueError):
    """A message of the wrong form."""


def text(value: Any, most: int = _MOST_CHARS) -> str:
    """A string for people: no control characters, no overlong lines of them."""
    if not isinstance(value, str):
        raise Breach("a text that is none")
    return _CONTROL.sub(" ", value)[:most]


def count(value: Any, most: int = _MOST_BYTES) -> int:
    """A whole number from 0 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise Breach(f"no count: {str(value)[:40]}")
    return value


def seconds(value: Any) -> float:
    """A finite time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise Breach("no time")
    return float(value)


def texts(value: Any, most: int = 64) -> tuple[str, ...]:
    """A short list of strings."""
    if not isinstance(value, list) or len(value) > most:
        raise Breach("no list of texts")
    return tuple(text(each, 400) for each in value)


def handles(value: Any, descriptors: int) -> list[dict[str, Any]]:
    """Handles to buffers, as `evalcore.gpu.transfer` made them."""
    if not isinstance(value, list) or len(value) > 100_000:
        raise Breach("no handles")
    return [_handle(each, descriptors) for each in value]


def _handle(handle: Any, descriptors: int) -> dict[str, Any]:
    if not isinstance(handle, dict):
        raise Breach("no handle")
    checked: dict[str, Any] = {"bytes": count(handle.get("bytes")), "offset": count(handle.get("offset"))}
    if "ipc" in handle:
        ipc = handle["ipc"]
        if not isinstance(ipc, str) or not re.fullmatch(f"[0-9a-f]{{{_IPC_HEX_CHARS}}}", ipc):
            raise Breach("a malformed IPC handle")
        return {**checked, "ipc": ipc}
    return {**checked, "fd": count(handle.get("fd"), descriptors - 1)}


def outputs(value: Any, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Descriptions of what a program returned; the bytes that a shape needs must lie in its handle."""
    if not isinstance(value, list) or len(value) > _MOST_OUTPUTS:
        raise Breach("no outputs")
    return [_output(each, given) for each in value]


def _output(value: Any, given: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Breach("no output")
    problem = value.get("problem")
    checked: dict[str, Any] = {"name": text(value.get("name"), 80)}
    checked["problem"] = text(problem, 300) if problem is not None else None
    if value.get("handle") is None:
        return checked
    dtype, device = value.get("dtype"), value.get("device")
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype) or device not in ("cpu", "cuda", "meta", ""):
        raise Breach("no dtype or device")
    shape, stride = _sizes(value.get("shape")), value.get("stride")
    checked.update(
        handle=count(value["handle"], len(given) - 1),
        dtype=dtype,
        device=device,
        shape=shape,
        stride=_strides(stride) if stride is not None else None,
        number=value.get("number") is True,
    )
    if math.prod(shape) > given[checked["handle"]]["bytes"]:
        raise Breach("a shape that is larger than its bytes")
    return checked


def _sizes(value: Any) -> list[int]:
    if not isinstance(value, list) or len(value) > _MOST_DIMENSIONS:
        raise Breach("no shape")
    return [count(each) for each in value]


def _strides(value: Any) -> list[int]:
    return _sizes(value)


def crash(value: Any) -> Crash:
    """How the case says that its program ended. Only kinds that a program can end with."""
    try:
        found = decode(Crash, value)
    except WireError as fault:
        raise Breach(str(fault)) from None
    known = ("compile", "exception", "out_of_resources", "out_of_bounds", "out_of_memory", "exit", "cannot_interpret")
    place = found.place
    if place is not None:
        place = Place(
            path=text(place.path),
            line=max(place.line, 1),
            column=max(place.column, 1),
            end_line=place.end_line,
            end_column=place.end_column,
        )
    return replace(
        found,
        kind=found.kind if found.kind in known else "exception",
        message=text(found.message) or "it failed without a message",
        detail=text(found.detail),
        place=place,
    )


def samples(value: Any, *, case: str, figures: Sequence[str]) -> tuple[Samples, ...]:
    """Timings of the candidate as its own process read them; whose and of what they are is ours to say."""
    if not isinstance(value, list) or len(value) > len(figures):
        raise Breach("no samples")
    found = []
    for each in value:
        try:
            made = decode(Samples, each)
        except WireError as fault:
            raise Breach(str(fault)) from None
        if made.figure not in figures or len(made.values_us) > 10_000 or len(made.discarded) > 10_000:
            raise Breach("samples of something else")
        values = tuple(seconds(one) for one in made.values_us)
        discarded = tuple((seconds(one), text(why, 200)) for one, why in made.discarded)
        found.append(
            replace(made, subject="candidate", case=case, values_us=values, discarded=discarded, timer=text(made.timer))
        )
    return tuple(found)


def kernels(value: Any) -> tuple[KernelFacts, ...]:
    """What compilers and driver said about kernels."""
    try:
        found = decode(tuple[KernelFacts, ...], value)  # type: ignore[type-var]
    except WireError as fault:
        raise Breach(str(fault)) from None
    if len(found) > 500:
        raise Breach("too many kernels")
    return tuple(replace(each, name=text(each.name, 400), config=text(each.config, 1000)) for each in found)


def flags(value: Any) -> tuple[Flag, ...]:
    """Remarks of loading and running."""
    try:
        found = decode(tuple[Flag, ...], value)  # type: ignore[type-var]
    except WireError as fault:
        raise Breach(str(fault)) from None
    return tuple(Flag(code=text(each.code, 60), message=text(each.message, 600)) for each in found[:40])


def profile(value: Any) -> RawProfile:
    """Kernel times and stalls."""
    try:
        return decode(RawProfile, value)
    except WireError as fault:
        raise Breach(str(fault)) from None


def files(value: Any) -> tuple[tuple[str, str], ...]:
    """(path, sha) of modules that were loaded."""
    try:
        found = decode(tuple[tuple[str, str], ...], value)  # type: ignore[type-var]
    except WireError as fault:
        raise Breach(str(fault)) from None
    return tuple((text(path), text(sha, 64)) for path, sha in found[:500])


def shapes(value: Any) -> dict[str, tuple[int, ...]]:
    """Parameters by name, from [[name, shape], ...]."""
    if not isinstance(value, list) or len(value) > 100_000:
        raise Breach("no parameters")
    found: dict[str, tuple[int, ...]] = {}
    for each in value:
        if not isinstance(each, list) or len(each) != 2:
            raise Breach("no parameter")
        found[text(each[0], 400)] = tuple(_sizes(each[1]))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a case says about itself after its runs. Claims, for flags and figures beside the verdict."""

    kernels: tuple[KernelFacts, ...]
    files: tuple[tuple[str, str], ...]
    notes: tuple[Flag, ...]
    tampered: tuple[str, ...]
    threads_left: int
    reference_called: bool
    """Whether the reference was called in the candidate's process."""
    winners: dict[str, str]
    launchers: tuple[tuple[str, ...], ...]
    """Signatures of its kernels, plain words for argument types."""
    configs: tuple[tuple[str, tuple[str, ...]], ...]
    """(autotuned kernel, its configs in words)."""


def learned(body: dict[str, Any]) -> Learned:
    """The answer to the question for facts."""
    tuned = body.get("tuned")
    if not isinstance(tuned, list) or len(tuned) > 100 or not all(isinstance(each, dict) for each in tuned):
        raise Breach("no autotuned kernels")
    return Learned(
        kernels=kernels(body.get("kernels")),
        files=files(body.get("files")),
        notes=flags(body.get("notes")),
        tampered=texts(body.get("tampered")),
        threads_left=count(body.get("threads_left"), 100_000),
        reference_called=body.get("reference_called") is True,
        launchers=_launchers(body.get("launchers")),
        winners={text(each.get("name"), 400): text(each.get("chosen"), 1000) for each in tuned},
        configs=tuple((text(each.get("name"), 400), texts(each.get("configs"), 1000)) for each in tuned),
    )


def _launchers(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or len(value) > 100 or not all(is_plain(each) for each in value):
        raise Breach("no signatures")
    return tuple(tuple(each) for each in value)
