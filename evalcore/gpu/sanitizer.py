"""Owns memory checks of interpreted kernels: out of bounds before a byte is touched, and races between programs.

Each pointer is followed back to the argument that it came from, so that an overrun into a neighbour's memory is seen
as well. Races are remarks, not faults: programs run one after the other here, so the values cannot show them.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from triton.runtime import interpreter as stock

from evalcore.gpu.races import Access, RaceLog

_HERE = str(Path(__file__).resolve().parent)
_LOG_LANES = 1 << 24
"""Most lanes that one launch keeps for the race check (about 300 MB); past it the check is off for that launch."""


class OutOfBounds(RuntimeError):
    """A kernel was about to touch memory that belongs to none of its arguments."""


@dataclass(frozen=True, slots=True)
class Region:
    """The memory that pointers derived from one argument may touch, as addresses [low, high)."""

    name: str
    low: int
    high: int
    dtype: Any
    """The pointer type object of the argument: its identity marks every pointer derived from it."""


@dataclass(slots=True)
class Launch:
    """What is known during one interpreted launch."""

    kernel: str
    names: dict[int, str]
    """data_ptr -> argument name."""
    regions: dict[int, Region] = field(default_factory=dict)
    raw_pointers: bool = False
    """True once the kernel has made a pointer out of an integer."""
    log: RaceLog | None = None
    loaded: set[str] = field(default_factory=set)
    """Arguments that this launch has loaded from: what is stored there matters to readers only if it changes."""


_allocations: list[tuple[int, int]] = []
_launch: Launch | None = None
_stored: dict[str, set[str]] = {}
"""Kernel name -> arguments that it has stored to: only their loads are worth logging."""


def guard(tensors: Iterable[Any]) -> None:
    """Tells the exact extents of tensors that lie inside larger buffers, such as the inputs between their canaries."""
    _allocations.clear()
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and tensor.numel():
            _allocations.append(_extent(tensor))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    reach = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    low = tensor.data_ptr()
    return low, low + (reach + 1) * tensor.element_size()


def install() -> None:
    """Puts the checks into Triton's interpreter. Call once, after `bf16.install`."""
    builder = stock.InterpreterBuilder
    stock._implicit_cvt = _following(stock._implicit_cvt)
    load, store = builder.create_masked_load, builder.create_masked_store
    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas

    def create_masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        _check("load", ptrs, _data(mask))
        return load(self, ptrs, mask, *rest, **named)

    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        _check("store", ptrs, _data(mask), value.data)
        return store(self, ptrs, value, mask, *rest, **named)

    def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        _check("atomic", ptr, _data(mask))
        return rmw(self, op, ptr, val, mask, *rest)

    def create_atomic_cas(self: Any, ptr: Any, *rest: Any) -> Any:
        _check("atomic", ptr, np.ones_like(ptr.data, dtype=bool))
        return cas(self, ptr, *rest)

    builder.create_masked_load = create_masked_load
    builder.create_masked_store = create_masked_store
    builder.create_atomic_rmw = create_atomic_rmw
    builder.create_atomic_cas = create_atomic_cas
    for name in ("create_int_to_ptr", "create_bitcast"):
        setattr(builder, name, _watching_casts(getattr(builder, name)))


def _data(mask: Any) -> Any:
    return mask if isinstance(mask, np.ndarray) else mask.data


def begin(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launch | None:
    """Opens a launch of `function`; returns the one it is nested in, for `end`."""
    global _launch
    before = _launch
    _launch = Launch(function.__name__, _argument_names(function, args, kwargs), log=RaceLog(limit=_LOG_LANES))
    return before


def end(before: Launch | None, *, finished: bool) -> str | None:
    """Closes the launch; returns a race in words, or None. `finished` is False where the kernel raised."""
    global _launch
    launch, _launch = _launch, before
    if launch is None or launch.log is None or not finished:
        return None
    return launch.log.race()


def _argument_names(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    parameters = list(inspect.signature(function).parameters)
    for name, value in [*zip(parameters, args), *kwargs.items()]:  # noqa: B905  (the rest comes by keyword)
        base = getattr(value, "base", value)
        if isinstance(base, torch.Tensor):
            names.setdefault(base.data_ptr(), name)
    return names


def _following(convert: Any) -> Any:
    def implicit_cvt(arg: Any) -> Any:
        made = convert(arg)
        base = getattr(arg, "base", arg)
        if _launch is not None and isinstance(base, torch.Tensor) and hasattr(made, "handle"):
            dtype = getattr(made.handle, "dtype", None)
            if dtype is not None and getattr(dtype, "is_ptr", bool)():
                low, high = _region_of(base)
                name = _launch.names.get(base.data_ptr(), "a tensor")
                _launch.regions[id(dtype)] = Region(name, low, high, dtype)
        return made

    return implicit_cvt


def _region_of(tensor: torch.Tensor) -> tuple[int, int]:
    """The extent that was told for this address, else the tensor's whole storage."""
    start = tensor.data_ptr()
    for low, high in _allocations:
        if low <= start < high:
            return low, high
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _watching_casts(original: Any) -> Any:
    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        made = original(self, src, dst_type)
        if _launch is not None and getattr(dst_type.scalar, "is_ptr", bool)():
            region = _launch.regions.get(id(src.dtype.scalar))
            if region is None:
                _launch.raw_pointers = True
            else:  # a pointer cast keeps the argument that it came from
                _launch.regions[id(made.dtype.scalar)] = Region(
                    region.name, region.low, region.high, made.dtype.scalar
                )
        return made

    return cast


def _check(kind: str, ptrs: Any, mask: Any, value: Any = None) -> None:
    launch = _launch
    if launch is None:
        return
    size = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
    addresses = ptrs.data
    mask = mask if mask.shape == addresses.shape else np.broadcast_to(mask, addresses.shape)
    region = launch.regions.get(id(ptrs.dtype.scalar))
    if region is not None:
        wrong = (addresses < region.low) | (addresses > region.high - size)
    else:
        wrong = np.ones(addresses.shape, dtype=bool)
        for one in launch.regions.values():
            wrong &= (addresses < one.low) | (addresses > one.high - size)
    wrong &= mask
    if wrong.any() and not (region is None and launch.raw_pointers and _alive(addresses[wrong], size)):
        raise OutOfBounds(_words(kind, launch, region, addresses, wrong, size))
    if launch.log is not None and launch.log.open:
        name = region.name if region is not None else ""
        if kind == "load":
            launch.loaded.add(name)
        before = _peek(ptrs, mask) if kind == "store" and name in launch.loaded else None
        _log(launch, region, Access(kind, addresses, mask, value, size, _line(), before))


def _peek(ptrs: Any, mask: Any) -> Any:
    """What lies at the addresses that are about to be stored to."""
    kind = stock._get_np_dtype(ptrs.get_element_ty())
    return stock._interpreter.load(ptrs.data, mask, np.zeros(ptrs.data.shape, dtype=kind), kind)


def _log(launch: Launch, region: Region | None, access: Access) -> None:
    assert launch.log is not None
    stored = _stored.setdefault(launch.kernel, set())
    name = region.name if region is not None else ""
    if access.kind == "store":
        stored.add(name)
    elif access.kind == "load" and name not in stored:
        return
    builder = stock.interpreter_builder
    x, y, z = builder.grid_idx
    wide, high = builder.grid_dim[0], builder.grid_dim[1]
    launch.log.add(access, name, x + wide * (y + high * z), (wide, high))


def _line() -> int:
    """Line of the kernel's text that is running."""
    frame = sys._getframe(3)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_HERE) and "/triton/" not in path:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return 0


def _alive(addresses: Any, size: int) -> bool:
    """True where all addresses lie in live tensors: a table of pointers leads to tensors that are no arguments."""
    left = addresses.reshape(-1)
    for one in gc.get_objects():
        if isinstance(one, torch.Tensor) and one.layout is torch.strided and one.device.type == "cpu":
            storage = one.untyped_storage()
            low = storage.data_ptr()
            left = left[(left < low) | (left > low + storage.nbytes() - size)]
            if not left.size:
                return True
    return False


def _words(kind: str, launch: Launch, region: Region | None, addresses: Any, wrong: Any, size: int) -> str:
    program = tuple(int(part) for part in stock.interpreter_builder.grid_idx)
    count, total = int(wrong.sum()), int(wrong.size)
    lanes = f"{count} of {total} lanes" if total > 1 else "the address"
    if region is None:
        return f"{kind} out of bounds in program {program} of {launch.kernel}: {lanes} belong to no argument"
    first = int(addresses[wrong].reshape(-1)[0])
    if first < region.low:
        where = f"{region.low - first} bytes before its start"
    else:
        where = f"{first - region.high} bytes past its end" if first > region.high else "just past its end"
    held = (region.high - region.low) // size
    return (
        f"{kind} out of bounds in program {program} of {launch.kernel}: {lanes} lie outside `{region.name}` "
        f"({held} elements); the first is {where}"
    )
