"""Owns what a program returned, flattened into named plain tensors. Never compares, never trusts a subclass.

A lazy tensor subclass may compute when it is looked at, also in our clock's shadow; so the type is checked by identity,
before any attribute of the value is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

_MOST_OUTPUTS = 256
_MOST_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One leaf of a return value. Exactly one of `tensor` and `problem` is set, or neither for a None."""

    name: str
    """'out', 'out[1]', \"out['loss']\"."""
    tensor: torch.Tensor | None = None
    """A plain, strided, detached tensor; a Python number becomes a tensor of no dimensions."""
    problem: str | None = None
    """Why this leaf cannot be judged, e.g. 'a LazyTensor, not a plain tensor'."""
    stride: tuple[int, ...] | None = None
    """The strides that the program gave it; a copy on its way to the referee loses them."""
    device: str = ""
    """'cuda' or 'cpu', as the program returned it."""
    number: bool = False
    """True where the program returned a Python number."""


def flatten(value: Any) -> list[Output]:
    """A return value's leaves in order. Tuples, lists and dicts are opened, by their exact or named-tuple types."""
    found: list[Output] = []
    _flatten(value, "out", 0, found)
    return found


def _flatten(value: Any, name: str, depth: int, found: list[Output]) -> None:
    kind = type(value)
    if len(found) >= _MOST_OUTPUTS or depth > _MOST_DEPTH:
        found.append(Output(name=name, problem=f"more than {_MOST_OUTPUTS} outputs or {_MOST_DEPTH} levels"))
    elif kind is torch.Tensor or kind is torch.nn.Parameter:
        found.append(_leaf(value, name))
    elif value is None:
        found.append(Output(name=name))
    elif kind in (bool, int, float):
        dtype = {bool: torch.bool, int: torch.int64, float: torch.float64}[kind]
        found.append(_number(value, name, dtype))
    elif kind in (tuple, list) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        for index, each in enumerate(tuple.__iter__(value) if issubclass(kind, tuple) else list.__iter__(value)):
            _flatten(each, f"{name}[{index}]", depth + 1, found)
    elif issubclass(kind, dict):
        for key in dict.keys(value):
            _flatten(dict.__getitem__(value, key), f"{name}[{key!r}]"[:80], depth + 1, found)
    else:
        what = "not a plain tensor" if issubclass(kind, torch.Tensor) else "which cannot be compared"
        found.append(Output(name=name, problem=f"a {kind.__name__}, {what}"))


def _number(value: Any, name: str, dtype: torch.dtype) -> Output:
    try:
        return Output(name=name, tensor=torch.tensor(value, dtype=dtype), number=True)
    except (OverflowError, RuntimeError):
        return Output(name=name, problem="an integer of more than 64 bits")


def _leaf(value: torch.Tensor, name: str) -> Output:
    plain = value.detach()
    if plain.layout is not torch.strided or plain.is_quantized:
        return Output(name=name, problem=f"a {plain.layout} tensor, which cannot be compared")
    if plain.device.type == "meta":
        return Output(name=name, problem="a tensor on the meta device, without values")
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    return Output(name=name, tensor=plain, stride=tuple(value.stride()), device=plain.device.type)


def tensors(outputs: Sequence[Output]) -> list[torch.Tensor]:
    """The tensors among `outputs`, in order."""
    return [output.tensor for output in outputs if output.tensor is not None]
