"""Owns what translated C++ host code calls: C's arithmetic, torch's C++ names, kernel launches. Never parses."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

DTYPES = {
    "float": torch.float32, "double": torch.float64, "int": torch.int32, "int32_t": torch.int32, "int64_t": torch.int64,
    "long": torch.int64, "int8_t": torch.int8, "uint8_t": torch.uint8, "int16_t": torch.int16, "short": torch.int16,
    "bool": torch.bool, "at::Half": torch.float16, "c10::Half": torch.float16, "torch::Half": torch.float16,
    "half": torch.float16, "__half": torch.float16, "at::BFloat16": torch.bfloat16, "c10::BFloat16": torch.bfloat16,
    "torch::BFloat16": torch.bfloat16, "__nv_bfloat16": torch.bfloat16, "unsigned char": torch.uint8,
}
_CPP_NAMES = {
    torch.float32: "float", torch.float64: "double", torch.float16: "at::Half", torch.bfloat16: "at::BFloat16",
    torch.int32: "int", torch.int64: "int64_t", torch.int8: "int8_t", torch.uint8: "uint8_t", torch.int16: "int16_t",
    torch.bool: "bool",
}
_WORDS = {
    torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.bfloat16: "BFloat16",
    torch.int32: "Int", torch.int64: "Long", torch.int8: "Char", torch.uint8: "Byte", torch.int16: "Short",
    torch.bool: "Bool",
}
SCALAR_TYPES = {
    "Float": torch.float32, "Float32": torch.float32, "Double": torch.float64, "Float64": torch.float64,
    "Half": torch.float16, "Float16": torch.float16, "BFloat16": torch.bfloat16, "Int": torch.int32,
    "Int32": torch.int32, "Long": torch.int64, "Int64": torch.int64, "Char": torch.int8, "Int8": torch.int8,
    "Byte": torch.uint8, "UInt8": torch.uint8, "Short": torch.int16, "Bool": torch.bool,
}
_INT_TYPES: dict[str, Any] = {
    "int": ctypes.c_int32, "int32_t": ctypes.c_int32, "unsigned": ctypes.c_uint32, "unsigned int": ctypes.c_uint32,
    "uint32_t": ctypes.c_uint32, "long": ctypes.c_int64, "int64_t": ctypes.c_int64, "long long": ctypes.c_int64,
    "size_t": ctypes.c_uint64, "uint64_t": ctypes.c_uint64, "unsigned long": ctypes.c_uint64, "short": ctypes.c_int16,
    "unsigned long long": ctypes.c_uint64, "int16_t": ctypes.c_int16, "int8_t": ctypes.c_int8, "char": ctypes.c_int8,
    "uint8_t": ctypes.c_uint8, "unsigned char": ctypes.c_uint8, "ptrdiff_t": ctypes.c_int64,
}
FLOAT_TYPES = {"float", "double"}


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address with the size of what it points to."""

    address: int
    size: int

    def __int__(self) -> int:
        return self.address

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.address + int(count) * self.size, self.size)

    def __bool__(self) -> bool:
        return self.address != 0


@dataclass(frozen=True, slots=True)
class Options:
    """torch::TensorOptions."""

    given: tuple[tuple[str, Any], ...] = ()

    def with_(self, name: str, value: Any) -> Options:
        return Options((*[one for one in self.given if one[0] != name], (name, value)))

    def arguments(self) -> dict[str, Any]:
        return dict(self.given)


def to_type(name: str, value: Any) -> Any:
    """`value` converted to a C++ scalar type as an initialisation would."""
    if isinstance(value, torch.Tensor):
        raise RuntimeError(f"a tensor where a {name} is wanted")
    if name in _INT_TYPES:
        return _INT_TYPES[name](math.trunc(value)).value
    if name == "float":
        return ctypes.c_float(float(value)).value
    if name == "double":
        return float(value)
    if name == "bool":
        return bool(value)
    return value


def is_integer_type(name: str) -> bool:
    """True for C++'s integer types."""
    return name in _INT_TYPES


def divide(left: Any, right: Any) -> Any:
    """C's division: integers truncate towards zero."""
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def remainder(left: Any, right: Any) -> Any:
    """C's remainder: the sign of the left side."""
    return left - right * divide(left, right)


def data_ptr(tensor: torch.Tensor, wanted: Any = None) -> Pointer:
    """tensor.data_ptr<T>(), which checks the type as torch does."""
    dtype = DTYPES.get(wanted) if isinstance(wanted, str) else wanted
    if dtype is not None and tensor.dtype != dtype:
        raise RuntimeError(f"expected scalar type {_WORDS.get(dtype, dtype)} but found {_WORDS.get(tensor.dtype)}")
    return Pointer(tensor.data_ptr(), tensor.element_size())


def cast_pointer(pointer: Any, size: int) -> Any:
    """reinterpret_cast<T*>(pointer)."""
    return Pointer(int(pointer), size)


def check(condition: Any, *message: Any) -> None:
    """TORCH_CHECK."""
    if not condition:
        raise RuntimeError("".join(str(part) for part in message) or "a TORCH_CHECK failed")


def dims(value: Any) -> tuple[int, int, int]:
    """A dim3 out of a number or a tuple."""
    parts = list(value) if isinstance(value, (list, tuple, Dim3)) else [value]
    whole = [int(part) for part in parts] + [1] * (3 - len(parts))
    return whole[0], whole[1], whole[2]


def make(kind: str, size: Any, *rest: Any) -> torch.Tensor:
    """torch::zeros, ones, empty, full of a size list, with options, a dtype or a device in any order."""
    arguments: dict[str, Any] = {}
    values = []
    for one in rest:
        if isinstance(one, Options):
            arguments.update(one.arguments())
        elif isinstance(one, torch.dtype):
            arguments["dtype"] = one
        elif isinstance(one, torch.device):
            arguments["device"] = one
        else:
            values.append(one)
    sizes = [int(part) for part in (size if isinstance(size, (list, tuple, torch.Size)) else [size])]
    return getattr(torch, kind)(sizes, *values, **arguments)  # type: ignore[no-any-return]


def like(kind: str, tensor: torch.Tensor, *rest: Any) -> torch.Tensor:
    """torch::zeros_like and the like."""
    arguments: dict[str, Any] = {}
    values = []
    for one in rest:
        if isinstance(one, Options):
            arguments.update(one.arguments())
        else:
            values.append(one)
    return getattr(torch, kind)(tensor, *values, **arguments)  # type: ignore[no-any-return]


def options_of(tensor: torch.Tensor) -> Options:
    """tensor.options()."""
    return Options((("dtype", tensor.dtype), ("device", tensor.device)))


def dispatch(allowed: Sequence[Any], dtype: torch.dtype, name: str) -> Iterator[torch.dtype]:
    """AT_DISPATCH_*: one turn with scalar_t bound, or torch's own error."""
    if dtype not in allowed:
        raise RuntimeError(f'"{name}" not implemented for \'{_WORDS.get(dtype, dtype)}\'')
    yield dtype


def template_argument(value: Any) -> str:
    """A template argument as C++ spells it."""
    if isinstance(value, torch.dtype):
        return _CPP_NAMES[value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def take(kind: str, value: Any, name: str) -> Any:
    """An argument from Python as pybind11 would take it."""
    if kind == "tensor":
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"argument {name!r}: a Tensor is wanted, not {type(value).__name__}")
        return value
    if kind == "optional":
        return value
    if kind == "list":
        return list(value)
    if kind == "bool":
        return bool(value)
    if kind in FLOAT_TYPES:
        if not isinstance(value, (int, float)):
            raise TypeError(f"argument {name!r}: a float is wanted, not {type(value).__name__}")
        return to_type(kind, value)
    if not hasattr(value, "__index__"):
        raise TypeError(f"argument {name!r}: an int is wanted, not {type(value).__name__}")
    return to_type(kind, value.__index__())


MATH: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt, "sqrtf": math.sqrt, "exp": math.exp, "expf": math.exp, "log": math.log, "logf": math.log,
    "log2": math.log2, "log2f": math.log2, "pow": math.pow, "powf": math.pow, "ceil": lambda x: float(math.ceil(x)),
    "ceilf": lambda x: float(math.ceil(x)), "floor": lambda x: float(math.floor(x)), "fabs": abs, "fabsf": abs,
    "floorf": lambda x: float(math.floor(x)), "abs": abs, "min": min, "max": max, "fmin": min, "fmax": max,
    "fminf": min, "fmaxf": max, "round": round, "tanh": math.tanh,
}


class Dim3:
    """dim3."""

    def __init__(self, x: int = 1, y: int = 1, z: int = 1) -> None:
        self.x, self.y, self.z = int(x), int(y), int(z)

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y, self.z))


def is_cuda(value: Any) -> bool:
    """tensor.is_cuda() or device.is_cuda()."""
    return value.type == "cuda" if isinstance(value, torch.device) else bool(value.is_cuda)


def kind(value: Any) -> Any:
    """tensor.type() as a scalar type, device.type() as a device without an index."""
    return torch.device(value.type) if isinstance(value, torch.device) else value.dtype


def first(*values: Any) -> Any:
    """The first of its arguments."""
    return values[0]


def synchronize() -> int:
    """cudaDeviceSynchronize()."""
    torch.cuda.synchronize()
    return 0
