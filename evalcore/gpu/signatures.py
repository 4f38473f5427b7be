"""Owns how a kernel was launched, as text: types, constants and divisibility, so that another process can compile it.

The interpreter accepts what the compiler refuses; a signature that was captured there lets the compiler have its say,
with the types of real arguments instead of guesses. Never launches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch

_POINTERS = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64", torch.int8: "i8",
    torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "i1",
    torch.float8_e5m2: "fp8e5", torch.float8_e4m3fn: "fp8e4nv",
}
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_PLAIN = (int, float, bool, str, type(None))


def capture(names: list[str], constexprs: set[str], bound: Mapping[str, Any], launch: Mapping[str, Any]) -> str:
    """The signature of one launch as text; '' where an argument has a kind that text cannot carry.

    bound: arguments by parameter name, defaults filled in. launch: all keywords of the launch, options among them.
    """
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    divisible = []
    for name in names:
        value = bound.get(name)
        if name in constexprs or value is None:
            told = _constant(value)
            if told is None:
                return ""
            constants[name] = told
        elif isinstance(value, int) and not isinstance(value, bool) and value == 1:
            constants[name] = [1]
        else:
            kind = _type(value)
            if not kind:
                return ""
            types[name] = kind
            if _divisible(value):
                divisible.append(name)
    options = {name: launch[name] for name in _OPTIONS if isinstance(launch.get(name), int)}
    return json.dumps({"types": types, "constants": constants, "divisible": divisible, "options": options}, sort_keys=True)


def read(text: str) -> dict[str, Any]:
    """Keyword arguments of evalcore.static.compile.Signature. Raises ValueError for text that `capture` never makes."""
    found = json.loads(text)
    if not isinstance(found, dict) or set(found) != {"types", "constants", "divisible", "options"}:
        raise ValueError("no signature")
    try:
        return {
            "types": {str(key): str(value) for key, value in found["types"].items()},
            "constants": {str(key): _value(value) for key, value in found["constants"].items()},
            "divisible": frozenset(map(str, found["divisible"])),
            "options": {key: int(value) for key, value in found["options"].items() if key in _OPTIONS},
        }
    except (AttributeError, TypeError, KeyError) as error:
        raise ValueError("no signature") from error


def words(text: str) -> str:
    """The constants of a signature as a person reads them, such as 'BLOCK=64, IS_CAUSAL=True'."""
    constants = read(text)["constants"]
    return ", ".join(f"{name}={value}" for name, value in constants.items() if value is not None)


def _type(value: Any) -> str:
    base = getattr(value, "base", value)  # Triton's TensorWrapper
    if isinstance(base, torch.Tensor):
        kind = _POINTERS.get(getattr(value, "dtype", base.dtype), "")
        return f"*{kind}" if kind else ""
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32" if isinstance(value, float) else ""


def _divisible(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return value % 16 == 0
    base = getattr(value, "base", value)
    return isinstance(base, torch.Tensor) and base.data_ptr() % 16 == 0


def _constant(value: Any) -> list[Any] | dict[str, str] | None:
    """A constant that text can carry: in a list if it is plain, by name if it is a Triton type."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if isinstance(value, _PLAIN):
        return [value]
    if type(value).__module__.startswith("triton.language") and type(value).__name__ == "dtype":
        return {"dtype": str(value.name)}
    return None


def _value(told: Any) -> Any:
    if isinstance(told, dict):
        import triton.language as tl

        return tl.dtype(str(told["dtype"]))
    (value,) = told
    if not isinstance(value, _PLAIN):
        raise ValueError("no constant")
    return value
