"""Owns the kernels that the timing benchmarks time: Triton, CUDA and torch, 1 to 500 us. Never times them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out, inp, stride, columns, block: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, block)
    mask = offsets < columns
    x = tl.load(inp + row * stride + offsets, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * stride + offsets, x / tl.sum(x, axis=0), mask=mask)


@triton.jit
def add_kernel(out, a, b, n, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    mask = offsets < n
    tl.store(out + offsets, tl.load(a + offsets, mask=mask) + tl.load(b + offsets, mask=mask), mask=mask)


@triton.jit
def rms_norm_kernel(out, inp, stride, columns, block: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, block)
    mask = offsets < columns
    x = tl.load(inp + row * stride + offsets, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + 1e-6)
    tl.store(out + row * stride + offsets, x * scale, mask=mask)


@triton.jit
def matmul_kernel(c, a, b, size, tile: tl.constexpr, depth: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rows = pid_m * tile + tl.arange(0, tile)
    cols = pid_n * tile + tl.arange(0, tile)
    inner = tl.arange(0, depth)
    acc = tl.zeros((tile, tile), dtype=tl.float32)
    for k in range(0, size, depth):
        left = tl.load(a + rows[:, None] * size + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * size + cols[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * size + cols[None, :], acc.to(tl.float16))


@triton.jit
def work_kernel(out, inp, n, rounds, block: tl.constexpr):
    """Arithmetic of a length that an argument sets: its time can be slowed by a known part."""
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    mask = offsets < n
    x = tl.load(inp + offsets, mask=mask)
    for _ in range(rounds):
        x = x * 1.0000001 + 0.0000001
    tl.store(out + offsets, x, mask=mask)


@triton.jit
def empty_kernel():
    pass


def softmax(inputs: list[Any]) -> Any:
    """Row softmax of [M, N] float32."""
    (x,) = inputs
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], block=block, num_warps=8 if block > 1024 else 4)
    return out


def rms_norm(inputs: list[Any]) -> Any:
    """Row RMS norm of [M, N] float32."""
    (x,) = inputs
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    rms_norm_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], block=block, num_warps=8 if block > 1024 else 4)
    return out


def add(inputs: list[Any]) -> Any:
    """Elementwise sum of two [N] float32."""
    a, b = inputs
    out = torch.empty_like(a)
    add_kernel[(triton.cdiv(a.numel(), 1024),)](out, a, b, a.numel(), block=1024)
    return out


def matmul(inputs: list[Any]) -> Any:
    """Product of two [N, N] float16, N a multiple of 128."""
    a, b = inputs
    size = a.shape[0]
    out = torch.empty_like(a)
    matmul_kernel[(size // 128, size // 128)](out, a, b, size, tile=128, depth=32, num_warps=4, num_stages=3)
    return out


def work(rounds: int) -> Callable[[list[Any]], Any]:
    """A kernel over [N] float32 whose length is `rounds` multiply-adds per element."""

    def call(inputs: list[Any]) -> Any:
        (x,) = inputs
        out = torch.empty_like(x)
        work_kernel[(triton.cdiv(x.numel(), 1024),)](out, x, x.numel(), rounds, block=1024)
        return out

    return call


def empty(inputs: list[Any]) -> Any:
    """A kernel that does nothing."""
    empty_kernel[(1,)]()
    return inputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One kernel of the table."""

    name: str
    kernel: str
    """A part of the device function's name, by which ncu's rows are found."""
    call: Callable[[list[Any]], Any]
    make: Callable[[], list[Any]]


def _rand(*shape: int, dtype: Any = None) -> Callable[[], list[Any]]:
    return lambda: [torch.randn(*shape, device="cuda", dtype=dtype or torch.float32)]


def _two(*shape: int, dtype: Any = None) -> Callable[[], list[Any]]:
    return lambda: [torch.randn(*shape, device="cuda", dtype=dtype or torch.float32) for _ in range(2)]


EMPTY = Timed(name="empty", kernel="empty_kernel", call=empty, make=_rand(8))

TABLE: tuple[Timed, ...] = (
    Timed(name="softmax 128x1024", kernel="softmax_kernel", call=softmax, make=_rand(128, 1024)),
    Timed(name="softmax 1024x1024", kernel="softmax_kernel", call=softmax, make=_rand(1024, 1024)),
    Timed(name="rms norm 2048x2048", kernel="rms_norm_kernel", call=rms_norm, make=_rand(2048, 2048)),
    Timed(name="softmax 4096x4096", kernel="softmax_kernel", call=softmax, make=_rand(4096, 4096)),
    Timed(name="rms norm 8192x4096", kernel="rms_norm_kernel", call=rms_norm, make=_rand(8192, 4096)),
    Timed(name="softmax 16384x4096", kernel="softmax_kernel", call=softmax, make=_rand(16384, 4096)),
    Timed(name="add 1 Mi", kernel="add_kernel", call=add, make=_two(1 << 20)),
    Timed(name="add 16 Mi", kernel="add_kernel", call=add, make=_two(16 << 20)),
    Timed(name="add 64 Mi", kernel="add_kernel", call=add, make=_two(64 << 20)),
    Timed(name="matmul 512 fp16", kernel="matmul_kernel", call=matmul, make=_two(512, 512, dtype=torch.float16)),
    Timed(name="matmul 2048 fp16", kernel="matmul_kernel", call=matmul, make=_two(2048, 2048, dtype=torch.float16)),
    Timed(name="matmul 4096 fp16", kernel="matmul_kernel", call=matmul, make=_two(4096, 4096, dtype=torch.float16)),
    Timed(name="work 1 Mi x 64", kernel="work_kernel", call=work(64), make=_rand(1 << 20)),
    Timed(name="work 4 Mi x 256", kernel="work_kernel", call=work(256), make=_rand(4 << 20)),
    Timed(name="torch relu 8 Mi", kernel="elementwise_kernel", call=lambda i: i[0].relu(), make=_rand(8 << 20)),
)
"""Fifteen kernels; the device times named in docs come from benchmarks/timing.py's own JSON, not from here."""
