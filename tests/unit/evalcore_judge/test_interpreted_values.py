"""Float arguments and libdevice functions in Triton's interpreter, in a process of their own: it patches Triton."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KERNEL = """
import sys
sys.path.insert(0, {root!r})
import torch
import triton
import triton.language as tl
from evalcore.gpu import interpreted_values
interpreted_values.install()
from triton.language.extra import libdevice


@triton.jit
def kernel(x, out, n, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    bad = libdevice.isnan(value)
    made = libdevice.tanh(value) * scale.to(tl.float32) + libdevice.pow(value, 2.0)
    tl.store(out + at, tl.where(bad != 0, -1.0, made), mask=at < n)


x = torch.randn(100)
x[7] = float("nan")
out = torch.zeros(100)
kernel[(1,)](x, out, 100, 0.5, BLOCK=128)
want = torch.tanh(x) * 0.5 + x * x
want[7] = -1.0
assert torch.allclose(out, want, atol=1e-6), (out - want).abs().max()
print("as a card would")
"""


def test_float_arguments_and_libdevice() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    script = folder / f"interpreted_values_{os.getpid()}.py"
    script.write_text(KERNEL.format(root=str(ROOT)), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120
        )
    finally:
        script.unlink()
    assert "as a card would" in done.stdout, done.stderr[-2000:]
