"""Owns comparing what a candidate returned with the key: tensors in, ErrorStats out. Never decides correctness.

Runs in the referee, on its own view of the bytes. Structural faults come first: a wrong count, type, shape, dtype or
device is said as such and not compared further, so that nothing passes by broadcasting or casting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from evalcore.facts import ErrorStats
from evalcore.gpu.differences import Differences, Rule, measure
from evalcore.gpu.outputs import Output
from evalcore.problem import Tolerance
from evalcore.region import describe
from evalcore.tolerance import deciding

if TYPE_CHECKING:
    from evalcore.gpu.answer import Key

_EXACT = Rule(atol=0.0, rtol=0.0, by_row=False)


def compare(
    got: Sequence[Output | torch.Tensor], key: Key, tolerance: Tolerance | None = None, *, format: str = ""
) -> tuple[ErrorStats, ...]:
    """One ErrorStats per output of the key; a single one where the number of outputs differs.

    `tolerance` is the problem's (a person's or a format's), `format` the binding's name, for the format's own table;
    where neither speaks for an output's dtype, the key's own tolerance decides.
    """
    leaves = [each if isinstance(each, Output) else _wrap(each, index) for index, each in enumerate(got)]
    if key.in_place_only and len(leaves) < len(key.outputs):
        return (_fault("out", f"nothing was returned, and {len(key.outputs)} changed inputs were not handed over"),)
    if len(leaves) != len(key.outputs):
        return (_fault("out", _count_words(len(leaves), len(key.outputs))),)
    rule = _Decision(tolerance=tolerance, format=format)
    return tuple(_one(leaf, key, index, rule) for index, leaf in enumerate(leaves))


@dataclass(frozen=True, slots=True)
class _Decision:
    """Whose tolerance there is besides our own."""

    tolerance: Tolerance | None
    format: str


def _wrap(tensor: torch.Tensor, index: int) -> Output:
    return Output(
        name=f"out[{index}]", tensor=tensor.detach(), stride=tuple(tensor.stride()), device=tensor.device.type
    )


def _count_words(got: int, want: int) -> str:
    return f"{got} output{'s' * (got != 1)} instead of {want}"


def _fault(name: str, problem: str) -> ErrorStats:
    return ErrorStats(
        output=name,
        elements=0,
        out_of_tolerance=0,
        max_abs_error=None,
        max_rel_error=None,
        worst_index=None,
        got=None,
        want=None,
        region=None,
        problem=problem,
    )


def structural_fault(got: Output, want: Output) -> str | None:
    """What is wrong with an output before any value is looked at, in words; None when nothing is."""
    if got.problem:
        return got.problem
    if want.tensor is None:
        return "a tensor where the reference returns None" if got.tensor is not None and not want.problem else None
    if got.tensor is None:
        return "None where the reference returns a tensor"
    if got.number and not want.number:
        return "a Python number instead of a tensor"
    if want.number:
        return None if got.tensor.numel() == 1 else f"shape {list(got.tensor.shape)} instead of a number"
    if got.tensor.shape != want.tensor.shape:
        return _shape_words(tuple(got.tensor.shape), tuple(want.tensor.shape))
    if got.tensor.dtype != want.tensor.dtype:
        return f"dtype {_name(got.tensor.dtype)} instead of {_name(want.tensor.dtype)}"
    if got.device and want.device and got.device != want.device:
        return f"on {got.device} instead of {want.device}"
    return None


def _shape_words(got: tuple[int, ...], want: tuple[int, ...]) -> str:
    words = f"shape {list(got)} instead of {list(want)}"
    try:
        if torch.broadcast_shapes(got, want) == torch.Size(want):
            words += " (it would merely broadcast)"
    except RuntimeError:
        pass
    return words


def _one(got: Output, key: Key, index: int, decision: _Decision) -> ErrorStats:
    want, exact, own = key.outputs[index], key.exact[index], key.own[index]
    name = want.name
    fault = structural_fault(got, want)
    if fault:
        return _fault(name, fault)
    if want.tensor is None or got.tensor is None:
        return _empty(name, "")
    value = _beside(got.tensor, want.tensor)
    dtype = _name(want.tensor.dtype)
    if want.number:
        value = value.reshape(()).to(want.tensor.dtype)
    if own is None:
        return _stats(name, dtype, measure(value, want.tensor, _EXACT), origin="exact")
    decides = deciding(decision.tolerance, decision.format, dtype, own)
    by_row = decides.origin == "measured"
    rule = Rule(atol=decides.atol, rtol=decides.rtol, by_row=by_row)
    wanted = exact if exact is not None and by_row else want.tensor
    found = measure(value, wanted, rule, alias=want.tensor if wanted is exact else exact)
    if found is None:
        return _empty(name, dtype)
    second = found
    if not by_row:
        mine = Rule(atol=0.0, rtol=own.rtol, by_row=True)
        second = measure(value, want.tensor if exact is None else exact, mine, alias=want.tensor) or found
    return _stats(
        name,
        dtype,
        found,
        origin=decides.origin,
        atol=decides.atol,
        rtol=decides.rtol,
        reference_error=key.reference_error[index],
        exact_error=None if exact is None else second.worst_abs,
        measured_rtol=own.rtol,
        measured_out=second.out,
        note=_stride_note(got, want),
    )


def _beside(value: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    return value if value.device == want.device else value.to(want.device)


def _stride_note(got: Output, want: Output) -> str | None:
    if want.tensor is None or got.stride is None or want.stride is None or want.tensor.numel() < 2:
        return None
    pairs = zip(want.tensor.shape, got.stride, want.stride, strict=True)
    differ = [size for size, mine, theirs in pairs if size > 1 and mine != theirs]
    return f"strides {list(got.stride)} instead of {list(want.stride)}" if differ else None


def _stats(name: str, dtype: str, found: Differences | None, *, origin: str, **more: Any) -> ErrorStats:
    if found is None:
        return _empty(name, dtype)
    region = describe(found.spreads, wrong=found.located, elements=found.elements, untouched=found.untouched)
    return ErrorStats(
        output=name,
        elements=found.elements,
        out_of_tolerance=found.out,
        max_abs_error=found.worst_abs,
        max_rel_error=found.worst_ratio,
        worst_index=found.worst_index,
        got=found.got,
        want=found.want,
        region=region,
        nonfinite_mismatch=found.nonfinite,
        tolerance_origin=origin,
        dtype=dtype,
        magnitude=found.magnitude,
        **more,
    )


def _empty(name: str, dtype: str) -> ErrorStats:
    return ErrorStats(
        output=name,
        elements=0,
        out_of_tolerance=0,
        max_abs_error=0.0,
        max_rel_error=0.0,
        worst_index=None,
        got=None,
        want=None,
        region=None,
        dtype=dtype,
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def row_ratio(got: torch.Tensor, want: torch.Tensor) -> tuple[float | None, float | None]:
    """(max abs error, worst error over its row's largest |want|) of finite elements; (None, None) when empty."""
    found = measure(got, want, Rule(atol=0.0, rtol=float("inf"), by_row=True))
    return (None, None) if found is None else (found.worst_abs, found.worst_ratio)


def wrongly_changed(before: Sequence[Any], after: Sequence[Any], names: Sequence[str], key: Key) -> tuple[str, ...]:
    """Names of inputs that the candidate changed and the reference did not, or changed to something else.

    `before` and `after` are flat values (tensors or plain). An input that the reference changes may be left alone, or
    must end up near the reference's value.
    """
    hurt = []
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if not isinstance(old, torch.Tensor) or same_bits(old, new):
            continue
        allowed = key.mutated.get(index)
        if allowed is None or not _near(new, allowed):
            hurt.append(names[index])
    return tuple(hurt)


def _near(new: torch.Tensor, wanted: torch.Tensor) -> bool:
    if not new.dtype.is_floating_point:
        return same_bits(new, wanted)
    slack = 2.0**-6 if new.dtype.itemsize < 4 else 1e-3
    found = measure(_beside(new, wanted), wanted, Rule(atol=0.0, rtol=slack, by_row=True))
    return found is None or found.out == 0


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal everywhere, NaN equal to NaN. False for another shape or dtype."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    if a.dtype.is_floating_point and a.dtype.itemsize == 1:
        a, b = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
    if torch.equal(a, b):
        return True
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        return False
    return bool(((a == b) | (torch.isnan(a) & torch.isnan(b))).all())
