"""Forward attention with an online softmax (Flash Attention), fp16, checked against torch in the same file."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, L, stride_h, stride_l,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64) * stride_h
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_mask = rows[:, None] < L
    q = tl.load(q_ptr + head + rows[:, None] * stride_l + dims[None, :], mask=q_mask, other=0.0)
    running_max = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    running_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, L, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        kv_mask = cols[:, None] < L
        k = tl.load(k_ptr + head + cols[:, None] * stride_l + dims[None, :], mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(cols[None, :] < L, scores, -float("inf"))
        new_max = tl.maximum(running_max, tl.max(scores, axis=1))
        p = tl.exp(scores - new_max[:, None])
        alpha = tl.exp(running_max - new_max)
        v = tl.load(v_ptr + head + cols[:, None] * stride_l + dims[None, :], mask=kv_mask, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), v)
        running_sum = running_sum * alpha + tl.sum(p, axis=1)
        running_max = new_max
    out = (acc / running_sum[:, None]).to(tl.float16)
    tl.store(out_ptr + head + rows[:, None] * stride_l + dims[None, :], out, mask=q_mask)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, L, D = q.shape
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    grid = (triton.cdiv(L, 64), B * H)
    attention_kernel[grid](
        q, k, v, out, D**-0.5, L, q.stride(1), q.stride(2), D=D, BLOCK_M=64, BLOCK_N=64, num_warps=4, num_stages=2
    )
    return out


def test_attention(B, H, L, D):
    q = torch.randn((B, H, L, D), device="cuda", dtype=torch.float16)
    k = torch.randn((B, H, L, D), device="cuda", dtype=torch.float16)
    v = torch.randn((B, H, L, D), device="cuda", dtype=torch.float16)
    reference = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(attention(q, k, v), reference, atol=1e-2, rtol=1e-2)


if __name__ == "__main__":
    test_attention(2, 4, 1000, 64)
    test_attention(1, 2, 150, 64)
    print("attention: as torch")
