"""RMS normalisation in fp16, bound by a comment."""

import torch
import triton
import triton.language as tl


# odyssey: reference=rms_norm_torch inputs=make_inputs candidate=rms_norm sizes=rows:2048,hidden:2560;rows:21,hidden:1000
def rms_norm_torch(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (wide * scale).to(x.dtype) * weight


rows = 2048
hidden = 2560


def make_inputs():
    x = torch.randn(rows, hidden, device="cuda", dtype=torch.float16)
    return [x, torch.randn(hidden, device="cuda", dtype=torch.float16)]


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + columns, mask=mask)
    tl.store(out_ptr + row * stride + columns, (x * scale).to(tl.float16) * w, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[-1])
    rms_norm_kernel[(x.shape[0],)](x, weight, out, x.stride(0), x.shape[-1], 1e-6, BLOCK=block)
    return out
