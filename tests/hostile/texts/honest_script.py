"""A file as people have it: a benchmark, a test and a main below the kernel."""

import time


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


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return affine(x)


def benchmark(n=1000):
    x = torch.randn(n, device="cuda")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    affine(x)
    end.record()
    torch.cuda.synchronize()
    began = time.perf_counter()
    print({"runtime_us": start.elapsed_time(end) * 1e3, "host": time.perf_counter() - began})


if __name__ == "__main__":
    x = torch.randn(1000, device="cuda")
    assert torch.allclose(affine(x), torch.relu(x) * 2 + 1)
    with open("log.txt", "w") as file:
        file.write("passed")
    benchmark()
