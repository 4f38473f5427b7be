"""Owns two values that Triton's interpreter gets wrong: float arguments, and what libdevice functions return.

A float argument of a kernel is a float32 scalar when compiled and a bare Python float when interpreted, so that
`eps.to(tl.float32)` fails. libdevice functions are stubs that return None there. Both are made what a card makes of them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as stock

_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])
_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])

_FLOATS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x), "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10.0**x,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": _erf, "erfc": _erfc,
    "lgamma": _lgamma, "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "fast_expf": np.exp, "fast_exp10f": lambda x: 10.0**x, "fast_logf": np.log, "fast_log2f": np.log2,
    "fast_log10f": np.log10, "fast_sinf": np.sin, "fast_cosf": np.cos, "fast_tanf": np.tan, "fast_tanhf": np.tanh,
    "pow": np.power, "fast_powf": np.power, "fmod": np.fmod, "atan2": np.arctan2, "hypot": np.hypot,
    "copysign": np.copysign, "fdim": lambda x, y: np.maximum(x - y, 0.0), "div_rn": np.divide, "fast_dividef": np.divide,
    "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply, "sqrt_rn": np.sqrt, "rcp_rn": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z, "remainder": lambda x, y: x - y * np.rint(x / y), "nextafter": np.nextafter,
}  # fmt: skip
_TESTS: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinited": np.isfinite, "finitef": np.isfinite, "signbit": np.signbit,
}  # fmt: skip


def install() -> None:
    """Repairs both in this process. Safe to call again."""
    if getattr(stock, "odyssey_values", False):
        return
    stock.odyssey_values = True
    convert = stock._implicit_cvt

    def implicit_cvt(argument: Any) -> Any:
        if isinstance(argument, float):
            return tl.tensor(stock.TensorHandle(np.array([argument], dtype=np.float32), tl.float32), tl.float32)
        return convert(argument)

    stock._implicit_cvt = implicit_cvt
    for path in _MODULES:
        try:
            module = importlib.import_module(path)
        except ImportError:
            continue
        for name, function in _FLOATS.items():
            if hasattr(module, name):
                setattr(module, name, _float_function(name, function))
        for name, function in _TESTS.items():
            if hasattr(module, name):
                setattr(module, name, _test_function(name, function))


def _float_function(name: str, function: Callable[..., Any]) -> Any:
    def libdevice_function(*arguments: Any, **_ignored: Any) -> Any:
        shape, kind, data = _wide(name, arguments)
        with np.errstate(all="ignore"):
            made = np.asarray(function(*data)).astype(stock._get_np_dtype(kind))
        return tl.tensor(stock.TensorHandle(made, kind), shape)

    libdevice_function.__name__ = name
    return libdevice_function


def _test_function(name: str, function: Callable[..., Any]) -> Any:
    def libdevice_test(argument: Any, **_ignored: Any) -> Any:
        shape, _kind, (data,) = _wide(name, (argument,))
        made = np.asarray(function(data)).astype(np.int32)
        kind = tl.block_type(tl.int32, shape.shape) if isinstance(shape, tl.block_type) else tl.int32
        return tl.tensor(stock.TensorHandle(made, tl.int32), kind)

    libdevice_test.__name__ = name
    return libdevice_test


def _wide(name: str, arguments: tuple[Any, ...]) -> tuple[Any, Any, list[Any]]:
    """(type of the result, its scalar type, values in float64). libdevice knows float32 and float64 only."""
    tensors = [each for each in arguments if isinstance(each, tl.tensor)]
    if not tensors:
        tensors = [stock._implicit_cvt(float(arguments[0]))]
    largest = max(tensors, key=lambda each: each.handle.data.size)
    kind = largest.type.scalar
    if kind not in (tl.float32, tl.float64):
        raise TypeError(f"libdevice.{name} of {kind}: it has float32 and float64 forms only")
    values = [each.handle.data.astype(np.float64) if isinstance(each, tl.tensor) else float(each) for each in arguments]
    return largest.type, kind, values
