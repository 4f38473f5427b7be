"""Owns how far an answer may be from the key: ours by derivation, the formats' as data. Never sees a candidate.

Ours is fixed before any candidate runs, from three things: the output's dtype, the length of the reductions behind one
element, and how far the reference itself is from the float64 key. It is relative to the largest wanted value of the
same row, so that a tensor of tiny numbers gets a tiny tolerance and zeros never pass for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalcore.problem import Tolerance

EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}
"""Distance from 1 to the next number."""

_KERNELBENCH = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
_GPU_MODE = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}
_FORMATS = {"kernelbench": _KERNELBENCH, "robust-kbench": _KERNELBENCH, "gpumode": _GPU_MODE}
_FACTOR = 4.0
"""A candidate may be this many times as far from the key as the reference is."""
_CAP = 16.0
"""...but never further than this many floors, or a bad reference would excuse anything..."""
_OWN = 2.0
"""...though never nearer than this many times the reference's own error: as exact as torch must pass."""


def is_exact(dtype: str) -> bool:
    """True for integers and bools, which have no tolerance at all."""
    return dtype not in EPS


def format_tolerance(format: str, dtype: str) -> Tolerance | None:
    """The task format's own rule for outputs of `dtype`, or None where it brings none."""
    table = _FORMATS.get(format)
    value = table.get(dtype) if table else None
    return None if value is None else Tolerance(atol=value, rtol=value, origin="format")


def floor_ratio(dtype: str, reduction: int) -> float:
    """The least tolerance, relative to the row's largest value: two roundings of the output, and sums in float32.

    A float64 problem sums in float64; its floor is that of its own dtype throughout.
    """
    eps = EPS[dtype]
    return 2 * eps + 8 * min(eps, EPS["float32"]) * math.sqrt(max(reduction, 1))


def derive(dtype: str, reduction: int, reference_ratio: float | None) -> Tolerance:
    """Our tolerance for an output of `dtype`.

    `reference_ratio` is the reference's own error against the float64 key over the row's largest value, the worst row;
    None where the reference could not be lifted: then neither side's error is known and the cap itself is used.
    """
    floor = floor_ratio(dtype, reduction)
    if reference_ratio is None or not math.isfinite(reference_ratio):
        return Tolerance(atol=0.0, rtol=_CAP * floor, origin="measured")
    most = max(_CAP * floor, _OWN * reference_ratio)
    return Tolerance(atol=0.0, rtol=min(max(_FACTOR * reference_ratio, floor), most), origin="measured")


def reduction_length(
    inputs: Sequence[tuple[int, ...]], output: tuple[int, ...], *, flops: int | None = None, outputs: int = 1
) -> int:
    """How many terms are summed for one element, from shapes and, where counted, FLOPs (2 a term).

    An upper guess: the longest dimension of an input, elements in over elements out, FLOPs over two per output. It
    enters only under a square root.
    """
    produced = max(math.prod(output), 1)
    longest = max((size for shape in inputs for size in shape[-2:]), default=1)
    gathered = max((math.prod(shape) // produced for shape in inputs), default=1)
    multiplied = flops // (2 * produced * max(outputs, 1)) if flops else 1
    return max(longest, gathered, multiplied, 1)


ELEMENTWISE = 16
"""Stands for the reduction length where nothing is summed: roundings in a row, as of a fast exp and a division."""


def deciding(problem_tolerance: Tolerance | None, format: str, dtype: str, own: Tolerance) -> Tolerance:
    """The one that decides for an output of `dtype`: a person's, else the format's, else ours."""
    if problem_tolerance is not None and problem_tolerance.origin != "format":
        return problem_tolerance
    return format_tolerance(format, dtype) or problem_tolerance or own
