"""Every mutant: one edit of a right kernel, its family, and for equivalent ones the proof. Written before any ran."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TEXTS = Path(__file__).resolve().parent / "texts"
TAIL, INDEX, VALUE, PRECISION, STATE, REDUCE = "tail", "index", "value", "precision", "state", "reduction"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault in one kernel."""

    kernel: str
    family: str
    old: str
    new: str
    equivalent: str = ""
    """The proof that no input tells it apart; '' for a real fault."""

    @property
    def id(self) -> str:
        """Readable and stable."""
        return f"{self.kernel}-{self.family}-{abs(hash_of(self.old + self.new)) % 9973:04d}"

    @property
    def cuda(self) -> bool:
        """True for CUDA text, which only a card can run."""
        return self.kernel.startswith("cuda_")

    @property
    def path(self) -> Path:
        """The right kernel's file."""
        return TEXTS / f"{self.kernel}.{'cu' if self.cuda else 'py'}"

    def text(self) -> str:
        """The mutated text. Fails when the kernel no longer has the place."""
        text = self.path.read_text("utf-8")
        assert self.old in text, f"{self.kernel} no longer has {self.old!r}"
        return text.replace(self.old, self.new, 1)


def hash_of(text: str) -> int:
    """A hash that does not change from run to run."""
    value = 7
    for character in text:
        value = (value * 31 + ord(character)) % (1 << 61)
    return value


def _of(kernel: str, *rows: tuple[str, ...]) -> list[Mutant]:
    return [
        Mutant(kernel=kernel, family=row[0], old=row[1], new=row[2], equivalent=row[3] if len(row) > 3 else "")
        for row in rows
    ]


CACHE = "        if getattr(ModelNew, 'kept', None) is not None:\n            return ModelNew.kept\n"

MUTANTS: list[Mutant] = [
    *_of(
        "add",
        (TAIL, "mask = offsets < n\n", "mask = offsets < n - 1\n"),
        (TAIL, "mask = offsets < n\n", "mask = offsets <= n - 1\n", "for integers a < n and a <= n - 1 are the same"),
        (TAIL, "triton.cdiv(x.numel(), 256)", "x.numel() // 256"),
        (INDEX, "pid * BLOCK +", "pid * (BLOCK + 1) +"),
        (INDEX, "y_ptr + offsets", "y_ptr + offsets // 2 * 2"),
        (VALUE, "x + alpha * y", "x - alpha * y"),
        (VALUE, "x.numel(), 0.5, BLOCK", "x.numel(), 0.501, BLOCK"),
        (PRECISION, "x + alpha * y", "(x + alpha * y).to(tl.float16).to(tl.float32)"),
        (STATE, "x + alpha * y, mask", "x + alpha * y + 0.0 * tl.load(out_ptr + offsets, mask=mask), mask"),
        (STATE, "out = torch.empty_like(x)\n",
         "out = ModelNew.kept = getattr(ModelNew, 'kept', x) + 0.0\n        return out\n"),
    ),
    *_of(
        "softmax",
        (TAIL, "mask = columns < n\n", "mask = columns < n - 1\n"),
        (TAIL, "e / total, mask=mask", "e / total, mask=columns < n - 2"),
        (VALUE, 'other=-float("inf")', "other=0.0"),
        (INDEX, "out_ptr + row * stride", "out_ptr + row * (stride - 1)"),
        (INDEX, "x_ptr + row * stride", "x_ptr + (row // 2) * stride"),
        (REDUCE, "total = tl.sum(e, axis=0)", "total = tl.sum(e, axis=0) - tl.max(e, axis=0)"),
        (REDUCE, "total = tl.sum(e, axis=0)", "total = tl.sum(tl.where(columns > 0, e, 0.0), axis=0)"),
        (VALUE, "e = tl.exp(x)", "e = tl.exp2(x * 1.442)"),
        (PRECISION, "e = tl.exp(x)", "e = tl.exp(x.to(tl.float16).to(tl.float32))"),
        (VALUE, "e / total, mask", "e / (total + 1e-3), mask"),
        (VALUE, "x = x - tl.max(x, axis=0)", "x = x - tl.max(x, axis=0) + 0.0",
         "adding 0.0 changes at most the sign of a zero, whose exponential is one either way"),
        (STATE, "        out = torch.empty_like(x)\n", CACHE + "        out = ModelNew.kept = torch.empty_like(x)\n"),
    ),
    *_of(
        "layer_norm",
        (TAIL, "centred = tl.where(mask, x - mean, 0.0)", "centred = x - mean"),
        (TAIL, "mask = columns < n\n", "mask = columns < n - 1\n"),
        (REDUCE, "variance = tl.sum(centred * centred, axis=0) / n",
         "variance = tl.sum(centred * centred, axis=0) / (n - 1)"),
        (VALUE, "x.shape[1], 1e-5, BLOCK", "x.shape[1], 1e-4, BLOCK"),
        (VALUE, "x.shape[1], 1e-5, BLOCK", "x.shape[1], 0.0, BLOCK"),
        (VALUE, "1.0 / tl.sqrt(variance + eps)", "1.0 / (tl.sqrt(variance) + eps)"),
        (INDEX, "w_ptr + columns", "w_ptr + columns * 0"),
        (VALUE, "centred * scale * w + b", "centred * scale * w - b"),
        (VALUE, "centred * scale * w + b", "(centred * scale + b) * w"),
        (PRECISION, "mean = tl.sum(x, axis=0) / n", "mean = (tl.sum(x, axis=0) / n).to(tl.float16).to(tl.float32)"),
        (STATE, "out = torch.empty_like(x)", "out = x"),
    ),
    *_of(
        "rms_norm",
        (TAIL, "mask = columns < n\n", "mask = columns < n - 1\n"),
        (REDUCE, "mean = tl.sum(x * x, axis=0) / n", "mean = tl.sum(x * x, axis=0) / BLOCK"),
        (REDUCE, "mean = tl.sum(x * x, axis=0) / n", "mean = tl.sum(tl.abs(x), axis=0) / n"),
        (VALUE, "x * scale * w", "x * scale * (w + 0.02)"),
        (VALUE, "x.shape[1], 1e-6, BLOCK", "x.shape[1], 1e-2, BLOCK"),
        (INDEX, "w_ptr + columns", "w_ptr + columns - (columns % 2)"),
        (PRECISION, "w = tl.load(w_ptr + columns, mask=mask).to(tl.float32)",
         "w = tl.load(w_ptr + columns, mask=mask).to(tl.float8e5).to(tl.float32)"),
        (STATE, "        out = torch.empty_like(x)\n", CACHE + "        out = ModelNew.kept = torch.empty_like(x)\n"),
    ),
    *_of(
        "product",
        (TAIL, "(ks[None, :] < K)\n", "(ks[None, :] < K - 1)\n"),
        (TAIL, "c_mask = (rows[:, None] < M)", "c_mask = (rows[:, None] < M - 1)"),
        (TAIL, "triton.cdiv(b.shape[1], 32)", "b.shape[1] // 32"),
        (REDUCE, "range(0, K, BK)", "range(BK, K, BK)"),
        (REDUCE, "total += tl.dot", "total = tl.dot"),
        (INDEX, "ks[:, None] * N", "ks[:, None] * (N - 1)"),
        (PRECISION, 'tl.dot(a, b, input_precision="ieee")', "tl.dot(a.to(tl.float16), b.to(tl.float16))"),
        (PRECISION, "total += tl.dot", "total = (total.to(tl.float16)).to(tl.float32) + tl.dot"),
        (VALUE, "total, mask=c_mask", "total * 1.001, mask=c_mask"),
        (STATE, "        c = torch.empty(", CACHE + "        c = ModelNew.kept = torch.empty("),
    ),
    *_of(
        "row_mean",
        (TAIL, "mask=columns < n", "mask=columns < n - 1"),
        (TAIL, "range(0, n, BLOCK)", "range(0, n - BLOCK, BLOCK)"),
        (REDUCE, "tl.sum(total, axis=0) / n", "tl.sum(total, axis=0) / (n + 1)"),
        (REDUCE, "total += tl.load", "total = tl.load"),
        (INDEX, "x_ptr + row * n", "x_ptr + row * (n - 1)"),
        (VALUE, "other=0.0", "other=0.01"),
        (PRECISION, "tl.sum(total, axis=0) / n", "tl.sum(total.to(tl.float16).to(tl.float32), axis=0) / n"),
        (VALUE, "columns = start + tl.arange(0, BLOCK)", "columns = tl.arange(0, BLOCK) + start",
         "integer addition commutes and nothing overflows below 2^31"),
    ),
    *_of(
        "gelu",
        (TAIL, "mask = offsets < n\n", "mask = offsets < n - 3\n"),
        (VALUE, "0.044715", "0.0444"),
        (VALUE, "0.7978845608028654", "0.798"),
        (VALUE, "0.5 * x * (1.0 + tanh)", "0.5 * x * (1.0 + inner)"),
        (VALUE, "tl.where(inner < 0, -tanh, tanh)", "tanh"),
        (VALUE, "tl.where(inner < 0, -tanh, tanh)", "tl.where(inner < -3, -1.0, tl.where(inner < 0, -tanh, tanh))"),
        (PRECISION, "e = tl.exp(", "e = tl.exp((1.0 + 0.0005) * "),
        (INDEX, "out_ptr + offsets", "out_ptr + (n - 1 - offsets)"),
        (STATE, "        out = torch.empty_like(x)\n", "        x.mul_(1.0001)\n        out = torch.empty_like(x)\n"),
    ),
    *_of(
        "cross_entropy",
        (TAIL, "mask=columns < n,", "mask=columns < n - 1,"),
        (VALUE, 'other=-float("inf")', "other=0.0"),
        (VALUE, "tl.log(total) + top - wanted", "tl.log(total) - wanted"),
        (VALUE, "tl.log(total) + top - wanted", "tl.log(total + 1e-2) + top - wanted"),
        (INDEX, "x_ptr + row * n + target", "x_ptr + row * n + target // 2 * 2"),
        (INDEX, "target_ptr + row", "target_ptr + row // 2 * 2"),
        (REDUCE, "tl.exp(x - top)", "tl.exp2(x - top)"),
        (PRECISION, "tl.log(total) + top - wanted", "(tl.log(total) + top - wanted).to(tl.float16).to(tl.float32)"),
    ),
    *_of(
        "attention",
        (TAIL, "(cols[None, :] < L) & (cols[None, :] <= rows[:, None])", "(cols[None, :] < L)"),
        (TAIL, "cols[None, :] <= rows[:, None]", "cols[None, :] < rows[:, None]"),
        (TAIL, "(cols[None, :] < L) & (cols[None, :] <= rows[:, None])", "cols[None, :] <= rows[:, None]",
         "a stored row is < L and a kept column is <= that row, hence < L as well"),
        (VALUE, "D**-0.5", "D**-0.499"),
        (REDUCE, "total = total * correction + tl.sum(p, axis=1)", "total = total + tl.sum(p, axis=1)"),
        (REDUCE, "out = out * correction[:, None] +", "out = out +"),
        (REDUCE, "range(0, L, BK)", "range(0, L - BK, BK)"),
        (INDEX, "tl.program_id(1) * L * D", "tl.program_id(1) * 0"),
        (PRECISION, "tl.dot(p, v, input_precision", "tl.dot(p.to(tl.float16).to(tl.float32), v, input_precision"),
        (VALUE, "out / total[:, None]", "out / (total[:, None] + 1e-3)"),
    ),
    *_of(
        "cuda_axpy",
        (TAIL, "if (i < n)", "if (i < n - 1)"),
        (INDEX, "alpha * x[i]", "alpha * x[i ^ 1]"),
        (VALUE, "y[i] + alpha * x[i]", "y[i] - alpha * x[i]"),
        (PRECISION, "y[i] + alpha * x[i]", "y[i] + (alpha + 0.0005f) * x[i]"),
        (STATE, "out[i] = y[i]", "out[i] += y[i]"),
    ),
    *_of(
        "cuda_row_sum",
        (TAIL, "i < columns;", "i < columns - 1;"),
        (REDUCE, "offset = 16;", "offset = 8;"),
        (REDUCE, "offset > 0;", "offset > 1;"),
        (REDUCE, "(blockDim.x >> 5) ? warps", "(blockDim.x >> 5) - 1 ? warps"),
        (INDEX, "blockIdx.x * columns", "blockIdx.x * (columns - 1)"),
        (VALUE, "float partial = 0.0f;", "float partial = 0.0001f;"),
    ),
    *_of(
        "cuda_transpose",
        (TAIL, "to_column < rows", "to_column < rows - 1"),
        (INDEX, "to_row * rows + to_column", "to_row * (rows - 1) + to_column"),
        (INDEX, "tile[threadIdx.x][threadIdx.y];", "tile[threadIdx.y][threadIdx.x];"),
        (STATE, "    __syncthreads();\n", ""),
        (VALUE, "= x[row * columns + column]", "= x[row * columns + column] * 1.0005f"),
    ),
]  # fmt: skip

KERNELS = tuple(dict.fromkeys(mutant.kernel for mutant in MUTANTS))
