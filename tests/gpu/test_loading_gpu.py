"""Loading on a card: CUDA kernels through NVRTC and the driver, host code as Python, autotune without Triton's timer.

python -m pytest tests/gpu/test_loading_gpu.py -m gpu -s        (add `-m "gpu and slow"` for the real extension build)
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="needs an NVIDIA GPU"),
]
ROOT = Path(__file__).resolve().parents[2]
COMMON = '''
import os, sys, time
sys.path[:0] = [ROOT, ROOT + "/tests/unit/evalcore_loading"]
import torch
import loading_problems as problems
from evalcore.gpu.faults import CandidateFault
from evalcore.gpu.loading import init_inputs, load, make_inputs
from evalcore.problem import *

def both(problem, sizes=None):
    sizes = sizes or {}
    reference = load(problem, problem.reference, sizes=sizes, device="cuda:0", seed=0, init_inputs=None, scratch=SCRATCH)
    inputs = make_inputs(reference, problem, sizes=sizes, seed=0)
    wanted = reference.call(inputs)
    start = time.perf_counter()
    candidate = load(problem, problem.candidate, sizes=sizes, device="cuda:0", seed=0, init_inputs=[], scratch=SCRATCH)
    got = candidate.call(inputs)
    torch.cuda.synchronize()
    return wanted, got, candidate, time.perf_counter() - start

def crash_of(problem):
    try:
        both(problem)
    except CandidateFault as fault:
        return fault.crash
    raise AssertionError("ran to its end")
'''


def run(body: str, tmp_path: Path) -> str:
    """Runs a body in a fresh process: a fault on the card poisons its context."""
    text = f"ROOT = {str(ROOT)!r}\nSCRATCH = {str(tmp_path)!r}\n{COMMON}\n{body}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


INLINE = """
text = open(ROOT + "/examples/inline_gelu.py").read()
problem = problems.module(ROOT + "/examples/inline_gelu.py", text)
wanted, got, candidate, seconds = both(problem, {"rows": 64})
torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
facts = candidate.kernel_facts()
assert facts[0].name == "gelu_kernel" and facts[0].launches == 1 and facts[0].registers > 0, facts
print([flag.code for flag in candidate.notes], f"{seconds:.2f} s")
"""


def test_load_inline_without_a_build(tmp_path: Path) -> None:
    out = run(INLINE, tmp_path)
    assert "host-interpreted" in out and float(out.split()[-2]) < 5.0


@pytest.mark.slow
def test_load_inline_with_the_real_builder(tmp_path: Path) -> None:
    body = "from evalcore.gpu import cuda_build\ncuda_build.force_real_builds()\n" + INLINE.replace("launches == 1", "name")
    assert "host-interpreted" not in run(body, tmp_path)


def test_a_bare_kernel(tmp_path: Path) -> None:
    run(
        """
reference, kernel = ROOT + "/examples/reduce_rows_reference.py", ROOT + "/examples/reduce_rows.cu"
def made(text, args=("x", "out", "x.shape[1]"), block="(256,)", shared="0"):
    launch = CudaLaunch(grid="(x.shape[0],)", block=block, args=args, outputs=("out",), shared_bytes=shared)
    return Problem(
        id="k", format="comment",
        reference=Program(path=reference, text=open(reference).read(), entry="row_sum", kind=ProgramKind.FUNCTION),
        candidate=Program(path=kernel, text=text, entry="row_sum_kernel", kind=ProgramKind.CUDA_KERNEL, launch=launch),
        inputs=Inputs(kind=InputsKind.GET_INPUTS, function="make_inputs", names=("x",)), cases=(Case(name="given"),))
text = open(kernel).read()
wanted, got, candidate, seconds = both(made(text), {"rows": 100})
torch.testing.assert_close(got, wanted, atol=1e-3, rtol=1e-4)
assert candidate.kernel_facts()[0].launches == 1
crash = crash_of(made(text, block="(2048,)"))
assert crash.kind == "out_of_resources" and "2048 threads" in crash.message, crash
crash = crash_of(made(text, shared="400000"))
assert crash.kind == "out_of_resources" and "this card has" in crash.message, crash
crash = crash_of(made(text, args=("x", "out", "x.shap")))
assert crash.kind == "exception" and "x.shap" in crash.message, crash
crash = crash_of(made(text.replace("partial += row[i]", "partial += rows[i]")))
assert crash.kind == "compile" and crash.place.line == 14, crash
""",
        tmp_path,
    )


def test_templates_dispatch_and_half(tmp_path: Path) -> None:
    run(
        '''
text = """
import torch, torch.nn as nn
from torch.utils.cpp_extension import load_inline
class Model(nn.Module):
    def forward(self, x): return x * 3
def get_inputs(): return [torch.rand(1000).half()]
def get_init_inputs(): return []
source = r\'\'\'
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
template <typename scalar_t, int B>
__global__ void scale(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int64_t n, float a) {
    extern __shared__ char raw[];
    int64_t i = blockIdx.x * (int64_t)B + threadIdx.x;
    if (i < n) y[i] = static_cast<scalar_t>(static_cast<float>(x[i]) * a);
}
torch::Tensor run(torch::Tensor x, double a) {
    TORCH_CHECK(x.is_cuda(), "x must be on the card");
    auto y = torch::empty_like(x);
    const int threads = 128;
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "scale", ([&] {
        scale<scalar_t, threads><<<CEIL_DIV(x.numel(), threads), threads, 64 * 1024,
            at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel(), (float)a);
    }));
    return y;
}
\'\'\'
built = load_inline(name="s", cpp_sources="torch::Tensor run(torch::Tensor x, double a);", cuda_sources=source,
                    functions=["run"])
class ModelNew(nn.Module):
    def forward(self, x): return built.run(x, 3.0)
"""
wanted, got, candidate, seconds = both(problems.module("/nowhere/s.py", text))
torch.testing.assert_close(got, wanted)
ones = torch.ones(5, device="cuda", dtype=torch.float64)
assert torch.equal(candidate.call([ones]), ones * 3)
''',
        tmp_path,
    )


def test_autotune_is_timed_by_us_and_leaves_the_tensors_alone(tmp_path: Path) -> None:
    run(
        '''
text = """
import torch, triton
import triton.language as tl
def never(*args, **kwargs): raise SystemExit("Triton must not time anything")
@triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 256, 1024)], key=["n"], do_bench=never)
@triton.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)
def run(x):
    y = x.clone()
    increment[lambda meta: (triton.cdiv(y.numel(), meta["BLOCK"]),)](y, y.numel())
    return y
"""
open(SCRATCH + "/inc.py", "w").write(text)
made = "x = torch.rand(10000, device='cuda')"
problem = problems.expression(SCRATCH + "/inc.py", text, "run(x)", "x + 1", made, names=("x",))
wanted, got, candidate, seconds = both(problem)
assert torch.equal(wanted, got)
from evalcore.gpu import autotune
seen = autotune.seen()["increment"]
assert len(seen.configs) == 3 and len(seen.timings_us) == 3 and all(0 < t < 1e5 for t in seen.timings_us.values()), seen
facts = {one.config: one for one in candidate.kernel_facts()}
assert any("BLOCK=" in config for config in facts) and all(one.registers for one in facts.values()), facts
''',
        tmp_path,
    )


def test_faults_of_the_card(tmp_path: Path) -> None:
    run(
        '''
text = """
import torch, triton
import triton.language as tl
@triton.jit
def big(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.dot(x, x))
def run(x):
    big[(1,)](x, BLOCK=512)
    return x
"""
open(SCRATCH + "/big.py", "w").write(text)
made = "x = torch.rand(512, 512, device='cuda')"
problem = problems.expression(SCRATCH + "/big.py", text, "run(x)", "x", made, names=("x",))
crash = crash_of(problem)
assert crash.kind == "out_of_resources" and "needs" in crash.message and crash.place.line == 11, crash
''',
        tmp_path,
    )
    run(
        '''
text = """
import torch, triton
import triton.language as tl
@triton.jit
def far(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + n.to(tl.int64) * 1000000
    tl.store(x_ptr + i, 1.0)
def run(x):
    far[(1,)](x, x.numel() * 1000, BLOCK=128)
    torch.cuda.synchronize()
    return x
"""
open(SCRATCH + "/far.py", "w").write(text)
made = "x = torch.rand(4096, device='cuda')"
problem = problems.expression(SCRATCH + "/far.py", text, "run(x)", "x", made, names=("x",))
crash = crash_of(problem)
assert crash.kind == "out_of_bounds" and crash.place.line == 11, crash
''',
        tmp_path,
    )
