"""Inherits the constructor of the reference and computes by itself."""

import torch
import triton
import triton.language as tl
from reference_affine import Model


@triton.jit
def affine_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0) * 2.0 + 1.0, mask=mask)


class ModelNew(Model):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        affine_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
