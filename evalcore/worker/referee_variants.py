"""Owns variants of a trial: inputs twisted on purpose, and two runs compared with each other. Never a candidate's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from evalcore.facts import ErrorStats
from evalcore.gpu.answer import Key
from evalcore.gpu.compare import compare
from evalcore.gpu.outputs import Output

_SPECIAL_SHARE = 1000
"""One element in so many becomes NaN or infinite, at least one."""


def twisted(inputs: Sequence[Any], twist: str, seed: int) -> list[Any]:
    """`inputs` with every floating tensor changed as `twist` says; the rest as it is. Raises KeyError for no twist."""
    change = _TWISTS[twist]
    generator = torch.Generator().manual_seed(seed)
    return [_apply(value, change, generator) for value in inputs]


_Change = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def _apply(value: Any, change: _Change, generator: torch.Generator) -> Any:
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() or value.numel() == 0:
            return value
        changed = change(value.detach(), generator).to(value.dtype)
        return torch.empty_like(value).copy_(changed).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: _apply(each, change, generator) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_apply(each, change, generator) for each in value]
    return value


def _sprinkled(tensor: torch.Tensor, generator: torch.Generator, specials: Sequence[float]) -> torch.Tensor:
    flat = tensor.clone().reshape(-1)
    count = max(flat.numel() // _SPECIAL_SHARE, 1)
    places = torch.randint(flat.numel(), (count,), generator=generator)
    values = torch.tensor([specials[index % len(specials)] for index in range(count)], dtype=flat.dtype)
    flat[places.to(flat.device)] = values.to(flat.device)
    return flat.reshape(tensor.shape)


_TWISTS: dict[str, _Change] = {
    "scaled by 100": lambda tensor, generator: tensor * 100,
    "scaled by 0.01": lambda tensor, generator: tensor * 0.01,
    "shifted by 10": lambda tensor, generator: tensor + 10,
    "with NaN": lambda tensor, generator: _sprinkled(tensor, generator, (float("nan"),)),
    "with infinities": lambda tensor, generator: _sprinkled(tensor, generator, (float("inf"), float("-inf"))),
}


def differences(first: Sequence[Output], second: Sequence[Output]) -> tuple[ErrorStats, ...]:
    """A second run's outputs against the first one's, with no tolerance at all."""
    key = Key(
        outputs=list(first),
        exact=[None] * len(first),
        reference_error=[None] * len(first),
        own=[None] * len(first),
    )
    return compare(second, key)
