"""Owns the answer key: what the reference returns, the same in float64, and our tolerances. Never a candidate.

Where the reference cannot be lifted to float64 (see `evalcore.gpu.lifting`) there is no exact key for that output, and
the key says so by None.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evalcore.gpu.compare import row_ratio, same_bits
from evalcore.gpu.inputs import flat_values
from evalcore.gpu.lifting import Reference, lift, run
from evalcore.gpu.outputs import Output
from evalcore.problem import Tolerance
from evalcore.tolerance import ELEMENTWISE, derive, is_exact, reduction_length
from evalcore.work import is_elementwise

__all__ = ["Key", "Reference", "answer", "same_bits"]


@dataclass(slots=True, kw_only=True)
class Key:
    """Expected outputs for one (case, seed). Lives in the referee only."""

    outputs: list[Output]
    """As the reference returned them, cloned: nothing that runs later can change them."""
    exact: list[torch.Tensor | None]
    """float64 per output; None where it could not be lifted, and for integers and bools."""
    reference_error: list[float | None]
    """Max abs error of the reference against `exact`, per output."""
    own: list[Tolerance | None]
    """Our tolerance per output, fixed now, before any candidate runs; None for integers and bools."""
    mutated: dict[int, torch.Tensor] = field(default_factory=dict)
    """Flat input index -> its value after the reference ran, for inputs that the reference itself changes."""
    in_place_only: bool = False
    """True where the reference returns nothing: then the changed inputs are its outputs."""
    seconds: float = 0.0


def answer(reference: Reference, inputs: list[Any], *, seed: int, flops: int | None = None) -> Key:
    """Run the reference on `inputs` (left unchanged, a copy is used) and derive the tolerances from what it does.

    Raises whatever the reference raises: that is a fault of the problem, not of a candidate.
    """
    started = time.perf_counter()
    work = _clone(inputs)
    outputs = run(reference.call, work, seed)
    mutated = _changed(flat_values(inputs), flat_values(work))
    in_place_only = not any(output.tensor is not None for output in outputs)
    kept = [_keep(output) for output in outputs]
    if in_place_only and mutated:
        kept = [Output(name=f"input {i}", tensor=value, stride=tuple(value.stride())) for i, value in mutated.items()]
    del work, outputs
    lifted = lift(reference, inputs, kept, seed, sorted(mutated) if in_place_only else None)
    exact: list[torch.Tensor | None] = [None] * len(kept) if lifted is None else lifted[0]
    shapes: list[tuple[int, ...]] | None = None
    if lifted is None or not is_elementwise(lifted[1]):
        shapes = [tuple(value.shape) for value in flat_values(inputs) if isinstance(value, torch.Tensor)]
        shapes += [tuple(value.shape) for value in _state(reference).values()]
    errors: list[float | None] = []
    own: list[Tolerance | None] = []
    for output, want in zip(kept, exact, strict=True):
        error, tolerance = _tolerance(output, want, shapes, flops, len(kept))
        errors.append(error)
        own.append(tolerance)
    return Key(
        outputs=kept,
        exact=exact,
        reference_error=errors,
        own=own,
        mutated=mutated,
        in_place_only=in_place_only,
        seconds=time.perf_counter() - started,
    )


def _tolerance(
    output: Output, want: torch.Tensor | None, shapes: Sequence[tuple[int, ...]] | None, flops: int | None, count: int
) -> tuple[float | None, Tolerance | None]:
    if output.tensor is None:
        return None, None
    dtype = str(output.tensor.dtype).removeprefix("torch.")
    if is_exact(dtype):
        return None, None
    error, ratio = (None, None) if want is None else row_ratio(output.tensor, want)
    reduction = ELEMENTWISE
    if shapes is not None:
        reduction = reduction_length(shapes, tuple(output.tensor.shape), flops=flops, outputs=count)
    return error, derive(dtype, reduction, ratio)


def _keep(output: Output) -> Output:
    if output.tensor is None:
        return output
    return Output(
        name=output.name,
        tensor=output.tensor.clone(),
        stride=output.stride,
        device=output.device,
        number=output.number,
    )


def _clone(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.preserve_format).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: _clone(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clone(each) for each in value]
    return value


def _changed(before: Sequence[Any], after: Sequence[Any]) -> dict[int, torch.Tensor]:
    return {
        index: new.detach().clone()
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if isinstance(old, torch.Tensor) and not same_bits(old, new)
    }


def _state(reference: Reference) -> dict[str, torch.Tensor]:
    return dict(getattr(reference, "state", None) or {})
