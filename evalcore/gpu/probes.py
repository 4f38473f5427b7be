"""Owns the test of the test: answers that are plainly wrong must fail under the chosen tolerance and these inputs.

Runs in the referee before any candidate is trusted. Never sees a candidate's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from evalcore.facts import ErrorStats
from evalcore.gpu.answer import Key
from evalcore.gpu.compare import compare, same_bits
from evalcore.gpu.outputs import Output
from evalcore.problem import Tolerance

_MOST_ELEMENTS = 1 << 22
"""Of each output, for probing."""
Fake = Callable[[torch.Tensor], "torch.Tensor | None"]


def probes(
    key: Key,
    stale: Sequence[Output] | None = None,
    tolerance: Tolerance | None = None,
    *,
    format: str = "",
    case: str = "",
) -> tuple[dict[str, Any], ...]:
    """One entry per fake answer: {"probe", "case", "caught", "caught_by_measured", "outputs"}.

    `stale` are the key's outputs for another seed: a replayed buffer. A fake that equals the true answer (zeros for a
    reference that returns zeros) counts as not caught: the check cannot tell it. Every output is faked by itself, the
    others staying right, and a fake counts as caught only when it is for every output that has one.
    """
    key, stale = _sample(key, stale)
    found = []
    for name, fake in _FAKES:
        entry = _try(key, name, fake, None, tolerance, format)
        if entry is not None:
            found.append({**entry, "case": case})
    if stale is not None and len(stale) == len(key.outputs):
        entry = _try(key, "stale", None, stale, tolerance, format)
        if entry is not None:
            found.append({**entry, "case": case})
    return tuple(found)


def _sample(key: Key, stale: Sequence[Output] | None) -> tuple[Key, list[Output] | None]:
    """The same with no more than the leading part of large outputs: a check that is blind there is blind."""
    outputs = [_cut_output(each) for each in key.outputs]
    exact = [None if each is None else _cut(each) for each in key.exact]
    cut = replace(key, outputs=outputs, exact=exact)
    return cut, None if stale is None else [_cut_output(each) for each in stale]


def _cut_output(output: Output) -> Output:
    return output if output.tensor is None else replace(output, tensor=_cut(output.tensor))


def _cut(tensor: torch.Tensor) -> torch.Tensor:
    for dim in range(tensor.ndim):
        if tensor.numel() <= _MOST_ELEMENTS:
            break
        per_index = tensor.numel() // tensor.shape[dim]
        tensor = tensor.narrow(dim, 0, max(min(_MOST_ELEMENTS // max(per_index, 1), tensor.shape[dim]), 1))
    return tensor


def _try(
    key: Key,
    name: str,
    fake: Fake | None,
    stale: Sequence[Output] | None,
    tolerance: Tolerance | None,
    format: str,
) -> dict[str, Any] | None:
    missed: list[str] = []
    missed_by_ours: list[str] = []
    tried = 0
    for index, output in enumerate(key.outputs):
        if output.tensor is None or output.tensor.numel() == 0:
            continue
        wrong = stale[index].tensor if stale is not None else fake(output.tensor) if fake is not None else None
        if wrong is None or wrong.shape != output.tensor.shape:
            continue
        tried += 1
        stats = compare(_with(key.outputs, index, wrong), key, tolerance, format=format)[index]
        if not _caught(stats):
            missed.append(output.name)
        ours = _caught(stats) if stats.measured_out is None else stats.measured_out or stats.nonfinite_mismatch
        if not ours:
            missed_by_ours.append(output.name)
    if not tried:
        return None
    return {"probe": name, "caught": not missed, "caught_by_measured": not missed_by_ours, "outputs": missed}


def _caught(stats: ErrorStats) -> bool:
    return bool(stats.out_of_tolerance or stats.nonfinite_mismatch or stats.problem)


def _with(outputs: Sequence[Output], index: int, wrong: torch.Tensor) -> list[Output]:
    changed = list(outputs)
    old = outputs[index]
    changed[index] = Output(name=old.name, tensor=wrong, stride=old.stride, device=old.device, number=old.number)
    return changed


def _zeros(want: torch.Tensor) -> torch.Tensor | None:
    return torch.zeros_like(want)


def _mean(want: torch.Tensor) -> torch.Tensor | None:
    """The mean everywhere: what a check that only looks at sums would take. Not for a single number."""
    if not want.is_floating_point() or want.numel() < 2:
        return None
    finite = want[torch.isfinite(want)]
    if finite.numel() == 0:
        return None
    return torch.full_like(want, float(finite.double().mean()))


def _permuted(want: torch.Tensor) -> torch.Tensor | None:
    """Leading slices rotated by one. None where the answer is the same in every slice, by nature or by size."""
    if want.ndim == 0 or want.numel() < 2:
        return None
    dim = 0 if want.shape[0] > 1 else want.ndim - 1
    rolled = want.roll(1, dims=dim)
    if not same_bits(rolled, want):
        return rolled
    return want.flatten().roll(1).reshape(want.shape)


def _truncated(want: torch.Tensor) -> torch.Tensor | None:
    """The second half of the flat output left at zero."""
    if want.numel() < 2:
        return None
    cut = want.contiguous().clone().reshape(-1)
    cut[cut.numel() // 2 :] = 0
    return cut.reshape(want.shape)


_FAKES: tuple[tuple[str, Fake], ...] = (
    ("zeros", _zeros),
    ("mean", _mean),
    ("permuted", _permuted),
    ("truncated", _truncated),
)
