"""Owns running a reference in float64: parameters and inputs doubled, whole or a slice at a time. Never a verdict.

A lifted answer counts only where it plainly is the same function: float64 throughout, the same shapes, and as near to
the reference's own answer as its dtype allows. Everything else is None, and the reason does not matter.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evalcore.gpu.compare import row_ratio
from evalcore.gpu.faults import CandidateFault
from evalcore.gpu.inputs import flat_values
from evalcore.gpu.outputs import Output, flatten
from evalcore.tolerance import floor_ratio

_MUST_AGREE = 0.05
"""A lifted output further than this from the reference's own (over the row's largest value) is another function."""
_SLICES_MUST_AGREE = 16.0
"""...and a sliced one further than so many floors: statistics over a batch differ a little from slice to slice."""
_WHOLE_BYTES = 1 << 30
"""Doubled inputs and outputs up to this are lifted in one piece, larger ones in slices of about this."""
_MOST_SHARE = 0.25
"""Of the card's free memory, for what cannot be sliced."""
_REFUSED = (CandidateFault, RuntimeError, TypeError, ValueError, IndexError, AttributeError, AssertionError)


class Reference(Protocol):
    """What is needed of a loaded reference (evalcore.gpu.loading.Loaded)."""

    def call(self, inputs: list[Any]) -> Any: ...


class Names(TorchDispatchMode):
    """Collects the names of operators: whether anything is summed decides how errors grow."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def run(call: Callable[[list[Any]], Any], inputs: list[Any], seed: int) -> list[Output]:
    """One call after a seed, without gradients, its outputs flattened."""
    torch.manual_seed(seed)
    with torch.no_grad():
        return flatten(call(inputs))


def lift(
    reference: Reference, inputs: list[Any], kept: Sequence[Output], seed: int, in_place: Sequence[int] | None
) -> tuple[list[torch.Tensor | None], set[str]] | None:
    """float64 answers beside `kept`, the reference's own, with the operators that ran; None where there are none.

    `in_place` names flat inputs that are the outputs of a reference that returns nothing.
    """
    floats = [each.tensor for each in kept if each.tensor is not None and each.tensor.is_floating_point()]
    if not floats:
        return None
    names = Names()
    call = _lifted_call(reference, names)
    if call is None:
        return None
    size = _doubled_bytes(inputs) + sum(each.numel() * 8 for each in floats)
    try:
        if size <= _WHOLE_BYTES:
            exact = _whole(call, inputs, kept, seed, in_place)
        else:
            exact = _sliced(call, inputs, kept, seed, math.ceil(size / _WHOLE_BYTES)) if in_place is None else None
            if exact is None and size <= _MOST_SHARE * _free_bytes(floats[0]):
                exact = _whole(call, inputs, kept, seed, in_place)
    except _REFUSED:
        return None
    finally:
        del call
        if floats[0].is_cuda:
            gc.collect(1)  # what this call made is young; a full collection costs 45-150 ms with torch loaded
    return None if exact is None else (exact, names.seen)


def _whole(
    call: Any, inputs: list[Any], kept: Sequence[Output], seed: int, in_place: Sequence[int] | None
) -> list[torch.Tensor | None] | None:
    doubled = _double(inputs)
    got = run(call, doubled, seed)
    if in_place is not None:
        values = flat_values(doubled)
        got = [Output(name=f"input {index}", tensor=values[index]) for index in in_place]
    if len(got) != len(kept):
        return None
    return [_accept(lifted.tensor, output.tensor) for lifted, output in zip(got, kept, strict=True)]


def _sliced(
    call: Any, inputs: list[Any], kept: Sequence[Output], seed: int, slices: int
) -> list[torch.Tensor | None] | None:
    """The same along the leading dimension that inputs and outputs share; None where they share none."""
    tensors = [each.tensor for each in kept if each.tensor is not None]
    if len(tensors) != len(kept) or any(each.ndim == 0 for each in tensors):
        return None
    length = tensors[0].shape[0]
    shares = [isinstance(each, torch.Tensor) and each.ndim > 0 and each.shape[0] == length for each in inputs]
    if length < 2 or any(each.shape[0] != length for each in tensors) or not any(shares):
        return None
    exact = [torch.empty(each.shape, dtype=torch.float64, device=each.device) for each in tensors]
    for part in _parts(length, slices):
        some = [each[part] if shared else each for each, shared in zip(inputs, shares, strict=True)]
        got = run(call, _double(some), seed)
        if len(got) != len(exact):
            return None
        for into, lifted in zip(exact, got, strict=True):
            if lifted.tensor is None or lifted.tensor.dtype is not torch.float64:
                return None
            into[part].copy_(lifted.tensor)
    return [_accept(whole, own, sliced=True) for whole, own in zip(exact, tensors, strict=True)]


def _parts(length: int, slices: int) -> Iterator[slice]:
    step = max(-(-length // slices), 1)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _accept(want: torch.Tensor | None, own: torch.Tensor | None, *, sliced: bool = False) -> torch.Tensor | None:
    if want is None or own is None or want.dtype is not torch.float64 or want.shape != own.shape:
        return None
    if own.dtype is torch.float64:
        return want.clone()
    _error, ratio = row_ratio(own, want)
    dtype = str(own.dtype).removeprefix("torch.")
    limit = _SLICES_MUST_AGREE * floor_ratio(dtype, own.shape[-1]) if sliced else _MUST_AGREE
    if ratio is None or ratio > limit:
        return None
    return want if sliced else want.clone()


def _lifted_call(reference: Reference, names: Names) -> Any:
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


def _doubled_bytes(inputs: list[Any]) -> int:
    found = [each for each in flat_values(inputs) if isinstance(each, torch.Tensor)]
    return sum(each.numel() * 8 for each in found)


def _free_bytes(like: torch.Tensor) -> float:
    return float(torch.cuda.mem_get_info(like.device)[0]) if like.is_cuda else math.inf
