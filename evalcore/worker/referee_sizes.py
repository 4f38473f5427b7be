"""Owns how large inputs are before they are made, and cheap fresh inputs where making them is slow. Never a candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

from evalcore.gpu.faults import CandidateFault
from evalcore.gpu.inputs import flat_values
from evalcore.gpu.loading import Loaded, make_inputs
from evalcore.problem import Problem

_SLOW_S = 0.02
_MOVES = frozenset({torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.pin_memory})


class _OnMeta(TorchFunctionMode):
    """Every tensor that is made has a shape and no memory; moving it to a device does nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _device_constructors():
            kwargs["device"] = "meta"
            kwargs.pop("pin_memory", None)
            kwargs.pop("generator", None)
        elif func in _MOVES and args and isinstance(args[0], torch.Tensor) and args[0].is_meta:
            return args[0]
        return func(*args, **kwargs)


def estimate_elements(
    loaded: Loaded, problem: Problem, sizes: dict[str, int], seed: int
) -> tuple[int | None, int | None]:
    """(elements, bytes) of all input tensors, from tensors without memory; (None, None) where the recipe needs values."""
    try:
        with _OnMeta():
            made = make_inputs(loaded, problem, sizes=sizes, seed=seed)
    except CandidateFault:
        return None, None
    tensors = [each for each in flat_values(made) if isinstance(each, torch.Tensor)]
    return sum(each.numel() for each in tensors), sum(each.numel() * each.element_size() for each in tensors)


@dataclass(slots=True, kw_only=True)
class Rotation:
    """One input set whose floating tensors are rotated by a seed: same distribution, other values, no generator."""

    base: list[Any]

    @staticmethod
    def where_slow(made: list[Any], seconds: Sequence[float]) -> Rotation | None:
        """A rotation of `made` if every time it took too long to make a set anew for each timed call, else None.

        The first time says little: generators and kernels are loaded then.
        """
        return Rotation(base=made) if len(seconds) > 1 and min(seconds) > _SLOW_S else None

    def turn(self, seed: int) -> list[Any]:
        """The set rotated by `seed`. Integer tensors stay: a rotation may break what indices mean."""
        return [_turn(value, seed) for value in self.base]


def _turn(value: Any, seed: int) -> Any:
    if isinstance(value, torch.Tensor):
        return _rotated(value.detach(), seed) if value.is_floating_point() and value.numel() > 1 else value
    if isinstance(value, dict):
        return {key: _turn(each, seed) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        turned: Sequence[Any] = [_turn(each, seed) for each in value]
        return turned
    return value


def _rotated(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    flat = tensor.contiguous().reshape(-1)
    rotated = flat.roll(1 + seed * 40503 % (flat.numel() - 1)).reshape(tensor.shape)
    return torch.empty_like(tensor).copy_(rotated)
