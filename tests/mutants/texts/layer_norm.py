"""Layer normalisation with weight and bias."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n
    scale = 1.0 / tl.sqrt(variance + eps)
    w = tl.load(w_ptr + columns, mask=mask)
    b = tl.load(b_ptr + columns, mask=mask)
    tl.store(out_ptr + row * n + columns, centred * scale * w + b, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, w, b):
        out = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, w, b, out, x.shape[1], 1e-5, BLOCK=256)
        return out
