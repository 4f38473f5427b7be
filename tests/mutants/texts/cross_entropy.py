"""Cross entropy per row with integer targets."""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    target = tl.load(target_ptr + row)
    wanted = tl.load(x_ptr + row * n + target)
    tl.store(out_ptr + row, tl.log(total) + top - wanted)


class ModelNew(torch.nn.Module):
    def forward(self, x, target):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        loss_kernel[(x.shape[0],)](x, target, out, x.shape[1], BLOCK=256)
        return out
