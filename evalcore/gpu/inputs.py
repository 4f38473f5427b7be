"""Owns buffers for inputs: specs of values, guarded and poisoned allocations, canaries. Never makes a value itself.

A buffer is raw bytes [guard | tensor | guard]. The raw bytes may be our own allocation, a mapped file or an opened IPC
handle: `raw_bytes` says how many are needed, `view` lays the tensor over them. Both processes call the same two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evalcore.problem import TensorSpec

GUARD_BYTES = 1024
"""On each side; a multiple of 512 keeps the alignment that cudaMalloc gives."""
CANARY = 0xA5
_PLAIN = (int, float, bool, str, complex, type(None))


class UnsupportedInput(ValueError):
    """A value that cannot cross between referee and case. The message names it."""


@dataclass(slots=True, kw_only=True)
class Buffers:
    """Guarded storage for one argument list. `tensors[i]` is None where `specs[i]` is a plain value."""

    specs: tuple[TensorSpec, ...]
    tensors: list[torch.Tensor | None]
    raw: list[torch.Tensor | None] = field(default_factory=list)
    """uint8 [guard + bytes + guard] per tensor."""

    def arguments(self) -> list[Any]:
        """The argument list as the program expects it, nested values rebuilt, the buffers' own tensors in it."""
        return arguments(self.specs, self.tensors)


def to_specs(values: Sequence[Any], names: Sequence[str] = ()) -> list[TensorSpec]:
    """Describe an argument list. Nested lists, tuples and dicts of tensors are flattened, with `path` to rebuild them.

    Raises UnsupportedInput for what is neither a strided tensor nor plain data.
    """
    specs: list[TensorSpec] = []
    for index, value in enumerate(values):
        name = names[index] if index < len(names) else f"input {index}"
        _describe(value, name, (index,), specs)
    return specs


def flat_values(values: Sequence[Any]) -> list[Any]:
    """The values in the order of `to_specs`: a tensor or a plain value per spec."""
    found: list[Any] = []
    for value in values:
        _flatten(value, found)
    return found


def _describe(value: Any, name: str, path: tuple[int | str, ...], specs: list[TensorSpec]) -> None:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized:
            raise UnsupportedInput(f"{name} is a {value.layout} tensor; only strided ones are supported")
        specs.append(
            TensorSpec(
                name=name,
                shape=tuple(value.shape),
                dtype=str(value.dtype).removeprefix("torch."),
                stride=tuple(value.stride()),
                requires_grad=value.requires_grad,
                path=path,
            )
        )
    elif _holds_tensor(value):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            _describe(each, f"{name}[{key!r}]", (*path, key), specs)
    elif _is_plain(value):
        specs.append(TensorSpec(name=name, shape=(), dtype="", stride=(), scalar=value, is_tensor=False, path=path))
    else:
        raise UnsupportedInput(f"{name} is a {type(value).__name__}, which cannot be handed to another process")


def _flatten(value: Any, found: list[Any]) -> None:
    if not isinstance(value, torch.Tensor) and _holds_tensor(value):
        for each in value.values() if isinstance(value, dict) else value:
            _flatten(each, found)
    else:
        found.append(value)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, dict):
        return any(_holds_tensor(each) for each in value.values())
    return isinstance(value, (list, tuple)) and any(_holds_tensor(each) for each in value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(each) for each in value)
    return isinstance(value, _PLAIN) and not isinstance(value, complex)


def arguments(specs: Sequence[TensorSpec], tensors: Sequence[torch.Tensor | None]) -> list[Any]:
    """Rebuild the argument list from flat tensors: containers come back as lists (int keys) or dicts (str keys)."""
    root: dict[int | str, Any] = {}
    for index, (spec, tensor) in enumerate(zip(specs, tensors, strict=True)):
        place = root
        path = spec.path or (index,)
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = _Leaf(tensor if spec.is_tensor else spec.scalar)
    return [_rebuild(root[key]) for key in sorted(root, key=lambda key: int(key))]


@dataclass(slots=True)
class _Leaf:
    value: Any


def _rebuild(node: Any) -> Any:
    if isinstance(node, _Leaf):
        return node.value
    if all(isinstance(key, int) for key in node):
        return [_rebuild(node[key]) for key in sorted(node)]
    return {key: _rebuild(each) for key, each in node.items()}


def extent_bytes(spec: TensorSpec) -> int:
    """Bytes from the first to past the last element, gaps of the strides included; 0 for an empty tensor."""
    if 0 in spec.shape:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(spec.shape, spec.stride, strict=True))
    return (last + 1) * _dtype(spec).itemsize


def raw_bytes(spec: TensorSpec) -> int:
    """Bytes of the guarded buffer, rounded so that any dtype fits behind it. 0 for a plain value."""
    if not spec.is_tensor:
        return 0
    return 2 * GUARD_BYTES + -(-extent_bytes(spec) // 512) * 512


def view(spec: TensorSpec, raw: torch.Tensor) -> torch.Tensor:
    """The spec's tensor over guarded bytes `raw` (uint8, `raw_bytes(spec)` long). No copy, no fill."""
    inner = raw[GUARD_BYTES : GUARD_BYTES + extent_bytes(spec)].view(_dtype(spec))
    return inner.as_strided(spec.shape, spec.stride, inner.storage_offset())


def allocate(specs: Sequence[TensorSpec], device: str | torch.device, raw: Sequence[Any] | None = None) -> Buffers:
    """Guarded, poisoned buffers for `specs`. `raw` brings storage of our caller's (mapped, IPC) instead of our own."""
    buffers = Buffers(specs=tuple(specs), tensors=[])
    for index, spec in enumerate(specs):
        if not spec.is_tensor:
            buffers.tensors.append(None)
            buffers.raw.append(None)
            continue
        own = raw[index] if raw is not None else torch.empty(raw_bytes(spec), dtype=torch.uint8, device=device)
        buffers.raw.append(own)
        buffers.tensors.append(view(spec, own))
    poison_buffers_(buffers)
    return buffers


def poison_buffers_(buffers: Buffers) -> None:
    """Set canaries on both sides of every tensor (gaps and tail included) and poison the tensors themselves."""
    for raw, tensor in zip(buffers.raw, buffers.tensors, strict=True):
        if raw is not None and tensor is not None:
            raw.fill_(CANARY)
            poison_(tensor)


def canaries_intact(buffers: Buffers) -> list[str]:
    """Names of inputs beside which something wrote, with the side; [] when all is well."""
    hurt = []
    for spec, raw in zip(buffers.specs, buffers.raw, strict=True):
        if raw is None:
            continue
        end = GUARD_BYTES + extent_bytes(spec)
        if bool((raw[:GUARD_BYTES] != CANARY).any()):
            hurt.append(f"{spec.name} (before its start)")
        if bool((raw[end:] != CANARY).any()):
            hurt.append(f"{spec.name} (past its end)")
    return hurt


def poison_(tensor: torch.Tensor) -> torch.Tensor:
    """Fill with a value that no right answer has: NaN, the largest integer, alternating bools. Returns the tensor."""
    with torch.no_grad():
        if tensor.numel() == 0:
            return tensor
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            return tensor.fill_(float("nan"))
        if tensor.dtype is torch.bool:
            return tensor.fill_(True)
        return tensor.fill_(torch.iinfo(tensor.dtype).max)


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """Bool mask of elements that still hold `poison_`'s value. All False for bools: they cannot tell."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return torch.isnan(tensor)
    if tensor.dtype is torch.bool:
        return torch.zeros_like(tensor)
    return tensor == torch.iinfo(tensor.dtype).max


def fill_(buffers: Buffers, values: Iterable[Any]) -> None:
    """Copy flat `values` (see `flat_values`) into the buffers. Raises ValueError where shapes or dtypes do not fit."""
    with torch.no_grad():
        for spec, tensor, value in zip(buffers.specs, buffers.tensors, values, strict=True):
            if tensor is None:
                continue
            if tuple(value.shape) != spec.shape or value.dtype != tensor.dtype:
                raise ValueError(f"{spec.name}: {value.dtype} {list(value.shape)} does not fit its buffer")
            if 0 in spec.stride and tensor.numel() > 1:
                _fill_expanded_(tensor, value)
            else:
                tensor.copy_(value)


def _fill_expanded_(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """An expanded input (stride 0) holds each element once; copy_ refuses to write it through all its names."""
    index = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())
    tensor[index].copy_(value[index])


def _dtype(spec: TensorSpec) -> torch.dtype:
    found = getattr(torch, spec.dtype, None)
    if not isinstance(found, torch.dtype):
        raise UnsupportedInput(f"{spec.name} has an unknown dtype {spec.dtype!r}")
    return found
