"""Owns other values for the same inputs: scaled, shifted, with NaN and infinities. Never other shapes, never a verdict.

Failures on these only warn: a person may know that such inputs do not come. Only floating tensors change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evalcore.gpu.answer import Key

_LEAST_FINITE = 0.5
"""A variant whose answer is mostly NaN or infinite says nothing about a candidate."""


def variants(inputs: list[Any]) -> list[tuple[str, list[Any]]]:
    """(words, inputs) for each sweep. The words complete 'wrong for inputs ...'."""
    if not any(_sweepable(value) for value in inputs):
        return []
    return [(words, _apply(inputs, change)) for words, change in _CHANGES]


def telling(key: Key) -> bool:
    """Whether the reference's answer to a variant can tell a right candidate from a wrong one."""
    for output in key.outputs:
        tensor = output.tensor
        if tensor is None or not tensor.is_floating_point() or tensor.numel() == 0:
            continue
        if float(torch.isfinite(tensor).double().mean()) < _LEAST_FINITE:
            return False
    return True


def _sweepable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0


def _apply(inputs: list[Any], change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    """The first floating input changed, the others as they are: weights stay weights."""
    changed = list(inputs)
    for index, value in enumerate(changed):
        if _sweepable(value):
            made = change(value.detach()).to(value.dtype)
            changed[index] = torch.empty_like(value).copy_(made).requires_grad_(value.requires_grad)
            break
    return changed


def _with_last(tensor: torch.Tensor, special: float) -> torch.Tensor:
    """One special value in the last place: where tails are."""
    made = tensor.clone(memory_format=torch.contiguous_format)
    made.view(-1)[-1] = special
    return made


_CHANGES: tuple[tuple[str, Callable[[torch.Tensor], torch.Tensor]], ...] = (
    ("times 1000", lambda each: each * 1000),
    ("times 0.001", lambda each: each * 0.001),
    ("plus 100", lambda each: each + 100),
    ("that are all equal", lambda each: torch.full_like(each, 0.5)),
    ("with a NaN at the end", lambda each: _with_last(each, float("nan"))),
    ("with an infinity at the end", lambda each: _with_last(each, float("inf"))),
)
