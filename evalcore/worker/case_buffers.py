"""Owns storage of a case that the referee may write, and the argument lists laid over it. Never makes a value itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from evalcore.gpu.inputs import Buffers, arguments, flat_values, raw_bytes, view
from evalcore.problem import TensorSpec

_SAME_OBJECTS = 3
"""Trials that get the very same tensor objects, refilled in place."""


@dataclass(slots=True, kw_only=True)
class Lent:
    """Storage that the referee may write, and the argument list over it."""

    specs: tuple[TensorSpec, ...]
    buffers: Buffers
    raws: list[torch.Tensor]
    """What the referee sees: the buffers' own bytes, or a copy on the host where the card cannot be shared."""
    kept: list[Any] | None = None
    calls: int = 0

    def pull(self) -> None:
        """Bring what the referee wrote to where the program reads it."""
        self._copy(to_card=True)

    def push(self) -> None:
        """Show the referee what the inputs are now."""
        self._copy(to_card=False)

    def _copy(self, *, to_card: bool) -> None:
        own = [raw for raw in self.buffers.raw if raw is not None]
        for raw, shown in zip(own, self.raws, strict=True):
            if raw.data_ptr() != shown.data_ptr():
                source, target = (shown, raw) if to_card else (raw, shown)
                target.copy_(source[: target.numel()])

    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        return [tensor for tensor in self.buffers.tensors if tensor is not None]

    def next_arguments(self) -> list[Any]:
        """For the next trial: the first few get the very same objects, refilled in place, later ones get new objects.

        A memo by object, attribute or address hands out an old answer to the former and never works for the latter.
        """
        self.calls += 1
        if self.calls > _SAME_OBJECTS or any(spec.requires_grad for spec in self.specs):
            return self.arguments()
        if self.kept is None or not self._as_made(self.kept):
            self.kept = self.arguments()
        return self.kept

    def _as_made(self, values: list[Any]) -> bool:
        """False where a call has bent the objects themselves: transposed in place, resized, set to other storage."""
        found = [each for each in flat_values(values) if isinstance(each, torch.Tensor)]
        wanted = [
            (spec, tensor) for spec, tensor in zip(self.specs, self.buffers.tensors, strict=True) if spec.is_tensor
        ]
        if len(found) != len(wanted):
            return False
        return all(
            tensor is not None
            and tuple(each.shape) == spec.shape
            and tuple(each.stride()) == spec.stride
            and each.data_ptr() == tensor.data_ptr()
            for each, (spec, tensor) in zip(found, wanted, strict=True)
        )

    def arguments(self, offset: int = 0) -> list[Any]:
        """The argument list at `offset` bytes in each buffer, with tensor objects that no call has seen before."""
        fresh: list[torch.Tensor | None] = []
        for spec, raw in zip(self.specs, self.buffers.raw, strict=True):
            laid = None if raw is None else view(spec, raw[offset : offset + raw_bytes(spec)])
            fresh.append(laid.requires_grad_() if laid is not None and spec.requires_grad else laid)
        return arguments(self.specs, fresh)
