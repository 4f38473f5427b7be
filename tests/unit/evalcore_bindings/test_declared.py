"""Declared problems: comments in Python and CUDA, odyssey.toml, and the starter reference that binds itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.bindings.binding import Binding
from evalcore.bindings.comment import declarations, sizes, split_keys, tolerance
from evalcore.bindings.registry import bind
from evalcore.bindings.root import project_root
from evalcore.bindings.starter import starter_for_kernel, starter_reference
from evalcore.jobs import Refusal
from evalcore.problem import InputsKind, ProgramKind

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
KERNEL = """\
import torch
import triton
import triton.language as tl

rows = 64
cols = 1000

@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass

def scale(x, factor=2.0):
    out = torch.empty_like(x)
    scale_kernel[(1,)](x, out, x.numel(), BLOCK=1024)
    return out

def scale_torch(x):
    return x * 2.0

def make_inputs():
    return [torch.randn(rows, cols, device="cuda")]

"""
CUDA = """\
// odyssey: reference=torch.relu(x) inputs=x=torch.randn(rows, 1000, device="cuda") sizes=rows:64; rows:128
// odyssey: grid=((x.numel() + 255) // 256,) block=(256,) args=(x, out, x.numel()) outputs=out shared=1024
__global__ void relu_kernel(const float* x, float* out, int n) {}
"""


def read_disk(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return None


def first(text: str, path: str = "/w/a.py", **files: str) -> Binding:
    found = bind(
        path, text, read=lambda wanted: files.get(wanted.removeprefix("/w/").replace(".", "_").replace("/", "__"))
    )
    assert not isinstance(found, Refusal), found
    return found[0]


def refused(text: str, path: str = "/w/a.py") -> Refusal:
    found = bind(path, text, read=lambda wanted: None)
    assert isinstance(found, Refusal), found
    return found


def test_functions_by_name() -> None:
    binding = first(
        KERNEL + "# odyssey: reference=scale_torch inputs=make_inputs candidate=scale tolerance=1e-3,1e-2\n"
    )
    problem = binding.problem
    assert problem.format == "comment" and problem.id == "a.py::scale"
    assert (problem.reference.entry, problem.candidate.entry) == ("scale_torch", "scale")
    assert problem.inputs.kind is InputsKind.GET_INPUTS and problem.inputs.function == "make_inputs"
    assert problem.inputs.constants == (("rows", 64), ("cols", 1000))
    assert problem.tolerance is not None
    assert (problem.tolerance.atol, problem.tolerance.rtol, problem.tolerance.origin) == (1e-3, 1e-2, "person")
    assert binding.kernels == ("scale_kernel",) and "line" in binding.evidence


def test_expressions_over_named_inputs() -> None:
    comment = '# odyssey: reference=torch.mul(x, 2) inputs=x=torch.randn(M, 256, device="cuda"), y=torch.ones(3) '
    problem = first(KERNEL + comment + "sizes=M:1024; M=64 candidate=scale(x, factor=3)\n").problem
    assert problem.reference.call == "torch.mul(x, 2)" and problem.candidate.call == "scale(x, factor=3)"
    assert problem.inputs.names == ("x", "y")
    assert problem.inputs.statements.splitlines()[-2:] == [
        "x = torch.randn(M, size, device='cuda')",
        "y = torch.ones(width)",
    ]
    assert dict(problem.inputs.constants)["M"] == 1024
    assert [dict(case.sizes).get("M", 1024) for case in problem.cases] == [1024, 64]


def test_the_wrapper_below_is_found_and_torch_names_become_calls() -> None:
    problem = first("# odyssey: reference=torch.relu inputs=torch.randn(8, 8)\n" + KERNEL).problem
    assert problem.candidate.entry == "scale"
    assert problem.reference.call == "torch.relu(x)", "the input takes the wrapper's parameter name or x0"


def test_a_comment_wins_over_a_comparison() -> None:
    text = KERNEL + "# odyssey: reference=scale_torch inputs=make_inputs\n"
    text += "x = torch.randn(3)\nassert torch.allclose(scale(x), torch.mul(x, 2))\n"
    found = bind("/w/a.py", text, read=lambda wanted: None)
    assert isinstance(found, list) and [each.problem.format for each in found] == ["comment", "tutorial"]


def test_a_reference_in_another_file() -> None:
    other = "import torch\nrows = 16\ndef ref(x):\n    return x\ndef make():\n    return dict(x=torch.randn(rows))\n"
    binding = first(KERNEL + "# odyssey: reference=lib/ref.py::ref inputs=lib/ref.py:make\n", lib__ref_py=other)
    problem = binding.problem
    assert problem.reference.path == "/w/lib/ref.py" and problem.reference.text == other
    assert problem.inputs.statements == 'odyssey_inputs = make()\nx = odyssey_inputs["x"]'
    assert problem.inputs.constants == (("rows", 16),)


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("inputs=make_inputs", "names no reference"),
        ("reference=scale_torch", "names no inputs"),
        ("reference=scale_torch inputs=nothing_there", "no function there"),
        ("reference=scale_torch inputs=torch.randn(", "not Python"),
        ("reference=other.py:f inputs=make_inputs", "not there"),
        ("reference=a.py:f inputs=b.py:g", "two files"),
        ("reference=scale_torch inputs=make_inputs candidate=scalee", "candidate=scalee"),
    ],
)
def test_a_comment_that_does_not_fit_says_which_word(comment: str, words: str) -> None:
    refusal = refused(KERNEL + f"# odyssey: {comment}\n")
    assert refusal.code == "bad_declaration" and words in refusal.message and "line" in refusal.message
    assert refusal.remedy


def test_cuda_with_grid_and_block() -> None:
    binding = first(CUDA, "/w/k.cu")
    problem = binding.problem
    launch = problem.candidate.launch
    assert problem.candidate.kind is ProgramKind.CUDA_KERNEL and launch is not None
    assert (launch.grid, launch.block, launch.shared_bytes) == ("((x.numel() + 255) // 256,)", "(256,)", "1024")
    assert launch.args == ("x", "out", "x.numel()") and launch.outputs == ("out",)
    assert problem.reference.call == "torch.relu(x)" and "import torch" in problem.reference.text
    assert dict(problem.inputs.constants)["rows"] == 64
    assert [dict(case.sizes).get("rows", 64) for case in problem.cases] == [128, 64]
    assert binding.kernels == ("relu_kernel",)


def test_cuda_that_does_not_say_how_to_launch() -> None:
    refusal = refused(
        "// odyssey: reference=torch.relu(x) inputs=x=torch.randn(8)\n__global__ void k(float* x) {}\n", "/w/k.cu"
    )
    assert "grid, block, args, outputs" in refusal.message
    assert refused("__global__ void k(float* x) {}\n", "/w/k.cu").code == "no_reference"


@pytest.mark.parametrize(("name", "kernel"), [("reduce_rows.cu", "row_sum_kernel"), ("rms_norm.py", "rms_norm_kernel")])
def test_our_examples_bind(name: str, kernel: str) -> None:
    path = EXAMPLES / name
    found = bind(str(path), path.read_text("utf-8"), read=read_disk)
    assert isinstance(found, list) and found[0].problem.kernels == (kernel,) and found[0].problem.format == "comment"


TOML = """
[[kernel]]
file = "src/a.py"
candidate = "scale"
reference = "torch.mul(x, 2)"
inputs = ["x = torch.randn(M, N)"]
sizes = [{ M = 64, N = 33 }, { M = 4096, N = 1000 }]
tolerance = { atol = 1e-5, rtol = 1e-4 }

[[kernel]]
file = "src/k.cu"
reference = "torch.relu(x)"
inputs = "x=torch.randn(1024)"
grid = "(4,)"
block = "(256,)"
args = ["x", "out", "x.numel()"]
outputs = ["out"]
"""


def test_odyssey_toml() -> None:
    problem = first(KERNEL, "/w/src/a.py", odyssey_toml=TOML).problem
    assert problem.format == "toml" and problem.candidate.entry == "scale"
    assert problem.reference.call == "torch.mul(x, 2)"
    assert problem.cases[0].name == "4096x1000"
    assert problem.inputs.constants == (("M", 64), ("N", 33))
    assert problem.project_root == "/w"
    launch = first("__global__ void k(float* x) {}\n", "/w/src/k.cu", odyssey_toml=TOML).problem.candidate.launch
    assert launch is not None and launch.args == ("x", "out", "x.numel()")


def test_odyssey_toml_that_is_broken_says_so() -> None:
    found = bind("/w/a.py", KERNEL, read=lambda path: "[[kernel" if path == "/w/odyssey.toml" else None)
    assert isinstance(found, Refusal) and "not TOML" in found.message


def test_keys_end_where_the_next_one_begins_outside_brackets() -> None:
    words = split_keys("reference=f(x, args=3) inputs=x=torch.full((2,), 1.0), y='tolerance=1' tolerance=1e-3")
    assert words == {
        "reference": "f(x, args=3)",
        "inputs": "x=torch.full((2,), 1.0), y='tolerance=1'",
        "tolerance": "1e-3",
    }


def test_numbers_of_tolerances_and_sizes() -> None:
    assert tolerance("1e-3") == (1e-3, 1e-3) and tolerance("atol:1e-3, rtol=0") == (1e-3, 0.0)
    assert tolerance("loose") is None and tolerance("") is None and tolerance("-1") is None
    assert sizes("M:1024,N=7|M:2_048") == [{"M": 1024, "N": 7}, {"M": 2048}]
    assert [
        each.line for each in declarations("#odyssey: reference=a\nx\n  # odyssey: reference=b\n# odyssey: inputs=c\n")
    ] == [1, 3]


def test_a_starter_reference_binds_itself() -> None:
    text = KERNEL.split("def scale_torch")[0]
    assert refused(text).code == "no_reference"
    added = starter_for_kernel(text, "scale_kernel")
    assert added is not None and "def scale_reference(x):" in added
    binding = first(text + added)
    assert binding.wrapper == "scale" and binding.problem.reference.entry == "scale_reference"
    compile(text + added, "a.py", "exec")


def test_a_starter_guesses_by_name_and_says_where_it_cannot() -> None:
    text = "import torch\ndef my_softmax(x):\n    M, N = x.shape\n    return x\n"
    text += "def odd(a: torch.Tensor, k: int):\n    return a\n"
    softmax = starter_reference(text, "my_softmax")
    assert softmax is not None and "torch.softmax(x, dim=-1)" in softmax and "torch.randn(M, N" in softmax
    odd = starter_reference(text, "odd")
    assert odd is not None and "write here what odd should compute" in odd and "(a, k)" in odd
    assert starter_reference(text, "missing") is None and starter_reference("def f(:\n", "f") is None


def test_a_starter_for_a_cuda_file_binds_itself() -> None:
    text = "__global__ void relu_kernel(const float* __restrict__ x, float* out, int n) {}\n"
    refusal = refused(text, "/w/k.cu")
    assert refusal.code == "no_reference" and "// odyssey:" in refusal.remedy
    added = starter_for_kernel(text, "relu_kernel")
    assert added is not None
    problem = first(text + added, "/w/k.cu").problem
    assert problem.reference.call == "torch.relu(x)"
    assert problem.candidate.launch is not None
    assert problem.candidate.launch.args == ("x", "out", "x.numel()") and problem.candidate.launch.outputs == ("out",)
    assert starter_for_kernel("__global__ void k(int n) {}", "k") is None


def test_project_roots() -> None:
    def root(path: str, *known: str) -> str:
        return project_root(path, lambda wanted: "" if wanted in known else None)

    assert (
        root("/w/src/pkg/ops/a.py", "/w/src/pkg/__init__.py", "/w/src/pkg/ops/__init__.py", "/w/pyproject.toml")
        == "/w/src"
    )
    assert root("/w/kernels/a.py", "/w/pyproject.toml") == "/w"
    assert root("/w/kernels/a.py", "/w/.git/HEAD") == "/w"
    assert root("/w/kernels/a.py") == "/w/kernels"
