"""Owns the precision flags of torch: what stands and, for a named lane, what is set. Never judges a lane."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

LANES = ("as given", "ieee", "tf32")
"""'as given' touches nothing; the other two say how float32 products are to be computed."""


def precision_flags() -> dict[str, Any]:
    """The flags that change what a torch call computes, for the row."""
    import torch

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": bool(matmul.allow_tf32),
        "cudnn.allow_tf32": bool(cudnn.allow_tf32),
        "fp16_reduced_precision_reduction": _plain(matmul.allow_fp16_reduced_precision_reduction),
        "bf16_reduced_precision_reduction": _plain(matmul.allow_bf16_reduced_precision_reduction),
        "cudnn.benchmark": bool(cudnn.benchmark),
        "deterministic": bool(torch.are_deterministic_algorithms_enabled()),
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else bool(value)


@contextlib.contextmanager
def lane(name: str) -> Iterator[None]:
    """Set float32 products to `name` for a while. Raises ValueError for a name that is no lane."""
    import torch

    if name not in LANES:
        raise ValueError(f"no lane {name!r}; there are {', '.join(LANES)}")
    if name == "as given":
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    was = (matmul.allow_tf32, cudnn.allow_tf32)
    matmul.allow_tf32 = cudnn.allow_tf32 = name == "tf32"
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = was
