"""Root-mean-square normalisation in fp16, summed in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, w_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x * x, axis=0) / n
    scale = 1.0 / tl.sqrt(mean + eps)
    w = tl.load(w_ptr + columns, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n + columns, (x * scale * w).to(tl.float16), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        out = torch.empty_like(x)
        rms_kernel[(x.shape[0],)](x, w, out, x.shape[1], 1e-6, BLOCK=256)
        return out
