"""Tutorial style: comparisons of every kind become reference, candidate, inputs and cases, and other things do not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from evalcore.bindings.binding import Binding
from evalcore.bindings.registry import bind
from evalcore.bindings.renewal import renewed
from evalcore.jobs import Refusal
from evalcore.problem import ProgramKind

HEAD = """\
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def softmax_kernel(out_ptr, in_ptr, stride, n_cols, BLOCK: tl.constexpr):
    pass


def softmax(x, scale=1.0):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](y, x, x.stride(0), n_cols, BLOCK=1024)
    return y


def naive_softmax(x):
    return torch.exp(x) / torch.exp(x).sum(1, keepdim=True)


"""
SWEEP = """
@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["N"], x_vals=[128 * i for i in range(2, 100)], line_arg="provider",
        line_vals=["triton", "torch"], line_names=["Triton", "Torch"], ylabel="GB/s", plot_name="p", args={"M": 4096},
    ))
def benchmark(M, N, provider):
    x = torch.randn(M, N, device=DEVICE, dtype=torch.float32)
    if provider == "torch":
        ms = triton.testing.do_bench(lambda: torch.softmax(x, axis=-1))
    if provider == "triton":
        ms = triton.testing.do_bench(lambda: softmax(x))
    return ms


benchmark.run(show_plots=True)
"""


def all_of(text: str, path: str = "/w/softmax.py") -> list[Binding]:
    found = bind(path, text, read=lambda wanted: None)
    assert not isinstance(found, Refusal), found
    return found


def first(text: str) -> Binding:
    return all_of(text)[0]


def refused(text: str) -> Refusal:
    found = bind("/w/softmax.py", text, read=lambda wanted: None)
    assert isinstance(found, Refusal)
    return found


BOTH = "y = softmax(x)\nz = torch.softmax(x, 1)\n"
CLOSE = "torch.testing.assert_close(softmax(x), torch.softmax(x, 1))"
COMPARES = {
    "assert torch.allclose(softmax(x), torch.softmax(x, 1))": "torch.allclose",
    CLOSE: "torch.testing.assert_close",
    "triton.testing.assert_close(torch.softmax(x, 1), softmax(x))": "triton.testing.assert_close",
    BOTH + "print(f'{torch.max(torch.abs(y - z))}')": "abs(a - b)",
    BOTH + "print((y - z).abs().max().item())": "abs(a - b)",
    BOTH + "if torch.allclose(y, z, atol=1e-2, rtol=0):\n    print('ok')": "torch.allclose",
    BOTH + "assert (y == z).all()": "(a == b).all()",
    BOTH + "ok = torch.equal(y, z)": "torch.equal",
    BOTH + "np.testing.assert_allclose(y.cpu().numpy(), z.detach().cpu().numpy())": "np.testing.assert_allclose",
    "softmax(x)  # warm up\n" + CLOSE: "torch.testing.assert_close",
    f"for _ in range(3):\n    {CLOSE}": "torch.testing.assert_close",
    f"with torch.no_grad():\n    {CLOSE}": "torch.testing.assert_close",
    f"if __name__ == '__main__':\n    {CLOSE}": "torch.testing.assert_close",
}


@pytest.mark.parametrize("compare", COMPARES)
def test_comparisons_at_module_level(compare: str) -> None:
    binding = first(HEAD + "torch.manual_seed(0)\nx = torch.randn(1823, 781, device=DEVICE)\n" + compare + "\n")
    problem = binding.problem
    assert problem.reference.call == "torch.softmax(x, 1)"
    assert problem.candidate.call == "softmax(x)"
    assert problem.candidate.kind is ProgramKind.EXPRESSION
    assert problem.inputs.names == ("x",)
    assert problem.inputs.statements.endswith("x = torch.randn(n_rows, n_cols, device=DEVICE)")
    assert "manual_seed" not in problem.inputs.statements
    assert problem.inputs.constants == (("n_rows", 1823), ("n_cols", 781))
    assert problem.inputs.batch_like == ("n_rows",)
    assert binding.evidence.startswith(COMPARES[compare])
    assert (binding.wrapper, binding.kernels, problem.kernels) == ("softmax", ("softmax_kernel",), ("softmax_kernel",))
    assert problem.id == "softmax.py::softmax"
    assert problem.reference.text == problem.candidate.text


def test_statements_can_run_with_any_sizes() -> None:
    """The recipe is Python that leaves its names, also with the constants overridden."""
    inputs = first(
        HEAD + "x = torch.randn(1823, 781)\nassert torch.allclose(softmax(x), torch.softmax(x, 1))\n"
    ).problem.inputs

    class Torch:
        @staticmethod
        def randn(*shape: int) -> tuple[int, ...]:
            return shape

    names: dict[str, object] = {"torch": Torch}
    exec(inputs.statements.replace("n_rows = 1823", "n_rows = 5"), names)
    assert names["x"] == (5, 781)


def test_a_sweep_gives_names_and_cases_with_the_largest_first() -> None:
    problem = first(
        HEAD + "x = torch.randn(1823, 781)\nassert torch.allclose(softmax(x), torch.softmax(x, 1))\n" + SWEEP
    ).problem
    assert problem.inputs.constants == (("M", 1823), ("N", 781))
    assert problem.cases[0].name == "4096x12672"
    assert problem.cases[0].sizes == (("M", 4096), ("N", 12672))
    assert problem.cases[1].name == "1823x781" and problem.cases[1].sizes == ()
    assert problem.cases[-1].name == "4096x256"
    assert len(problem.cases) <= 6


def test_a_sweep_that_does_not_run_the_reference_gives_no_sizes() -> None:
    sweep = SWEEP.replace("torch.softmax(x, axis=-1)", "other(x)")
    problem = first(
        HEAD + "x = torch.randn(1823, 781)\nassert torch.allclose(softmax(x), torch.softmax(x, 1))\n" + sweep
    ).problem
    assert [case.name for case in problem.cases] == ["1823x781"]


def test_a_benchmark_alone_binds() -> None:
    binding = first(HEAD + SWEEP)
    assert "perf_report" in binding.evidence
    assert binding.problem.reference.call == "torch.softmax(x, axis=-1)"
    assert binding.problem.candidate.call == "softmax(x)"
    assert ("N", 12672) in binding.problem.inputs.constants


def test_the_persons_tolerance_is_kept_for_the_persons_size() -> None:
    compare = "assert torch.allclose(softmax(x), torch.softmax(x, 1), atol=1e-2, rtol=0)\n"
    tolerance = first(HEAD + "x = torch.randn(8, 8)\n" + compare).problem.tolerance
    assert tolerance is not None and (tolerance.atol, tolerance.rtol, tolerance.origin) == (1e-2, 0.0, "person")
    swept = first(HEAD + "x = torch.randn(8, 8)\n" + compare + SWEEP).problem
    assert swept.tolerance is None and any("own size" in note for note in swept.notes)


def test_a_test_function_with_parameters_called_with_numbers() -> None:
    text = (
        HEAD
        + """
def check(M, N, dtype, eps=1e-5, device=DEVICE):
    x_shape = (M, N)
    w_shape = (x_shape[-1], )
    x = -2.3 + 0.5 * torch.randn(x_shape, dtype=dtype, device=device)
    dy = .1 * torch.randn_like(x)
    x.requires_grad_(True)
    y = softmax(x, w_shape, eps)
    z = torch.nn.functional.layer_norm(x, w_shape, None, None, eps).to(dtype)
    y.backward(dy, retain_graph=True)
    dx, x.grad = x.grad.clone(), None
    z.backward(dy, retain_graph=True)
    assert torch.allclose(y, z, atol=1e-2, rtol=0)
    assert torch.allclose(dx, x.grad, atol=1e-2, rtol=0)

check(64, 128, torch.float32)
check(1151, 8192, torch.float16)
"""
    )
    problem = first(text).problem
    assert problem.candidate.call == "softmax(x, (N,), 1e-05)"
    assert problem.reference.call == "torch.nn.functional.layer_norm(x, (N,), None, None, 1e-05).to(torch.float16)"
    assert problem.inputs.names == ("x", "N")
    assert problem.inputs.constants == (("M", 1151), ("N", 8192))
    assert "x.requires_grad_(True)" in problem.inputs.statements
    assert "dy" not in problem.inputs.statements
    assert problem.backward
    assert [case.name for case in problem.cases] == ["1151x8192"]


def test_parametrize_with_modes_that_are_skipped() -> None:
    text = (
        HEAD
        + """
@pytest.mark.parametrize("Z", [1, 4])
@pytest.mark.parametrize("N, D", [(128, 64), ((2 if is_hip() else 4) * 1024, 128)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mode", ["fwd", "bwd"])
def test_op(Z, N, D, causal, mode, dtype=torch.float16):
    if mode == "fwd":
        SKIP("not now")
    q = torch.empty((Z, N, D), dtype=dtype, device=DEVICE).normal_(mean=0.0, std=0.5)
    M = torch.tril(torch.ones((N, N), device=DEVICE))
    p = torch.matmul(q, q.transpose(1, 2)) * 0.5
    if causal:
        p[:, M == 0] = float("-inf")
    p = torch.softmax(p.float(), dim=-1).to(dtype)
    want = torch.matmul(p, q).half()
    got = softmax(q, causal).half()
    if mode == "fwd":
        torch.testing.assert_close(got, want)
        return
    torch.testing.assert_close(got, want, atol=1e-2, rtol=0)
""".replace("SKIP", "pytest.skip")
    )
    binding = first(text)
    problem = binding.problem
    assert problem.inputs.constants == (("Z", 4), ("N", 4096), ("D", 128))
    assert problem.inputs.names == ("q", "N")
    assert problem.candidate.call == "softmax(q, True).half()"
    assert problem.reference.kind is ProgramKind.FUNCTION
    assert problem.reference.text.startswith(text.rstrip()), "every line of the person keeps its number"
    body = problem.reference.text[problem.reference.text.index("def odyssey_reference(q, N):") :]
    assert "p[:, M == 0] = float('-inf')" in body and "softmax(q" not in body
    assert [case.name for case in problem.cases] == ["4x4096x128", "1x4096x128", "4x128x64", "1x128x64"]
    assert binding.line == text.splitlines().index("    torch.testing.assert_close(got, want, atol=1e-2, rtol=0)") + 1


def test_a_kernel_that_is_launched_bare() -> None:
    text = (
        HEAD.replace("def softmax(", "def unused(")
        + """
x = torch.rand(98432, device=DEVICE)
want = torch.asin(x)
got = torch.empty_like(x)
n = want.numel()
grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
softmax_kernel[grid](got, x, 1, n, BLOCK=1024)
print(torch.max(torch.abs(got - want)))
"""
    )
    problem = first(text).problem
    assert problem.reference.call == "torch.asin(x)"
    assert problem.candidate.entry == "odyssey_candidate"
    body = problem.candidate.text[problem.candidate.text.index("def odyssey_candidate") :]
    assert "torch.empty_like(x)" in body and "asin" not in body and body.rstrip().endswith("return got")
    assert problem.inputs.names == ("x", "n")
    newer = renewed(problem, text.replace("98432", "5"))
    assert newer.candidate.text.endswith(body) and "rand(5" in newer.candidate.text


def test_equal_sizes_stay_tied_unless_the_wrapper_names_them() -> None:
    text = HEAD.replace("n_rows, n_cols = x.shape", "(rows,) = x.shape[:1]") + (
        "a = torch.randn(512, 512)\nb = torch.randn(512, 64)\n"
        "assert torch.allclose(softmax(a @ b), torch.softmax(torch.matmul(a, b), 1))\n"
    )
    assert dict(first(text).problem.inputs.constants) == {"size": 512, "width": 64}


def test_several_wrappers_give_several_bindings_and_one_kernel_asks_for_its_own() -> None:
    other = HEAD.split("\n\n\n")[1].replace("softmax_kernel", "exp_kernel")
    text = (
        HEAD
        + other
        + (
            "\n\n\ndef exp(x):\n    y = torch.empty_like(x)\n    exp_kernel[(1,)](y, x, 1, 1, BLOCK=8)\n"
            "    return y\n\n\n"
            "x = torch.randn(8, 8)\ntorch.testing.assert_close(softmax(x), torch.softmax(x, 1))\n"
            "torch.testing.assert_close(exp(x), torch.exp(x))\n"
        )
    )
    assert [each.wrapper for each in all_of(text)] == ["softmax", "exp"]
    found = bind("/w/a.py", text, read=lambda wanted: None, kernel="exp_kernel")
    assert isinstance(found, list) and [each.wrapper for each in found] == ["exp"]
    line = text.splitlines().index("def exp_kernel(out_ptr, in_ptr, stride, n_cols, BLOCK: tl.constexpr):") + 2
    at_cursor = bind("/w/a.py", text, read=lambda wanted: None, cursor=line)
    assert isinstance(at_cursor, list) and at_cursor[0].wrapper == "exp"


def test_autograd_functions_and_helpers_of_kernels() -> None:
    text = (
        HEAD
        + """
@triton.jit
def helper(x):
    return x

@triton.jit
def forward_kernel(x):
    helper(x)

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        forward_kernel[(1,)](x)
        return x

op = Op.apply
x = torch.randn(8, 8)
torch.testing.assert_close(op(x), torch.relu(x))
"""
    )
    binding = first(text)
    assert binding.wrapper == "op"
    assert binding.kernels == ("helper", "forward_kernel")
    assert binding.problem.kernels == ("forward_kernel",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = torch.randn(8, 8)\nassert torch.allclose(torch.exp(x), torch.exp(x))\n", ""),
        ("x = torch.randn(8, 8)\nassert torch.allclose(softmax(x), softmax(x))\n", "both sides"),
        ("xs = [torch.randn(8, 8)]\nassert torch.allclose(softmax(xs)[0], torch.softmax(xs[0], 1))\n", "no tensor"),
        ("m = torch.nn.Linear(8, 8)\nassert torch.allclose(softmax(m.weight), m(m.weight))\n", "no tensor"),
        ("def check(x):\n    assert torch.allclose(softmax(x), torch.softmax(x, 1))\n", "x is not known"),
        (
            "def make():\n    return torch.randn(8), torch.randn(8)\n\nx, want = make()\n"
            "assert torch.allclose(softmax(x), want)\n",
            "made together",
        ),
    ],
)
def test_what_cannot_be_used_says_why(text: str, why: str) -> None:
    refusal = refused(HEAD + text)
    assert refusal.code == "no_reference" and "softmax_kernel" in refusal.message
    assert why in refusal.message
    assert "assert_close" in refusal.remedy and "# odyssey:" in refusal.remedy


def test_no_kernel_and_half_typed_text() -> None:
    assert refused("x = 1\n").code == "no_kernel"
    refusal = refused(HEAD + "def f(:\n")
    assert refusal.code == "syntax_error" and "line" in refusal.message


def test_bom_and_crlf() -> None:
    text = HEAD + "x = torch.randn(1823, 781)\nassert torch.allclose(softmax(x), torch.softmax(x, 1))\n"
    binding = first("\ufeff" + text.replace("\n", "\r\n"))
    assert binding.problem.candidate.call == "softmax(x)"


def test_cuda_text_in_the_file_compared_with_torch() -> None:
    text = '''\
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
// __global__ void commented(float* x) {}
template <typename T>
__global__ void __launch_bounds__(256) scale_kernel(const T* x, T* out, int n) {}
torch::Tensor scale(torch::Tensor x) { return x; }
"""
module = load_inline(name="m", cpp_sources="", cuda_sources=source, functions=["scale"])

x = torch.randn(1000, 64, device="cuda")
torch.testing.assert_close(module.scale(x), x * 2)
'''
    binding = first(text)
    assert binding.problem.format == "cuda_inline"
    assert binding.kernels == binding.problem.kernels == ("scale_kernel",)
    assert binding.problem.candidate.call == "module.scale(x)"
    assert binding.problem.reference.call == "x * 2"


@pytest.mark.parametrize("example", ["vector_add", "softmax", "matmul", "flash_attention"])
def test_our_examples_bind(example: str) -> None:
    path = Path(__file__).resolve().parents[3] / "examples" / f"{example}.py"
    binding = all_of(path.read_text("utf-8"), str(path))[0]
    assert binding.problem.format == "tutorial" and binding.problem.candidate.kind is ProgramKind.EXPRESSION


TUTORIALS = os.environ.get("ODYSSEY_TUTORIALS", "")


@pytest.mark.skipif(not TUTORIALS, reason="ODYSSEY_TUTORIALS names no folder with Triton's tutorials")
@pytest.mark.parametrize(
    ("name", "wrapper", "kernel"),
    [
        ("01-vector-add.py", "add", "add_kernel"),
        ("02-fused-softmax.py", "softmax", "softmax_kernel"),
        ("03-matrix-multiplication.py", "matmul", "matmul_kernel"),
        ("05-layer-norm.py", "layer_norm", "_layer_norm_fwd_fused"),
        ("06-fused-attention.py", "attention", "_attn_fwd"),
    ],
)
def test_unmodified_tutorials_bind(name: str, wrapper: str, kernel: str) -> None:
    path = Path(TUTORIALS) / name
    binding = all_of(path.read_text("utf-8"), str(path))[0]
    assert binding.wrapper == wrapper
    assert kernel in binding.problem.kernels


def test_long_scripts_are_bound_in_bounded_time() -> None:
    """Forty thousand statements before the comparison: nothing looks back through all of them for each name."""
    script = "".join(f"v{index} = v{max(index - 1, 0)} + x.sum()\n" for index in range(20_000))
    text = (
        HEAD
        + "x = torch.randn(1823, 781)\nv0 = 1\n"
        + script
        + "assert torch.allclose(softmax(x), torch.softmax(x, 1))\n"
    )
    begin = time.process_time()
    assert first(text).problem.candidate.call == "softmax(x)"
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("text", ["", "\x00", "(" * 10_000, "x = " + "-" * 50_000 + "1", "\ufeff\r", "a" * 1_000_000])
def test_texts_that_are_no_programs_are_refused(text: str) -> None:
    assert refused(text).code in ("no_kernel", "syntax_error", "unreadable")


def test_kernels_inside_functions_and_native_modules_inside_classes() -> None:
    text = HEAD.replace(
        "def softmax(x, scale=1.0):\n", "def softmax(x, scale=1.0):\n    @triton.jit\n    def inner(y): pass\n"
    )
    binding = first(text + "x = torch.randn(8, 8)\ntorch.testing.assert_close(softmax(x), torch.softmax(x, 1))\n")
    assert set(binding.kernels) == {"softmax_kernel", "inner"}


def test_helper_that_compares_two_arguments() -> None:
    text = HEAD + (
        "def verify(got, want, label):\n    print(label, torch.allclose(got, want))\n\n"
        "x = torch.randn(64, 32)\nverify(softmax(x), torch.softmax(x, 1), 'softmax')\n"
    )
    problem = first(text).problem
    assert (problem.candidate.call, problem.reference.call) == ("softmax(x)", "torch.softmax(x, 1)")
    assert problem.inputs.constants == (("n_rows", 64), ("n_cols", 32))


def test_data_under_another_name_or_turned_is_not_taken_for_a_function() -> None:
    text = HEAD + (
        "x = torch.randn(64, 32)\nx = x.T\ny = x\nshown = y.shape\n"
        "assert torch.allclose(softmax(y), torch.softmax(y, 1))\n"
    )
    problem = first(text).problem
    assert problem.inputs.statements.splitlines()[-3:] == ["x = torch.randn(size, width)", "x = x.T", "y = x"]
    assert problem.inputs.names == ("y",)


def test_settings_of_imported_modules_are_no_part_of_the_recipe() -> None:
    text = HEAD + (
        "torch.backends.cuda.matmul.allow_tf32 = True\nos.environ['A'] = '1'\ndtype = torch.float16\n"
        "x = torch.randn(64, 32, dtype=dtype)\nassert torch.allclose(softmax(x), torch.softmax(x, 1).to(dtype))\n"
    )
    problem = first(text).problem
    assert problem.inputs.names == ("x",)
    assert "backends" not in problem.inputs.statements
    assert problem.reference.call == "torch.softmax(x, 1).to(torch.float16)"
