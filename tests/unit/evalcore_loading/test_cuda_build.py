"""Builds that user code asks for: intercepted, checked first, and their errors put on the line of the string."""

from __future__ import annotations

import textwrap

import loading_problems as problems
import pytest
from test_nvrtc import needs_nvrtc

torch = pytest.importorskip("torch")

PROGRAM = textwrap.dedent('''\
    import torch
    source = """
    #include <torch/extension.h>
    __global__ void k(float* x) { x[0] = 1; }
    torch::Tensor run(torch::Tensor x) {
        return x.nothing();
    }
    """
    declaration = "torch::Tensor run(torch::Tensor y);"
''')


@pytest.fixture
def project():
    from evalcore.gpu import importing

    begun = importing.begin("/nowhere/p.py", "/nowhere", ())
    begun.main_text = PROGRAM
    yield begun
    importing._end(importing._active.pop())


def texts() -> tuple[str, str]:
    scope: dict = {}
    exec(PROGRAM.replace("import torch", ""), scope)
    return scope["source"], scope["declaration"]


@pytest.mark.parametrize(
    ("log", "line", "column", "words"),
    [
        # load_inline puts three includes before the CUDA text
        ("[1/2] nvcc\n/tmp/b/cuda.cu(8): error: class \"at::Tensor\" has no member \"nothing\"\n", 6, 1, "has no member"),
        ("/tmp/b/main.cpp:2:19: error: 'torch::Tensr' was not declared\n", 9, 34, "was not declared"),
        ("/tmp/b/cuda.cu(8): catastrophic error: too many errors\n", 6, 1, "too many errors"),
    ],
)
def test_a_builder_s_error_is_on_the_line_of_the_string(project, log, line, column, words) -> None:
    from evalcore.gpu.cuda_build import _builder_fault

    found = _builder_fault(f"Error building extension 'x':\n{log}", *texts(), implicit=True)
    assert words in str(found)
    assert found.place is not None and (found.place.path, found.place.line) == ("/nowhere/p.py", line)
    assert found.place.column == column


def test_a_log_without_places_is_told_by_its_first_error(project) -> None:
    from evalcore.gpu.cuda_build import _builder_fault

    found = _builder_fault("ninja: build stopped\nld: error: cannot find -lx\nmore", *texts(), implicit=True)
    assert str(found) == "ld: error: cannot find -lx" and found.place is None


def test_the_real_builder_gets_a_folder_of_the_content(project, tmp_path, monkeypatch) -> None:
    from evalcore.gpu import cuda_build

    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setattr(cuda_build, "_settings", cuda_build.Settings(device="cpu", scratch=str(tmp_path)))
    asked: list[dict] = []

    def load_inline(name, cpp_sources, cuda_sources=None, functions=None, build_directory=None, verbose=False):
        asked.append({"directory": build_directory, "cpp": cpp_sources})
        return "module"

    for source in ("int f() { return 1; }", "int f() { return 2; }", "int f() { return 1; }"):
        assert cuda_build._load_inline(load_inline, "m", source, functions=["f"]) == "module"
    folders = [one["directory"] for one in asked]
    assert folders[0] == folders[2] != folders[1] and all(one.startswith(str(tmp_path)) for one in folders)


def body_compile_kernel(old: str, new: str) -> list:
    text = (
        "import torch\nsource = '''\nextern \"C\" __global__ void twice(float* x, int n) { x[n] *= 2; }\n'''\n"
        "kernel = torch.cuda._compile_kernel(source, 'twice')\n\ndef run(x):\n"
        "    kernel((1,), (32,), (x, 1))\n    return x\n"
    ).replace(old, new)
    problem = problems.expression("/nowhere/c.py", text, "run(x)", "x * 2", "x = torch.rand(4)", names=("x",))
    crash = problems.crash_of(problem)
    return [crash.kind, crash.message, crash.place.line, problems.marked(problem, crash)]


@needs_nvrtc
@pytest.mark.skipif(not hasattr(torch.cuda, "_compile_kernel"), reason="this torch has no _compile_kernel")
def test_compile_kernel(interpreted) -> None:
    kind, message, line, _ = interpreted(body_compile_kernel, "", "")
    assert kind == "cannot_interpret" and "twice compiles (" in message and line == 8
    kind, message, line, marked = interpreted(body_compile_kernel, "x[n]", "x[m]")
    assert (kind, message, line) == ("compile", 'identifier "m" is undefined', 3) and marked.startswith("m] *= 2")


def body_cupy(folder: str, text: str) -> list:
    from pathlib import Path

    Path(folder, "cupy.py").write_text(
        "class RawKernel:\n    def __init__(self, code, name): raise RuntimeError('needs a driver')\n"
        "class RawModule(RawKernel): pass\n"
    )
    import sys

    sys.path.insert(0, folder)
    problem = problems.expression("/nowhere/c.py", text, "run(x)", "x", "x = torch.rand(4)", names=("x",))
    crash = problems.crash_of(problem)
    return [crash.kind, crash.message, crash.place.line]


@needs_nvrtc
def test_cupy_s_raw_kernels(interpreted, tmp_path) -> None:
    text = (
        "import cupy as cp\nkernel = cp.RawKernel(r'''\n__global__ void twice(float* x) { x[0] *= 2; }\n''', 'twice')\n"
        "def run(x):\n    kernel((1,), (1,), (x,))\n    return x\n"
    )
    kind, message, line = interpreted(body_cupy, str(tmp_path), text)
    assert kind == "cannot_interpret" and "twice compiles" in message and line == 6
    kind, message, line = interpreted(body_cupy, str(tmp_path), text.replace("*= 2", "*= two"))
    assert (kind, message, line) == ("compile", 'identifier "two" is undefined', 3)


def body_load(folder: str, kernel: str) -> list:
    """load(sources=[...]) with an unsaved .cu, a header beside it and a C++ file with the bindings."""
    import os
    from pathlib import Path

    Path(folder, "tools.cuh").write_text("#pragma once\n__device__ inline float twice(float x) { return 2 * x; }\n")
    Path(folder, "k.cu").write_text("stale")
    Path(folder, "bind.cpp").write_text(
        '#include <torch/extension.h>\ntorch::Tensor run(torch::Tensor x);\nPYBIND11_MODULE(m, m) { m.def("run", &run); }\n'
    )
    text = (
        "import torch\nfrom torch.utils.cpp_extension import load\n"
        f"built = load(name='m', sources=[{folder!r} + '/k.cu', {folder!r} + '/bind.cpp'], verbose=False)\n"
        "def run(x):\n    return built.run(x)\n"
    )
    path = os.path.join(folder, "p.py")
    overlays = ((os.path.join(folder, "k.cu"), kernel),)
    problem = problems.expression(
        path, text, "run(x)", "x * 2", "x = torch.rand(4)", names=("x",), project_root=folder, overlays=overlays
    )
    crash = problems.crash_of(problem)
    from evalcore.gpu import importing

    files = sorted(os.path.basename(one) for one in importing.current().files)
    return [crash.kind, crash.message, os.path.basename(crash.place.path), crash.place.line, files]


@needs_nvrtc
def test_load_of_files(interpreted, tmp_path) -> None:
    kernel = '#include <torch/extension.h>\n#include "tools.cuh"\n__global__ void k(float* x) { x[0] = twice(x[0]); }\n'
    kernel += "torch::Tensor run(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); return x; }\n"
    kind, message, _, line, files = interpreted(body_load, str(tmp_path), kernel)
    assert kind == "cannot_interpret" and "k compiles" in message and line == 5 and files == ["k.cu"]
    kind, message, name, line, _ = interpreted(body_load, str(tmp_path), kernel.replace("twice(x[0])", "thrice(x[0])"))
    assert (kind, message, name, line) == ("compile", 'identifier "thrice" is undefined', "k.cu", 3)
