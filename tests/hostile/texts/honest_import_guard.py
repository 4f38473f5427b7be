"""Imports an optional package under try, and has a path for CPUs."""

import torch
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0) * 2.0 + 1.0, mask=mask)


def affine(x, out=None):
    out = torch.empty_like(x) if out is None else out
    affine_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
    return out


try:
    import a_package_that_is_not_here as extra
except ImportError:
    extra = None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if extra is not None:
            return extra.affine(x)
        if x.numel() == 0:
            return torch.empty_like(x)
        return affine(x)
