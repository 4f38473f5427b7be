"""Public Triton kernels beside plain torch: rows that become KernelBench pairs in a folder with the packages unpacked.

The packages are fetched by pinned hash (public_files.txt) into a folder that git ignores; nothing of theirs is here.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "public"
PINS = Path(__file__).with_name("public_files.txt")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One public kernel: how it is imported and called, what torch says, and on which inputs."""

    name: str
    imports: str
    call: str
    reference: str
    inputs: str
    names: str = "x"

    def write(self, folder: Path) -> tuple[Path, Path]:
        """(candidate, reference) as files of a KernelBench pair."""
        candidate = folder / f"public_{self.name}.py"
        reference = folder / f"reference_public_{self.name}.py"
        candidate.write_text(
            f"import torch\n{self.imports}\n\n\nclass ModelNew(torch.nn.Module):\n"
            f"    def forward(self, {self.names}):\n        return {self.call}\n",
            encoding="utf-8",
        )
        reference.write_text(
            "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n"
            f"    def forward(self, {self.names}):\n        return {self.reference}\n\n\n"
            f"def get_inputs():\n    return [{self.inputs}]\n\n\ndef get_init_inputs():\n    return []\n",
            encoding="utf-8",
        )
        return candidate, reference


def fetch(folder: Path = FOLDER) -> Path:
    """The packages, unpacked; downloaded once."""
    if not (folder / "packaging").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", str(PINS)]
        subprocess.run([*command, "-d", str(folder)], check=True)
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
    return folder


def _liger(name: str, file: str, what: str, call: str, reference: str, inputs: str, names: str = "x") -> Row:
    return Row(
        name=name, imports=f"from liger_kernel.ops.{file} import {what}", call=call, reference=reference, inputs=inputs,
        names=names,
    )  # fmt: skip


_ROWS = "torch.randn(64, 512)"
_HALF = "torch.randn(64, 512, dtype=torch.float16)"
_BRAIN = "torch.randn(64, 512, dtype=torch.bfloat16)"

PUBLIC: tuple[Row, ...] = (
    _liger("softmax", "softmax", "LigerSoftmaxFunction",
           "LigerSoftmaxFunction.apply(x)", "torch.softmax(x, -1)", _ROWS),
    _liger("softmax_half", "softmax", "LigerSoftmaxFunction",
           "LigerSoftmaxFunction.apply(x)", "torch.softmax(x, -1)", _HALF),
    _liger("layer_norm", "layer_norm", "LigerLayerNormFunction", "LigerLayerNormFunction.apply(x, w, b, 1e-6)",
           "F.layer_norm(x, (512,), w, b, 1e-6)", f"{_ROWS}, torch.rand(512), torch.randn(512)", "x, w, b"),
    _liger("rms_norm", "rms_norm", "LigerRMSNormFunction",
           "LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, 'llama', False)",
           "F.rms_norm(x, (512,), w, 1e-6)", f"{_ROWS}, torch.rand(512)", "x, w"),
    _liger("rms_norm_half", "rms_norm", "LigerRMSNormFunction",
           "LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, 'gemma', False)",
           "F.rms_norm(x, (512,), w, 1e-6)", f"{_HALF}, torch.rand(512, dtype=torch.float16)", "x, w"),
    _liger("geglu", "geglu", "LigerGELUMulFunction", "LigerGELUMulFunction.apply(a, b)",
           "F.gelu(a, approximate='tanh') * b", f"{_ROWS}, {_ROWS}", "a, b"),
    _liger("geglu_half", "geglu", "LigerGELUMulFunction", "LigerGELUMulFunction.apply(a, b)",
           "F.gelu(a, approximate='tanh') * b", f"{_HALF}, {_HALF}", "a, b"),
    _liger("swiglu", "swiglu", "LigerSiLUMulFunction", "LigerSiLUMulFunction.apply(a, b)", "F.silu(a) * b",
           f"{_ROWS}, {_ROWS}", "a, b"),
    _liger("swiglu_half", "swiglu", "LigerSiLUMulFunction", "LigerSiLUMulFunction.apply(a, b)", "F.silu(a) * b",
           f"{_HALF}, {_HALF}", "a, b"),
    _liger("relu_squared", "relu_squared", "LigerReLUSquaredFunction", "LigerReLUSquaredFunction.apply(x)",
           "torch.relu(x).square()", _ROWS),
    _liger("dyt", "dyt", "LigerDyTFunction", "LigerDyTFunction.apply(x, a, g, b)", "torch.tanh(x * a) * g + b",
           f"{_ROWS}, torch.rand(1), torch.rand(512), torch.randn(512)", "x, a, g, b"),
    _liger("group_norm", "group_norm", "LigerGroupNormFunction", "LigerGroupNormFunction.apply(x, w, b, 8, 4, 1e-6)",
           "F.group_norm(x, 4, w, b, 1e-6)", "torch.randn(4, 8, 128), torch.rand(8), torch.randn(8)", "x, w, b"),
    _liger("sparsemax", "sparsemax", "LigerSparsemaxFunction", "LigerSparsemaxFunction.apply(x, -1)",
           "(x - (((x.sort(-1, descending=True)[0].cumsum(-1) - 1) / torch.arange(1, 129, device=x.device, dtype=x.dtype))"
           ".gather(-1, ((1 + torch.arange(1, 129, device=x.device, dtype=x.dtype) * x.sort(-1, descending=True)[0]"
           " > x.sort(-1, descending=True)[0].cumsum(-1)).sum(-1, keepdim=True) - 1)))).clamp_min(0)",
           "torch.randn(32, 128)"),
    _liger("fused_add_rms_norm", "fused_add_rms_norm", "LigerFusedAddRMSNormFunction",
           "LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, 'llama', False)",
           "(F.rms_norm(x + r, (512,), w, 1e-6), x + r)", f"{_ROWS}, {_ROWS}, torch.rand(512)", "x, r, w"),
    _liger("poly_norm", "poly_norm", "LigerPolyNormFunction", "LigerPolyNormFunction.apply(x, w, b, 1e-6, False)",
           "sum(w[2 - k] * (x ** (k + 1)) * torch.rsqrt((x ** (2 * k + 2)).mean(-1, keepdim=True) + 1e-6)"
           " for k in range(3)) + b", f"{_ROWS}, torch.rand(3), torch.rand(1)", "x, w, b"),
    _liger("kl_div", "kl_div", "LigerKLDivLossFunction",
           "LigerKLDivLossFunction.apply(p, q, 'batchmean', False, 1e-10)",
           "F.kl_div(p, q, reduction='batchmean')",
           "torch.randn(32, 256).log_softmax(-1), torch.randn(32, 256).softmax(-1)",
           "p, q"),
    _liger("tvd", "tvd", "LigerTVDLossFunction", "LigerTVDLossFunction.apply(p, q)",
           "0.5 * (p - q).abs().sum(-1).mean()", "torch.randn(32, 256).softmax(-1), torch.randn(32, 256).softmax(-1)",
           "p, q"),
    _liger("jsd", "jsd", "LigerJSDFunction", "LigerJSDFunction.apply(p, q)",
           "0.5 * (F.kl_div(torch.log(0.5 * (p.exp() + q.exp())), p, reduction='batchmean', log_target=True)"
           " + F.kl_div(torch.log(0.5 * (p.exp() + q.exp())), q, reduction='batchmean', log_target=True))",
           "torch.randn(32, 256).log_softmax(-1), torch.randn(32, 256).log_softmax(-1)", "p, q"),
    _liger("softmax_brain", "softmax", "LigerSoftmaxFunction",
           "LigerSoftmaxFunction.apply(x)", "torch.softmax(x, -1)", _BRAIN),
    _liger("swiglu_brain", "swiglu", "LigerSiLUMulFunction", "LigerSiLUMulFunction.apply(a, b)", "F.silu(a) * b",
           f"{_BRAIN}, {_BRAIN}", "a, b"),
    _liger("layer_norm_half", "layer_norm", "LigerLayerNormFunction", "LigerLayerNormFunction.apply(x, w, b, 1e-6)",
           "F.layer_norm(x, (512,), w, b, 1e-6)",
           f"{_HALF}, torch.rand(512, dtype=torch.float16), torch.randn(512, dtype=torch.float16)", "x, w, b"),
    _liger("relu_squared_half", "relu_squared", "LigerReLUSquaredFunction", "LigerReLUSquaredFunction.apply(x)",
           "torch.relu(x).square()", _HALF),
    _liger("softmax_wide", "softmax", "LigerSoftmaxFunction", "LigerSoftmaxFunction.apply(x)", "torch.softmax(x, -1)",
           "torch.randn(16, 5000)"),
    _liger("geglu_odd", "geglu", "LigerGELUMulFunction", "LigerGELUMulFunction.apply(a, b)",
           "F.gelu(a, approximate='tanh') * b", "torch.randn(33, 301), torch.randn(33, 301)", "a, b"),
    _liger("swiglu_odd", "swiglu", "LigerSiLUMulFunction", "LigerSiLUMulFunction.apply(a, b)", "F.silu(a) * b",
           "torch.randn(33, 301), torch.randn(33, 301)", "a, b"),
    _liger("rms_norm_odd", "rms_norm", "LigerRMSNormFunction",
           "LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, 'none', False)",
           "F.rms_norm(x, (301,), w, 1e-6)", "torch.randn(33, 301), torch.rand(301)", "x, w"),
    _liger("layer_norm_odd", "layer_norm", "LigerLayerNormFunction", "LigerLayerNormFunction.apply(x, w, b, 1e-5)",
           "F.layer_norm(x, (301,), w, b, 1e-5)", "torch.randn(33, 301), torch.rand(301), torch.randn(301)", "x, w, b"),
    _liger("dyt_odd", "dyt", "LigerDyTFunction", "LigerDyTFunction.apply(x, a, g, b)", "torch.tanh(x * a) * g + b",
           "torch.randn(33, 301), torch.rand(1), torch.rand(301), torch.randn(301)", "x, a, g, b"),
    _liger("group_norm_one", "group_norm", "LigerGroupNormFunction",
           "LigerGroupNormFunction.apply(x, w, b, 6, 6, 1e-5)",
           "F.group_norm(x, 6, w, b, 1e-5)", "torch.randn(3, 6, 200), torch.rand(6), torch.randn(6)", "x, w, b"),
    _liger("sparsemax_half_scale", "sparsemax", "LigerSparsemaxFunction", "LigerSparsemaxFunction.apply(x, -1)",
           "(x - (((x.sort(-1, descending=True)[0].cumsum(-1) - 1) / torch.arange(1, 65, device=x.device, dtype=x.dtype))"
           ".gather(-1, ((1 + torch.arange(1, 65, device=x.device, dtype=x.dtype) * x.sort(-1, descending=True)[0]"
           " > x.sort(-1, descending=True)[0].cumsum(-1)).sum(-1, keepdim=True) - 1)))).clamp_min(0)",
           "torch.randn(20, 64) * 0.5"),
)  # fmt: skip
