import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_channels(x_ptr, out_ptr, features, inner, eps, BLOCK: tl.constexpr):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1).to(tl.int64) * features * inner
    mask = columns < inner
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for f in range(features):
        x = tl.load(x_ptr + base + f * inner + columns, mask=mask, other=0.0)
        squares += x * x
    scale = 1.0 / tl.sqrt(squares / features + eps)
    for f in range(features):
        x = tl.load(x_ptr + base + f * inner + columns, mask=mask)
        tl.store(out_ptr + base + f * inner + columns, x * scale, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        batch, features = x.shape[:2]
        inner = x.numel() // (batch * features)
        rms_norm_channels[(triton.cdiv(inner, 1024), batch)](x, out, features, inner, self.eps, BLOCK=1024)
        return out
