"""Broken twins: for each example, one small fault of each kind, with the verdict and the place it must give.

A twin is an edit of the example's text, so that it never drifts from what people read in examples/.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True, kw_only=True)
class Twin:
    """One fault, and what must be said about it."""

    example: str
    kind: str
    old: str
    new: str
    status: str
    reason: str | None = None
    at: str = ""
    """The first place of this text in the twin is where the diagnostic must begin; '' for the kernel's name."""
    words: str = ""
    """A piece of the message that must be there."""
    needs_gpu: bool = False
    gpu_statuses: tuple[str, ...] = ()
    """Where a card sees it otherwise than the interpreter (a small overrun is seen by canaries or not at all)."""

    @property
    def id(self) -> str:
        """Readable test id."""
        return f"{self.example}-{self.kind}"

    def text(self) -> str:
        """The example's text with the fault in it. Fails when the example no longer has the place."""
        text = (EXAMPLES / self.example).read_text("utf-8")
        assert text.count(self.old) >= 1, f"{self.example} no longer has {self.old!r}"
        return text.replace(self.old, self.new, 1)


ENDLESS = "    stuck = n_elements * 0\n    while stuck < 1:\n        stuck = stuck * 1\n        tl.atomic_add(out_ptr, 0.0)\n"
"""The atomic keeps the compiler from removing a loop that never ends and does nothing."""

TWINS = [
    # vector_add.py
    Twin(example="vector_add.py", kind="wrong-tail", old="mask = offsets < n_elements", new="mask = offsets < n_elements - 7",
         status="incorrect", words="elements >= 98425 untouched"),
    Twin(example="vector_add.py", kind="wrong-stride", old="pid * BLOCK_SIZE", new="pid * (BLOCK_SIZE // 2)", status="incorrect"),
    Twin(example="vector_add.py", kind="wrong-dtype", old="torch.empty_like(x)", new="torch.empty_like(x, dtype=torch.float16)",
         status="incorrect", words="float16"),
    Twin(example="vector_add.py", kind="compile-error", old="tl.program_id(axis=0)", new="tl.programid(axis=0)",
         status="compile_error", at="tl.programid"),
    Twin(example="vector_add.py", kind="out-of-bounds", old="tl.store(out_ptr + offsets, x + y, mask=mask)",
         new="tl.store(out_ptr + offsets, x + y)", status="error", reason="crash", at="tl.store(out_ptr + offsets, x + y)",
         words="out of bounds", gpu_statuses=("error", "incorrect")),
    Twin(example="vector_add.py", kind="endless-loop", old="    mask = offsets < n_elements\n",
         new="    mask = offsets < n_elements\n" + ENDLESS, status="error", reason="timeout"),
    # softmax.py
    Twin(example="softmax.py", kind="wrong-tail", old="mask = columns < n_cols", new="mask = columns < n_cols - 3", status="incorrect",
         words="columns >= 778 untouched"),
    Twin(example="softmax.py", kind="wrong-stride", old="row * in_row_stride", new="row * (in_row_stride - 1)", status="incorrect"),
    Twin(example="softmax.py", kind="wrong-dtype", old="torch.empty_like(x)", new="torch.empty_like(x, dtype=torch.float64)",
         status="incorrect", words="float64"),
    Twin(example="softmax.py", kind="compile-error", old="tl.arange(0, BLOCK_SIZE)", new="tl.arange(0, n_cols)", status="compile_error",
         at="tl.arange(0, n_cols)"),
    Twin(example="softmax.py", kind="out-of-bounds", old="numerator / denominator, mask=mask)", new="numerator / denominator)",
         status="error", reason="crash", at="tl.store(out_ptr + row", words="out of bounds", gpu_statuses=("error", "incorrect")),
    Twin(example="softmax.py", kind="endless-loop", old="    mask = columns < n_cols\n",
         new="    mask = columns < n_cols\n" + ENDLESS.replace("n_elements", "n_cols"), status="error", reason="timeout"),
    # layer_norm.py
    Twin(example="layer_norm.py", kind="wrong-tail", old="centred = tl.where(mask, x - mean, 0.0)", new="centred = x - mean",
         status="incorrect"),
    Twin(example="layer_norm.py", kind="wrong-stride", old="tl.load(x_ptr + row * n_cols", new="tl.load(x_ptr + row * (n_cols - 1)",
         status="incorrect"),
    Twin(example="layer_norm.py", kind="wrong-dtype", old="torch.empty_like(x)", new="torch.empty_like(x, dtype=torch.float16)",
         status="incorrect", words="float16"),
    Twin(example="layer_norm.py", kind="compile-error", old="tl.sqrt(variance + eps)", new="tl.sqrt(variance + epsilon)",
         status="compile_error", at="epsilon"),
    Twin(example="layer_norm.py", kind="out-of-bounds", old="tl.load(w_ptr + columns, mask=mask)", new="tl.load(w_ptr + columns)",
         status="error", reason="crash", at="tl.load(w_ptr + columns)", words="out of bounds", gpu_statuses=("error", "correct")),
    Twin(example="layer_norm.py", kind="endless-loop", old="    mask = columns < n_cols\n",
         new="    mask = columns < n_cols\n" + ENDLESS.replace("n_elements", "n_cols"), status="error", reason="timeout"),
    # rms_norm.py
    Twin(example="rms_norm.py", kind="wrong-tail", old="mask = columns < n_cols", new="mask = columns < n_cols - 1", status="incorrect",
         words="the last column"),
    Twin(example="rms_norm.py", kind="wrong-stride", old="out_ptr + row * stride", new="out_ptr + row * (stride - 2)", status="incorrect"),
    Twin(example="rms_norm.py", kind="wrong-dtype", old="out = torch.empty_like(x)", new="out = torch.empty_like(x, dtype=torch.float32)",
         status="incorrect", words="float32"),
    Twin(example="rms_norm.py", kind="compile-error", old="tl.sum(x * x, axis=0)", new="tl.sum(x * x, axis=3)", status="compile_error",
         at="tl.sum(x * x, axis=3)"),
    Twin(example="rms_norm.py", kind="out-of-bounds", old="tl.load(w_ptr + columns, mask=mask)", new="tl.load(w_ptr + columns)",
         status="error", reason="crash", at="tl.load(w_ptr + columns)", words="out of bounds", gpu_statuses=("error", "correct")),
    Twin(example="rms_norm.py", kind="endless-loop", old="    mask = columns < n_cols\n",
         new="    mask = columns < n_cols\n" + ENDLESS.replace("n_elements", "n_cols"), status="error", reason="timeout"),
    # matmul.py
    Twin(example="matmul.py", kind="wrong-tail", old="c_mask = (rows[:, None] < M) & (cols[None, :] < N)",
         new="c_mask = (rows[:, None] < M - 5) & (cols[None, :] < N)", status="incorrect", words="rows >= 145 untouched"),
    Twin(example="matmul.py", kind="wrong-stride", old="(k + ks)[:, None] * stride_bk", new="(k + ks)[:, None] * stride_bn", status="incorrect"),
    Twin(example="matmul.py", kind="wrong-dtype", old="dtype=torch.float16)\n    grid", new="dtype=torch.float32)\n    grid", status="incorrect",
         words="float32"),
    Twin(example="matmul.py", kind="compile-error", old="tl.dot(a, b, accumulator)", new="tl.dot(a, a, accumulator)",
         status="compile_error", at="tl.dot(a, a, accumulator)", gpu_statuses=("compile_error",)),
    Twin(example="matmul.py", kind="out-of-bounds", old="tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn, c, mask=c_mask)",
         new="tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn, c)", status="error", reason="crash",
         at="tl.store(c_ptr", words="out of bounds", gpu_statuses=("error", "incorrect")),
    Twin(example="matmul.py", kind="endless-loop", old="    ks = tl.arange(0, BLOCK_K)\n",
         new="    ks = tl.arange(0, BLOCK_K)\n" + ENDLESS.replace("n_elements", "M").replace("out_ptr", "c_ptr"), status="error", reason="timeout"),
    # flash_attention.py
    Twin(example="flash_attention.py", kind="wrong-tail", old="scores = tl.where(cols[None, :] < L, scores, -float(\"inf\"))\n", new="pass\n",
         status="incorrect"),
    Twin(example="flash_attention.py", kind="wrong-stride", old="v_ptr + head + cols[:, None] * stride_l",
         new="v_ptr + head + cols[:, None] * (stride_l - 1)", status="incorrect"),
    Twin(example="flash_attention.py", kind="wrong-dtype", old="out = torch.empty_like(q)", new="out = torch.empty_like(q, dtype=torch.float32)",
         status="incorrect", words="float32"),
    Twin(example="flash_attention.py", kind="compile-error", old="tl.dot(p.to(tl.float16), v)", new="tl.dot(p.to(tl.float61), v)",
         status="compile_error", at="tl.float61"),
    Twin(example="flash_attention.py", kind="out-of-bounds", old="dims[None, :], out, mask=q_mask)", new="dims[None, :] + 99000000, out)",
         status="error", reason="crash", at="tl.store(out_ptr", words="out of bounds", gpu_statuses=("error", "incorrect")),
    Twin(example="flash_attention.py", kind="endless-loop", old="    dims = tl.arange(0, D)\n",
         new="    dims = tl.arange(0, D)\n" + ENDLESS.replace("n_elements", "L"), status="error", reason="timeout"),
    # reduce_rows.cu
    Twin(example="reduce_rows.cu", kind="compile-error", old="partial += row[i];", new="partial += rowz[i];", status="compile_error",
         at="rowz", words="rowz"),
    Twin(example="reduce_rows.cu", kind="wrong-tail", old="i < columns;", new="i < columns - 1;", status="incorrect", needs_gpu=True),
    Twin(example="reduce_rows.cu", kind="wrong-stride", old="blockIdx.x * columns;", new="blockIdx.x * (columns - 1);", status="incorrect",
         needs_gpu=True),
    Twin(example="reduce_rows.cu", kind="wrong-dtype", old="float* __restrict__ out,", new="double* __restrict__ out,", status="incorrect",
         needs_gpu=True, gpu_statuses=("incorrect", "error")),
    Twin(example="reduce_rows.cu", kind="out-of-bounds", old="out[blockIdx.x] = partial;", new="out[blockIdx.x + 8000000000ll] = partial;",
         status="error", reason="crash", needs_gpu=True, gpu_statuses=("error",)),
    Twin(example="reduce_rows.cu", kind="endless-loop", old="i += blockDim.x", new="i += 0", status="error", reason="timeout", needs_gpu=True),
    # inline_gelu.py
    Twin(example="inline_gelu.py", kind="compile-error", old="tanhf(inner)", new="tanhff(inner)", status="compile_error", at="tanhff"),
    Twin(example="inline_gelu.py", kind="wrong-tail", old="if (i < n) {", new="if (i < n - 3) {", status="incorrect", needs_gpu=True),
    Twin(example="inline_gelu.py", kind="wrong-stride", old="float v = x[i];", new="float v = x[i / 2];", status="incorrect", needs_gpu=True),
    Twin(example="inline_gelu.py", kind="wrong-dtype", old="torch::empty_like(x);", new="torch::empty_like(x).to(torch::kFloat16);",
         status="incorrect", needs_gpu=True, gpu_statuses=("incorrect", "error")),
    Twin(example="inline_gelu.py", kind="out-of-bounds", old="out[i] = 0.5f", new="out[i + 8000000000ll] = 0.5f", status="error", reason="crash",
         needs_gpu=True, gpu_statuses=("error",)),
    Twin(example="inline_gelu.py", kind="endless-loop", old="float v = x[i];", new="float v = x[i]; while (n > 0) { v += 1.0f; out[0] = v; }",
         status="error", reason="timeout", needs_gpu=True),
]  # fmt: skip
