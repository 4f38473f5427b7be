"""Owns how much arithmetic an operator needs: FLOPs per element by operator name, and the Work of a case. Pure.

Matrix products and convolutions are counted by torch's own FlopCounterMode; this table is for everything that it counts
as nothing: element-wise work, softmax, norms, reductions. A multiply-add is two; a transcendental is one, as in the
literature on rooflines, so that a bound stays a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalcore.problem import Work

_PER_INPUT = {
    "sum": 1, "mean": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "argmax": 1, "argmin": 1, "prod": 1, "any": 1,
    "all": 1, "cumsum": 1, "cumprod": 1, "logsumexp": 3, "var": 3, "std": 3, "var_mean": 3, "norm": 2,
    "linalg_vector_norm": 2,
    "_softmax": 4, "_log_softmax": 4, "native_layer_norm": 5, "native_group_norm": 5, "native_batch_norm": 5,
    "_native_batch_norm_legit": 5, "_fused_rms_norm": 4, "nll_loss_forward": 1, "mse_loss": 3, "smooth_l1_loss": 4,
    "binary_cross_entropy": 4, "kl_div": 3, "max_pool2d_with_indices": 1, "avg_pool2d": 1, "avg_pool3d": 1,
    "_adaptive_avg_pool2d": 1,
}  # fmt: skip
"""FLOPs per input element."""
_PER_OUTPUT = {
    "add": 1, "sub": 1, "mul": 1, "div": 1, "neg": 1, "abs": 1, "exp": 1, "exp2": 1, "log": 1, "log2": 1, "log1p": 1,
    "sqrt": 1, "rsqrt": 1, "reciprocal": 1, "pow": 1, "sin": 1, "cos": 1, "tanh": 1, "sigmoid": 3, "relu": 1, "gelu": 8,
    "silu": 4, "mish": 6, "elu": 3, "selu": 4, "softplus": 3, "leaky_relu": 2, "hardtanh": 2, "hardsigmoid": 3,
    "hardswish": 4, "clamp": 2, "maximum": 1, "minimum": 1, "erf": 1, "where": 1, "addcmul": 3, "addcdiv": 3, "lerp": 3,
    "rsub": 1, "square": 1, "softshrink": 2, "hardshrink": 1, "logit": 3, "expm1": 1, "atan": 1, "floor": 1, "round": 1,
}  # fmt: skip
"""FLOPs per output element."""


_MOVES = frozenset({
    "view", "_unsafe_view", "reshape", "clone", "copy", "contiguous", "expand", "permute", "t", "transpose", "slice",
    "select", "unsqueeze", "squeeze", "detach", "alias", "as_strided", "cat", "stack", "split", "chunk", "flip",
    "_to_copy", "to", "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "fill",
    "zero", "scalar_tensor", "lift_fresh", "unbind", "narrow", "roll", "pad", "constant_pad_nd", "masked_fill", "eq",
    "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "bitwise_not", "sign", "isnan",
    "isfinite", "is_nonzero", "_local_scalar_dense", "rand_like", "native_dropout", "empty_strided",
})  # fmt: skip
"""Operators that compute each element from a fixed number of others, besides those of the table."""


def is_elementwise(names: Iterable[str]) -> bool:
    """True where no operator among `names` sums over anything: then errors do not grow with the size."""
    plain = {name if name.startswith("_") else name.rstrip("_") for name in names}
    return all(name in _PER_OUTPUT or name in _MOVES for name in plain)


@dataclass(frozen=True, slots=True)
class OpCount:
    """One operator that ran: its name without namespace and overload, its largest input and its output, in elements."""

    name: str
    input_elements: int
    output_elements: int


def elementwise_flops(ops: Iterable[OpCount]) -> int:
    """FLOPs of all operators in the table; those that are not in it (views, copies, products) count nothing here."""
    total = 0
    for op in ops:
        name = op.name if op.name.startswith("_") else op.name.rstrip("_")
        total += _PER_INPUT.get(name, 0) * op.input_elements + _PER_OUTPUT.get(name, 0) * op.output_elements
    return total


def counted(*, matrix_flops: int, ops: Iterable[OpCount], bytes_read: int, bytes_written: int, dtype: str) -> Work:
    """The Work of one case, from what a counter saw."""
    return Work(
        flops=matrix_flops + elementwise_flops(ops),
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        dtype=dtype,
        origin="counted",
    )


def estimated(*, bytes_read: int, bytes_written: int, dtype: str) -> Work:
    """Where the reference cannot be counted: its inputs read once, its outputs written once, no word on FLOPs."""
    return Work(flops=None, bytes_read=bytes_read, bytes_written=bytes_written, dtype=dtype, origin="estimated")
