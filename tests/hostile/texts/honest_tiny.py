"""Tiny outputs, computed."""

import torch
import triton
import triton.language as tl


@triton.jit
def tiny_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    e = tl.exp(2.0 * x)
    tl.store(out_ptr + offsets, (e - 1.0) / (e + 1.0) * 1e-6, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        tiny_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
