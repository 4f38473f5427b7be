"""NVRTC without a driver: errors on the person's line, registers, launches that are refused without a GPU."""

from __future__ import annotations

import loading_problems as problems
import pytest

from evalcore.gpu.nvrtc import check_cuda
from evalcore.gpu.nvrtc_library import NvrtcMissing, library, parse_log, parse_resources

try:
    library()
    HAS_NVRTC = True
except NvrtcMissing:
    HAS_NVRTC = False

needs_nvrtc = pytest.mark.skipif(not HAS_NVRTC, reason="no NVRTC library here (package nvidia-cuda-nvrtc)")

CU = """\
#include <cstdint>
#include "tools.cuh"
// é
template <typename T, int N>
__global__ void scale(const T* x, T* y, int64_t n) {
    int i = blockIdx.x * N + threadIdx.x;
    if (i < n) y[i] = twice(x[i]) * wrong;
}
void host(float* x) { scale<float, 4><<<1, 2>>>(x, x, 3); std::vector<int> v; }
extern "C" __global__ void plain(float* p) { __shared__ float s[64]; s[threadIdx.x] = *p; *p = s[0]; }
"""
HEADER = "#pragma once\ntemplate <typename T> __device__ T twice(T x) { return x + x; }\nvoid host_only();\n"


@needs_nvrtc
def test_an_error_stands_on_its_line_and_columns() -> None:
    (found,), _ = check_cuda("/nowhere/k.cu", CU, overlays=[("/nowhere/tools.cuh", HEADER)])
    assert (found.path, found.line, found.column, found.end_column) == ("/nowhere/k.cu", 7, 37, 42)
    assert found.severity == "error" and found.message == 'identifier "wrong" is undefined'


@needs_nvrtc
def test_instances_that_the_launches_name_are_compiled() -> None:
    found, facts = check_cuda("/nowhere/k.cu", CU.replace("wrong", "3"), overlays=[("/nowhere/tools.cuh", HEADER)])
    assert found == []
    by_name = {one.name: one for one in facts}
    assert set(by_name) == {"scale<float, 4>", "plain"}
    assert by_name["plain"].shared_bytes == 256 and by_name["plain"].registers > 0
    assert by_name["plain"].spill_bytes == 0


@needs_nvrtc
def test_a_string_in_a_python_file_with_escapes_and_wide_characters() -> None:
    text = (
        "import cupy\n"
        'k = "🚀"; source = "__global__ void k(float* p) {\\n  printf(\\"%f\\\\n\\", *p);\\n  *p = nope;\\n}"\n'
    )
    (found,), _ = check_cuda("/nowhere/k.py", text)
    line = text.split("\n")[1]
    assert found.line == 2 and line[found.column - 1 : found.end_column - 1] == "nope"


@needs_nvrtc
def test_a_header_that_nobody_has_is_no_error() -> None:
    text = '#include <cutlass/cutlass.h>\n__global__ void k(float* p) { *p = nope; }\n'
    (found,), _ = check_cuda("/nowhere/k.cu", text)
    assert found.severity == "information" and found.line == 1


@needs_nvrtc
@pytest.mark.parametrize(
    "text",
    [
        "#include <torch/extension.h>\n#include <vector>\n__global__ void k(at::Half* p, int64_t n) { p[0] = p[1]; }",
        "#include <cuda_fp16.h>\n#include <cfloat>\n__global__ void k(half* p) { *p = __float2half(FLT_MAX); }",
        "#include <limits>\n"
        "__global__ void k(float* p) { constexpr float m = -std::numeric_limits<float>::infinity(); *p = m; }",
        "#include <algorithm>\n__global__ void k(int* p) { *p = std::max(p[0], p[1]); *p = max(1, 2); }",
        "#include <cmath>\n#include <math.h>\n"
        "__global__ void k(float* p) { *p = expf(M_PI) + INFINITY + std::min(1.f, 2.f); }",
        "#include <stdio.h>\n__global__ void k(int* p) { printf(\"%d\", *p); assert(*p > 0); }",
        "#include <mma.h>\nusing namespace nvcuda;\n__global__ void k(half* p) {\n"
        "wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> f; wmma::load_matrix_sync(f, p, 16); }",
        "extern __shared__ float s[];\nenum Kind { A, B };\ntypedef struct { int a; } P;\n"
        "__global__ void k(P* p) { p->a = A; }",
        "static const int N = 4;\ntemplate <int M> struct T { static constexpr int v = M; };\n"
        "__global__ void k(int* p) { *p = T<N>::v; }",
    ],
)
def test_honest_texts_have_no_errors(text: str) -> None:
    found, _ = check_cuda("/nowhere/k.cu", text)
    assert [one for one in found if one.severity == "error"] == []


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import evalcore.gpu.nvrtc as module

    def missing() -> None:
        raise NvrtcMissing("install it")

    monkeypatch.setattr(module, "library", missing)
    (found,), facts = check_cuda("/nowhere/k.cu", "__global__ void k() {}")
    assert found.severity == "hint" and found.message == "install it" and facts == []


def test_the_log_is_read() -> None:
    log = (
        'k.cu(3): error: identifier "x" is undefined\n      y = x;\n          ^\n\n'
        'k.cu(1): catastrophic error: cannot open source file "a.h"\n'
        'h.cuh(2): warning #177-D: variable "q" was declared but never referenced\n      int q;\n          ^\n'
        "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
        "    16 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 128 bytes smem, 16 bytes stack\n"
    )
    messages, missing = parse_log(log, "/a/k.cu", "one\ntwo\n    y = x;\n")
    assert missing and [(one.level, one.line, one.column, one.file, one.code) for one in messages] == [
        ("error", 3, 9, "", ""), ("error", 1, 1, "", ""), ("warning", 2, 9, "h.cuh", "177-D"),
    ]
    (found,) = parse_resources(log)
    assert (found.name, found.registers, found.shared_bytes, found.stack_bytes, found.spill_bytes) == ("k", 40, 128, 16, 32)


INLINE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(8)]

def get_init_inputs():
    return []

source = """
__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
torch::Tensor run(torch::Tensor x) { auto y = x.clone(); twice<<<1, 32>>>(y.data_ptr<float>(), y.numel()); return y; }
"""
built = load_inline(name="twice", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=[source],
                    functions=["run"], verbose=False)

class ModelNew(nn.Module):
    def forward(self, x):
        return built.run(x)
'''


def body_inline(old: str, new: str) -> list:
    text = INLINE.replace(old, new)
    problem = problems.module("/nowhere/i.py", text)
    crash = problems.crash_of(problem)
    line = text.split("\n")[crash.place.line - 1]
    return [crash.kind, crash.message, line[crash.place.column - 1 :]]


@needs_nvrtc
def test_load_inline_is_compiled_and_refused_without_a_gpu(interpreted) -> None:
    kind, message, _ = interpreted(body_inline, "", "")
    assert kind == "cannot_interpret" and "twice compiles (" in message and "without a GPU" in message


@needs_nvrtc
def test_an_error_in_a_load_inline_string_is_on_its_line(interpreted) -> None:
    kind, message, rest = interpreted(body_inline, "if (i < n)", "if (i < m)")
    assert (kind, message) == ("compile", 'identifier "m" is undefined')
    assert rest.startswith("m) x[i] *= 2")


def body_cu(old: str, new: str) -> list:
    from evalcore.gpu.faults import CandidateFault
    from evalcore.gpu.loading import load, make_inputs
    from evalcore.problem import Case, CudaLaunch, Inputs, InputsKind, Problem, Program, ProgramKind

    reference = "import torch\n\ndef double(x):\n    return x * 2\n\ndef inputs():\n    return {'x': torch.rand(8)}\n"
    text = 'extern "C" __global__ void twice(float* x, float* out, int n) { out[threadIdx.x] = x[threadIdx.x] * 2; }\n'
    launch = CudaLaunch(grid="(1,)", block="x.numel()", args=("x", "out", "x.numel()"), outputs=("out",))
    problem = Problem(
        id="k", format="comment",
        reference=Program(path="/nowhere/r.py", text=reference, entry="double", kind=ProgramKind.FUNCTION),
        candidate=Program(
            path="/nowhere/k.cu", text=text.replace(old, new), entry="twice", kind=ProgramKind.CUDA_KERNEL, launch=launch
        ),
        inputs=Inputs(kind=InputsKind.GET_INPUTS, function="inputs", names=("x",)), cases=(Case(name="given"),),
    )
    loaded = load(problem, problem.reference, sizes={}, device="cpu", seed=0, init_inputs=None, scratch="")
    values = make_inputs(loaded, problem, sizes={}, seed=0)
    try:
        candidate = load(problem, problem.candidate, sizes={}, device="cpu", seed=0, init_inputs=None, scratch="")
        candidate.call(values)
    except CandidateFault as fault:
        place = fault.crash.place
        return [fault.crash.kind, fault.crash.message, place.path, place.line, place.column]
    return []


@needs_nvrtc
def test_a_bare_kernel_is_compiled_and_refused_without_a_gpu(interpreted) -> None:
    kind, message, path, line, column = interpreted(body_cu, "", "")
    assert kind == "cannot_interpret" and "twice compiles" in message
    assert (path, line, column) == ("/nowhere/k.cu", 1, 28)


@needs_nvrtc
def test_a_bare_kernel_with_an_error(interpreted) -> None:
    kind, message, path, line, column = interpreted(body_cu, "* 2; }", "* two; }")
    assert (kind, message) == ("compile", 'identifier "two" is undefined')
    assert (path, line) == ("/nowhere/k.cu", 1) and column > 80


def body_text_from_a_file(folder: str) -> list:
    """CUDA text that the program reads from a file beside it; the editor's unsaved buffer is what it reads."""
    import os
    from pathlib import Path

    Path(folder, "twice.cu").write_text("on the disk it is stale")
    text = INLINE.split("source =")[0] + (
        "from pathlib import Path\nsource = (Path(__file__).parent / 'twice.cu').read_text()\nassert 'stale' not in source\n"
        "with open('twice.cu', 'rb') as handle:\n    LENGTH = len(handle.read())\n"
        "built = load_inline('t', 'torch::Tensor run(torch::Tensor x);', source, functions=['run'])\n\n"
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return built.run(x) * LENGTH\n"
    )
    buffer = '// é\n__global__ void twice(float* x) { x[0] = nothing; }\ntorch::Tensor run(torch::Tensor x) { return x; }\n'
    path = os.path.join(folder, "program.py")
    problem = problems.module(path, text, project_root=folder, overlays=((os.path.join(folder, "twice.cu"), buffer),))
    crash = problems.crash_of(problem)
    return [crash.kind, crash.message, os.path.basename(crash.place.path), crash.place.line, crash.place.column]


@needs_nvrtc
def test_an_error_in_a_file_that_the_program_reads(interpreted, tmp_path) -> None:
    kind, message, name, line, column = interpreted(body_text_from_a_file, str(tmp_path))
    assert (kind, message) == ("compile", 'identifier "nothing" is undefined')
    assert (name, line, column) == ("twice.cu", 2, 42)
