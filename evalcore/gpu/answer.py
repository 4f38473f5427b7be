"""Owns the answer key: what the reference returns, and the same in float64 where it can be lifted. Never a candidate.

Lifting doubles every float input and parameter and runs the reference again. Where that is refused, returns another
dtype, runs out of memory, or plainly computes something else (random draws, branches on a dtype), there is no exact key
for that output, and the key says so by None.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evalcore.gpu.compare import row_ratio, same_bits
from evalcore.gpu.faults import CandidateFault
from evalcore.gpu.inputs import flat_values
from evalcore.gpu.outputs import Output, flatten
from evalcore.problem import Tolerance
from evalcore.tolerance import ELEMENTWISE, derive, is_exact, reduction_length
from evalcore.work import is_elementwise

_LIFTED_MUST_AGREE = 0.05
"""A lifted output further than this from the reference's own (over the row's largest value) is another function."""
_SLICE_BYTES = 1 << 30
"""Inputs and outputs beyond this are lifted a slice of the leading dimension at a time."""


class Reference(Protocol):
    """What is needed of a loaded reference (evalcore.gpu.loading.Loaded)."""

    def call(self, inputs: list[Any]) -> Any: ...


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


def answer(reference: Reference, inputs: list[Any], *, seed: int, flops: int | None = None, lift: bool = True) -> Key:
    """Run the reference on `inputs` (left unchanged, a copy is used) and derive the tolerances from what it does.

    Raises whatever the reference raises: that is a fault of the problem, not of a candidate.
    """
    started = time.perf_counter()
    work = _clone(inputs)
    outputs = _run(reference.call, work, seed)
    mutated = _changed(flat_values(inputs), flat_values(work))
    in_place_only = not any(output.tensor is not None for output in outputs)
    kept = [_keep(output) for output in outputs]
    if in_place_only and mutated:
        kept = [Output(name=f"input {i}", tensor=value, stride=tuple(value.stride())) for i, value in mutated.items()]
    del work
    names = _Names()
    call = _lifted_call(reference, names) if lift else None
    exact = _lift(call, inputs, kept, seed, sorted(mutated) if in_place_only else None)
    reduces = exact is None or not is_elementwise(names.seen)
    exact = exact or [None] * len(kept)
    shapes = [tuple(value.shape) for value in flat_values(inputs) if isinstance(value, torch.Tensor)]
    shapes += [tuple(value.shape) for value in _state(reference).values()]
    errors: list[float | None] = []
    own: list[Tolerance | None] = []
    for output, want in zip(kept, exact, strict=True):
        error, tolerance = _tolerance(output, want, shapes if reduces else None, flops, len(kept))
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


class _Names(TorchDispatchMode):
    """Collects the names of operators: whether anything is summed decides how errors grow."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


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


def _run(call: Any, inputs: list[Any], seed: int) -> list[Output]:
    torch.manual_seed(seed)
    with torch.no_grad():
        return flatten(call(inputs))


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


def _lift(
    call: Any, inputs: list[Any], kept: Sequence[Output], seed: int, in_place: Sequence[int] | None
) -> list[torch.Tensor | None] | None:
    floats = [output for output in kept if output.tensor is not None and output.tensor.dtype.is_floating_point]
    if not floats or call is None:
        return None
    doubled = _double(inputs)
    try:
        got = _run(call, doubled, seed)
        if in_place is not None:
            values = flat_values(doubled)
            got = [Output(name=f"input {index}", tensor=values[index]) for index in in_place]
    except (CandidateFault, RuntimeError, TypeError, ValueError, IndexError, AttributeError, AssertionError):
        return None
    finally:
        del doubled, call
        if any(output.tensor.is_cuda for output in floats if output.tensor is not None):
            gc.collect()
    if len(got) != len(kept):
        return None
    return [_accept(lifted, output) for lifted, output in zip(got, kept, strict=True)]


def _accept(lifted: Output, output: Output) -> torch.Tensor | None:
    want, own = lifted.tensor, output.tensor
    if want is None or own is None or want.dtype is not torch.float64 or want.shape != own.shape:
        return None
    if own.dtype is torch.float64:
        return want.clone()
    _error, ratio = row_ratio(own, want)
    return want.clone() if ratio is not None and ratio <= _LIFTED_MUST_AGREE else None


def _lifted_call(reference: Reference, names: _Names) -> Any:
    """The reference's call with its module, if it has one, doubled, under `names`. None where it cannot be copied."""
    module = getattr(reference, "function", None)
    if not isinstance(module, torch.nn.Module):

        def plain(inputs: list[Any]) -> Any:
            with names:
                return reference.call(inputs)

        return plain
    try:
        lifted = copy.deepcopy(module).double()
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return None
    context = getattr(reference, "context", contextlib.nullcontext)

    def call(inputs: list[Any]) -> Any:
        with context(), names:
            return lifted(*inputs)

    return call


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(torch.float64, copy=True) if value.dtype.is_floating_point else value.detach().clone()
    if isinstance(value, dict):
        return {key: _double(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_double(each) for each in value]
    return value
