"""KernelBench pairs: in one file, in a sibling by name, by import, by a comment; sizes that may be varied."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.bindings.binding import Binding
from evalcore.bindings.registry import bind
from evalcore.jobs import Refusal
from evalcore.problem import InputsKind, ProgramKind

MODEL = """\
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.ln = nn.LayerNorm(features)

    def forward(self, x):
        return self.ln(x)

batch_size = 2048 * 2
features = 1000
depth = 64

def get_inputs():
    return [torch.rand(batch_size, depth, features)]

def get_init_inputs():
    return [features]
"""
ANSWER = """\
import torch
import triton
import triton.language as tl

@triton.jit
def helper(x):
    return x

@triton.jit
def layer_norm_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, helper(1.0))

@triton.jit
def unused(x_ptr):
    pass

def layer_norm(x):
    layer_norm_kernel[(1,)](x, 1, BLOCK=8)
    return x

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return layer_norm(x)
"""


def files(**texts: str) -> object:
    known = {f"/w/{name.replace('__', '.')}": text for name, text in texts.items()}
    return lambda path: known.get(path)


def first(path: str, text: str, read: object = lambda path: None) -> Binding:
    found = bind(path, text, read=read)  # type: ignore[arg-type]
    assert not isinstance(found, Refusal), found
    return found[0]


def test_one_file() -> None:
    binding = first("/w/a.py", MODEL + ANSWER)
    problem = binding.problem
    assert problem.format == "kernelbench"
    assert (problem.reference.entry, problem.candidate.entry) == ("Model", "ModelNew")
    assert problem.reference.kind is problem.candidate.kind is ProgramKind.MODULE
    assert problem.inputs.kind is InputsKind.GET_INPUTS and problem.inputs.init_function == "get_init_inputs"
    assert problem.kernels == ("layer_norm_kernel",)
    assert binding.kernels == ("helper", "layer_norm_kernel")
    assert problem.tolerance is not None and problem.tolerance.origin == "format"


def test_only_sizes_that_the_constructor_does_not_need_may_vary() -> None:
    inputs = first("/w/a.py", MODEL + ANSWER).problem.inputs
    assert inputs.constants == (("batch_size", 4096), ("depth", 64))
    assert inputs.batch_like == ("batch_size",)


@pytest.mark.parametrize(
    ("candidate", "sibling"),
    [
        ("norm_new", "norm"),
        ("norm_triton", "norm"),
        ("model_new", "model"),
        ("answer", "model"),
        ("model_new_ex_add_triton", "model_ex_add"),
        ("norm_new_cuda", "norm"),
        ("solution", "reference"),
    ],
)
def test_a_sibling_by_name(candidate: str, sibling: str) -> None:
    binding = first(f"/w/{candidate}.py", ANSWER, lambda path: MODEL if path == f"/w/{sibling}.py" else None)
    assert binding.problem.reference.path == f"/w/{sibling}.py"
    assert binding.problem.reference.text == MODEL
    assert f"{sibling}.py" in binding.evidence


def test_a_sibling_by_import_and_by_comment() -> None:
    read = lambda path: MODEL if path in ("/w/base.py", "/w/problems/40.py") else None  # noqa: E731
    assert first("/w/mine.py", "from base import Model\n" + ANSWER, read).problem.reference.path == "/w/base.py"
    named = first("/w/mine.py", "# problem: problems/40.py\n" + ANSWER, read)
    assert named.problem.reference.path == "/w/problems/40.py"
    assert "comment" in named.evidence


def test_the_same_name_in_another_folder() -> None:
    read = lambda path: MODEL if path == "/w/problems/40_norm.py" else None  # noqa: E731
    assert first("/w/answers/40_norm.py", ANSWER, read).problem.reference.path == "/w/problems/40_norm.py"


def test_a_sibling_that_is_no_problem_does_not_bind() -> None:
    found = bind("/w/norm_new.py", ANSWER, read=lambda path: "Model = get_inputs = 1" if path == "/w/norm.py" else None)
    assert isinstance(found, Refusal) and found.code == "no_reference"
    assert "no file beside it has the class Model" in found.message


def test_kernels_in_a_cuda_string() -> None:
    text = MODEL + (
        'source = r"""\n__global__ void norm_kernel(float* x) {}\n"""\n'
        'lib = load_inline(name="a", cpp_sources="", cuda_sources=source, functions=["f"])\n'
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return lib.f(x)\n"
    )
    binding = first("/w/a.py", text)
    assert binding.problem.kernels == binding.kernels == ("norm_kernel",)


def test_ten_answers_of_ours_bind_to_problems_of_the_same_name() -> None:
    folder = Path(__file__).resolve().parents[2] / "kernels" / "kernelbench_answers"
    answers = sorted(folder.glob("*_new.py"))
    assert len(answers) == 10
    for path in answers:
        binding = first(
            f"/w/{path.name}", path.read_text("utf-8"), lambda wanted: MODEL if "_new" not in wanted else None
        )
        assert binding.problem.reference.path == f"/w/{path.name.replace('_new.py', '.py')}"
        assert binding.problem.kernels
