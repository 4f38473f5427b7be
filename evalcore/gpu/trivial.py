"""Owns one trivial Triton kernel, launched to load the driver before it is needed. Never used for anything else."""

import triton
import triton.language as tl


@triton.jit
def increment(pointer, n, SALT: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """pointer: [n] fp32, each element plus SALT."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(pointer + offsets, tl.load(pointer + offsets, mask=mask) + SALT, mask=mask)
