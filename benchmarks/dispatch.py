"""A dispatch from beginning to end: three candidates, six shapes, judged, dispatched, judged again, by the ledger.

Usage: dispatch.py [--out FILE]. Needs a card for times; without one it says so and every group keeps the baseline.
Exit 1 where the module came out slower than eager on any case.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHAPES = [(4096, 1024), (8192, 256), (64, 16384), (16384, 64), (2048, 2560), (128, 8192)]

TEXT = '''"""RMS normalisation in fp16: {words}."""

import torch
import triton
import triton.language as tl


# odyssey: reference=rms_norm_torch inputs=make_inputs candidate=rms_norm sizes={sizes}
def rms_norm_torch(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (wide * scale).to(x.dtype) * weight


rows = {rows}
hidden = {hidden}


def make_inputs():
    x = torch.randn(rows, hidden, device="cuda", dtype=torch.float16)
    return [x, torch.randn(hidden, device="cuda", dtype=torch.float16)]

{kernel}'''

ROW_KERNEL = """
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
    rms_norm_kernel[(x.shape[0],)](x, weight, out, x.stride(0), x.shape[-1], 1e-6, BLOCK=block, num_warps={warps})
    return out
"""

TILE_KERNEL = """
@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, stride, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (columns < n_cols)
    x = tl.load(x_ptr + rows * stride + columns, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    w = tl.load(w_ptr + columns, mask=columns < n_cols)
    tl.store(out_ptr + rows * stride + columns, (x * scale[:, None]).to(tl.float16) * w, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    tile = max(1, 2048 // block)
    grid = (triton.cdiv(n_rows, tile),)
    rms_norm_kernel[grid](x, weight, out, x.stride(0), n_rows, n_cols, 1e-6, ROWS=tile, BLOCK=block)
    return out
"""

CANDIDATES = {
    "one row a program, 4 warps": ROW_KERNEL.format(warps=4),
    "one row a program, 16 warps": ROW_KERNEL.format(warps=16),
    "a tile of rows a program": TILE_KERNEL,
}


def text_of(words: str) -> str:
    sizes = ";".join(f"rows:{rows},hidden:{hidden}" for rows, hidden in SHAPES)
    return TEXT.format(words=words, sizes=sizes, rows=SHAPES[0][0], hidden=SHAPES[0][1], kernel=CANDIDATES[words])


def odyssey(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a command there; its JSON. Raises SystemExit with what it said where there is none."""
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from server.__main__ import main; raise SystemExit(main())"
    argv = [sys.executable, "-c", code, str(ROOT), *arguments, "--json"]
    done = subprocess.run(argv, cwd=folder / "work", env=environ, capture_output=True, text=True, timeout=1800)
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        raise SystemExit(f"odyssey {' '.join(arguments)} (exit {done.returncode}):\n{done.stderr[-3000:]}") from None


def chosen(value: dict[str, Any], names: str) -> dict[str, Any]:
    """Some fields of an object."""
    return {name: value[name] for name in names.split()}


def main() -> int:
    """Do it and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odyssey-dispatch-") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        (folder / "work" / "odyssey.toml").write_text("")
        for words in CANDIDATES:
            (folder / "work" / "rms_norm.py").write_text(text_of(words))
            judged = odyssey(folder, "eval", "rms_norm.py")
            print(f"{words}: {judged['result']['status']}", flush=True)
        said = odyssey(folder, "dispatch", "rms_norm.py")
        row = odyssey(folder, "ledger", "show", str(said["row"]), "--body")
        verified = odyssey(folder, "ledger", "verify")
        module = Path(said["module"]).read_text()
        rows = odyssey(folder, "ledger", "list", "--limit", "500")["rows"]
    for group in said["groups"]:
        print(f"{group['group']:<28} {(group['winner'] or 'baseline')[:12]:<14} {group['reason']}")
    print(f"worst case of the module over eager: {said['worst_speedup']}; ledger: {verified['state']}")
    result = {
        "shapes": SHAPES, "candidates": list(CANDIDATES), "card": said["card"], "dispatch": said,
        "module_row": chosen(row, "seq status speedup runtime_us ref_runtime_us card uuid"),
        "module_lines": len(module.splitlines()), "ledger": chosen(verified, "state rows entries head"),
        "rows": [chosen(r, "seq kernel_sha status runtime_us ref_runtime_us intent") for r in rows],
        "never_slower": said["worst_speedup"] is None or said["worst_speedup"] >= 1 / 1.015,
    }  # fmt: skip
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if result["never_slower"] and verified["state"] == "intact" else 1


if __name__ == "__main__":
    sys.exit(main())
