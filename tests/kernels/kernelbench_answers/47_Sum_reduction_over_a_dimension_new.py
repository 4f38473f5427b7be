import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_middle(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1).to(tl.int64)
    mask = columns < cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + (batch * rows + row) * cols + columns, mask=mask, other=0.0)
    tl.store(out_ptr + batch * cols + columns, total, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert self.dim == 1 and x.ndim == 3
        x = x.contiguous()
        batch, rows, cols = x.shape
        out = torch.empty((batch, 1, cols), device=x.device, dtype=x.dtype)
        sum_middle[(triton.cdiv(cols, 256), batch)](x, out, rows, cols, BLOCK=256, num_warps=4)
        return out
