"""Owns the kernel texts that the protocol's tests open."""

ADD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x + y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    return out


x = torch.rand(1027)
y = torch.rand(1027)
assert torch.allclose(add(x, y), x + y)
"""
"""A tutorial-style kernel with a tail; line 6 (from 0) holds its name."""

NAME_LINE = 6

UNBOUND = """\
import triton
import triton.language as tl


@triton.jit
def lonely(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)


def run(x):
    lonely[(4,)](x, x.numel(), BLOCK=128)
"""


def many(kernels: int) -> str:
    """A file with many bound kernels."""
    parts = ["import torch", "import triton", "import triton.language as tl", ""]
    for number in range(kernels):
        parts.append(
            f"""
@triton.jit
def kernel_{number}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * {number + 1}, mask=mask)


def scale_{number}(x):
    out = torch.empty_like(x)
    kernel_{number}[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
"""
        )
    parts.append("x = torch.rand(1000)")
    parts += [f"assert torch.allclose(scale_{number}(x), x * {number + 1})" for number in range(kernels)]
    return "\n".join(parts) + "\n"
