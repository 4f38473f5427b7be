"""Owns narrow floats in Triton's interpreter: bfloat16 and float8 arithmetic done right.

The stock interpreter keeps bfloat16 as uint16 and float8 as uint8 and then adds, multiplies and compares those
integers; its conversions truncate or lose a carry. Here each operation widens to float32, computes, and rounds to
nearest even. Float16 and float32 are left alone: numpy computes them exactly as IEEE says.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as stock

_FLOAT8 = {
    "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
_BITWISE = ("and", "or", "xor", "not", "shl", "shr", "bitwise", "invert", "left_shift", "right_shift")


def narrow(handle: Any) -> bool:
    """True where a handle's data are bits of a float that numpy does not have."""
    scalar = handle.dtype.scalar
    if scalar == tl.bfloat16:
        return bool(handle.data.dtype == np.uint16)
    return getattr(scalar, "name", "") in _FLOAT8 and bool(handle.data.dtype == np.uint8)


def widen(data: Any, scalar: Any) -> Any:
    """Bits of `scalar` (a Triton dtype) as float32 values."""
    if scalar == tl.bfloat16:
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    bits = torch.from_numpy(np.ascontiguousarray(data).reshape(-1))
    return bits.view(_FLOAT8[scalar.name]).to(torch.float32).numpy().reshape(data.shape)


def round_to(values: Any, scalar: Any) -> Any:
    """float32 values as bits of `scalar`, to nearest even; float8 saturates as NVIDIA's conversion does."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if scalar == tl.bfloat16:
        bits = values.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
        return np.where(np.isnan(values), quiet, rounded).astype(np.uint16).reshape(np.shape(values))
    kind = _FLOAT8[scalar.name]
    most = torch.finfo(kind).max
    flat = torch.from_numpy(values.reshape(-1))
    clipped = torch.where(flat.isnan(), flat, flat.clamp(-most, most))
    return clipped.to(kind).view(torch.uint8).numpy().reshape(values.shape)


def _is_narrow_type(scalar: Any) -> bool:
    return scalar == tl.bfloat16 or getattr(scalar, "name", "") in _FLOAT8


def _wide(handle: Any) -> Any:
    return stock.TensorHandle(widen(handle.data, handle.dtype.scalar), tl.float32) if narrow(handle) else handle


def _back(result: Any, scalar: Any) -> Any:
    """A result computed wide, in the operation's own type; booleans of a comparison stay booleans."""
    if result.data.dtype == np.bool_:
        return stock.TensorHandle(result.data, tl.int1)
    return stock.TensorHandle(round_to(result.data, scalar), scalar)


def install() -> None:
    """Replaces the interpreter's operations on narrow floats. Call once."""
    builder = stock.InterpreterBuilder
    for name in ("binary_op", "unary_op", "ternary_op"):
        setattr(builder, name, _elementwise(getattr(builder, name)))
    for name in ("create_fma", "create_erf", "create_rsqrt"):
        if hasattr(builder, name):
            setattr(builder, name, _elementwise(getattr(builder, name)))
    builder.cast_impl = _casting(builder.cast_impl)
    builder.create_fp_to_fp = _fp_to_fp(builder.create_fp_to_fp)
    builder.create_dot = _dot(builder.create_dot)
    builder.create_atomic_rmw = _atomic(builder.create_atomic_rmw)
    builder.get_bf16 = _constant
    stock.ReduceOps.apply_impl = _reducing(stock.ReduceOps.apply_impl)
    if hasattr(stock, "ScanOps"):
        stock.ScanOps.apply_impl = _reducing(stock.ScanOps.apply_impl)


def _constant(self: Any, value: float) -> Any:
    return stock.TensorHandle(round_to(np.array([value], dtype=np.float32), tl.bfloat16), tl.bfloat16)


def _elementwise(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def operate(self: Any, *args: Any, **kwargs: Any) -> Any:
        handles = [one for one in args if isinstance(one, stock.TensorHandle)]
        if not any(narrow(one) for one in handles):
            return original(self, *args, **kwargs)
        op = args[-1] if callable(args[-1]) else None
        if op is not None and any(part in getattr(op, "__name__", "") for part in _BITWISE):
            return original(self, *args, **kwargs)
        scalar = next(one.dtype.scalar for one in reversed(handles) if narrow(one))
        wide = [_wide(one) if isinstance(one, stock.TensorHandle) else one for one in args]
        return _back(original(self, *wide, **kwargs), scalar)

    return operate


def _casting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        target = dst_type.scalar
        if not narrow(src) and not _is_narrow_type(target):
            return original(self, src, dst_type)
        return _convert(src, target)

    return cast


def _convert(src: Any, target: Any) -> Any:
    values = widen(src.data, src.dtype.scalar) if narrow(src) else src.data
    if _is_narrow_type(target):
        return stock.TensorHandle(round_to(values.astype(np.float32), target), target)
    return stock.TensorHandle(values.astype(stock._get_np_dtype(target)), target)


def _fp_to_fp(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def convert(self: Any, src: Any, dst_type: Any, rounding_mode: Any = None) -> Any:
        target = dst_type.scalar
        towards_zero = "RTZ" in str(rounding_mode)
        if towards_zero and target == tl.bfloat16 and not narrow(src):
            bits = np.ascontiguousarray(src.data.astype(np.float32)).view(np.uint32)
            return stock.TensorHandle((bits >> np.uint32(16)).astype(np.uint16), target)
        if towards_zero or not (narrow(src) or _is_narrow_type(target)):
            return original(self, src, dst_type, rounding_mode)
        return _convert(src, target)

    return convert


def _dot(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        return original(self, _wide(a), _wide(b), d, *rest)

    return dot


def _atomic(original: Callable[..., Any]) -> Callable[..., Any]:
    """Atomic add of bfloat16, lane by lane as the hardware would: read, add, round, write."""

    @functools.wraps(original)
    def atomic(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        if not narrow(val):
            return original(self, op, ptr, val, mask, *rest)
        scalar = val.dtype.scalar
        adds = np.broadcast_to(widen(val.data, scalar), ptr.data.shape).reshape(-1)
        takes = np.broadcast_to(mask.data, ptr.data.shape).reshape(-1)
        before = np.zeros(adds.shape, dtype=val.data.dtype)
        addresses = ptr.data.reshape(-1)
        for lane in np.nonzero(takes)[0]:
            place: Any = addresses[lane : lane + 1]
            one: Any = np.ones(1, dtype=bool)
            old = stock._interpreter.load(place, one, np.zeros(1, dtype=val.data.dtype), val.data.dtype)
            before[lane] = old[0]
            new = round_to(widen(old, scalar) + adds[lane : lane + 1], scalar)
            stock._interpreter.store(place, new, one)
        return stock.TensorHandle(before.reshape(ptr.data.shape), scalar)

    return atomic


def _reducing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply(self: Any, inputs: Any) -> Any:
        scalars = [one.handle.dtype.scalar if narrow(one.handle) else None for one in inputs]
        if not any(scalar is not None for scalar in scalars):
            return original(self, inputs)
        wide = tuple(_wide_tensor(one) for one in inputs)
        result = original(self, wide)
        many = isinstance(result, (list, tuple))
        parts = list(result) if many else [result]
        narrowed = [_narrow_tensor(one, scalar) for one, scalar in zip(parts, scalars, strict=False)]
        narrowed += parts[len(narrowed) :]
        return narrowed if many else narrowed[0]

    return apply


def _wide_tensor(tensor: Any) -> Any:
    if not narrow(tensor.handle):
        return tensor
    return tl.core.tensor(_wide(tensor.handle), _typed(tensor, tl.float32))


def _narrow_tensor(tensor: Any, scalar: Any) -> Any:
    if scalar is None or tensor.handle.data.dtype != np.float32:
        return tensor
    handle = stock.TensorHandle(round_to(tensor.handle.data, scalar), scalar)
    return tl.core.tensor(handle, _typed(tensor, scalar))


def _typed(tensor: Any, scalar: Any) -> Any:
    shape = list(tensor.type.shape) if tensor.type.is_block() else None
    return tl.core.block_type(scalar, shape) if shape is not None else scalar
