"""Unmodified files run interpreted, both sides, and give what torch gives."""

from __future__ import annotations

from pathlib import Path

import loading_problems as problems
import loading_tutorials as tutorials
import pytest

pytest.importorskip("triton")


def body_vector_add() -> None:
    import torch

    problem = problems.expression(
        "/nowhere/01-vector-add.py", tutorials.VECTOR_ADD, "add(x, y)", "x + y",
        "x = torch.rand(size, device=DEVICE)\ny = torch.rand(size, device=DEVICE)", names=("x", "y"),
        constants={"size": 98432},
    )
    wanted, got, loaded = problems.both(problem, {"size": 3000})
    assert wanted.shape == (3000,) and torch.equal(wanted, got)
    assert [(one.name, one.launches) for one in loaded.kernel_facts()] == [("add_kernel", 1)]


def body_matmul(activation: str) -> None:
    import torch

    problem = problems.expression(
        "/nowhere/03-matmul.py", tutorials.MATMUL, f"matmul(a, b, activation={activation!r})",
        "torch.nn.functional.leaky_relu(torch.matmul(a, b), 0.01 if ACT else 1.0)",
        "ACT = " + repr(bool(activation)) + "\n"
        "a = torch.rand((M, 100), device=DEVICE, dtype=torch.float16) - 0.5\n"
        "b = torch.rand((100, 70), device=DEVICE, dtype=torch.float16) - 0.5", names=("a", "b", "ACT"),
        constants={"M": 512},
    )
    wanted, got, loaded = problems.both(problem, {"M": 65})
    assert got.shape == (65, 70)
    torch.testing.assert_close(got, wanted, atol=1e-2, rtol=1e-2)
    from evalcore.gpu import autotune

    seen = autotune.seen()["matmul_kernel"]
    assert len(seen.configs) == 2 and seen.chosen == seen.configs[0]
    with autotune.forced("matmul_kernel", seen.configs[1]):
        loaded.call([wanted.new_ones(65, 100), wanted.new_ones(100, 70), False])
        assert autotune.seen()["matmul_kernel"].chosen == seen.configs[1]


def body_layer_norm() -> None:
    import torch

    statements = (
        "x = -2.3 + 0.5 * torch.randn((M, 200), device='cuda')\nx.requires_grad_(True)\n"
        "w = torch.rand((200,), device='cuda', requires_grad=True)\nb = torch.rand((200,), device='cuda')"
    )
    problem = problems.expression(
        "/nowhere/05-layer-norm.py", tutorials.LAYER_NORM, "layer_norm(x, w.shape, w, b, 1e-5)",
        "torch.nn.functional.layer_norm(x, w.shape, w, b, 1e-5)", statements, names=("x", "w", "b"), backward=True,
        constants={"M": 1151},
    )
    from evalcore.gpu.loading import load, make_inputs

    reference = load(problem, problem.reference, sizes={"M": 9}, device="cpu", seed=0, init_inputs=None, scratch="")
    x, w, b = make_inputs(reference, problem, sizes={"M": 9}, seed=1)
    candidate = load(problem, problem.candidate, sizes={"M": 9}, device="cpu", seed=0, init_inputs=None, scratch="")
    grads = []
    for loaded in (reference, candidate):
        out = loaded.call([x, w, b])
        with loaded.context():
            out.backward(torch.arange(1800.0).reshape(9, 200) / 900)
        grads.append((out.detach(), x.grad.clone(), w.grad.clone()))
        x.grad = w.grad = None
    for wanted, got in zip(*grads, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)
    assert not [one for one in candidate.notes if one.code == "race"], candidate.notes


KERNELBENCH = '''
import torch
import torch.nn as nn

batch_size = 16
features = 64

class Model(nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.linear = nn.Linear(width, 8, bias=bias)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features, True]
'''
ANSWER = '''
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)

class ModelNew(nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.linear = nn.Linear(width, 8, bias=bias)

    def forward(self, x):
        assert x.is_cuda and self.linear.weight.is_cuda
        y = self.linear(x.cuda())
        relu_kernel[(triton.cdiv(y.numel(), 64),)](y, y.numel(), BLOCK=64)
        torch.cuda.synchronize()
        return y
'''


def body_kernelbench() -> None:
    import torch

    problem = problems.module("/nowhere/1_relu.py", KERNELBENCH, "/nowhere/1_relu_new.py", ANSWER)
    wanted, got, loaded = problems.both(problem, {"batch_size": 3})
    assert wanted.shape == (3, 8)
    torch.testing.assert_close(wanted, got)  # the same seed before both constructors gives the same weights
    assert sorted(loaded.state) == ["linear.bias", "linear.weight"]


def body_project(folder: str) -> None:
    """A package with relative imports, a helper with an unsaved buffer, a data file, and a name that stdlib has."""
    import torch

    root = Path(folder)
    package = root / "kern"
    package.mkdir()
    (package / "__init__.py").write_text("from .random import scale, LATER\nfrom . import helper\nFIRST = LATER[0]\n")
    (package / "helper.py").write_text("raise RuntimeError('the disk must not be read')\n")
    (package / "factor.txt").write_text("3")
    text = (
        "import os, torch\nfrom .helper import twice\nfrom pathlib import Path\n"
        "FACTOR = int((Path(__file__).parent / 'factor.txt').read_text())\nOPENED = open('kern/factor.txt').read()\n"
        "LATER = [1]\ndef scale(x):\n    return twice(x) * FACTOR * int(OPENED)\n"
    )
    path = str(package / "random.py")
    (package / "random.py").write_text("raise RuntimeError('stale')\n")
    overlays = ((str(package / "helper.py"), "def twice(x):\n    return x * 2\nassert False\nprint('no')\n"),)
    problem = problems.expression(
        path, text, "scale(x)", "x * 18", "x = torch.arange(4.0)", names=("x",), project_root=folder, overlays=overlays
    )
    wanted, got, loaded = problems.both(problem)
    assert torch.equal(wanted, got)
    assert [Path(path).name for path, _ in loaded.files()] == ["__init__.py", "helper.py"]
    assert not list(root.rglob("__pycache__"))


def body_fresh() -> None:
    """Nothing of an earlier text survives into the next load, not even through a helper."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.py"
        text = "import torch\nfrom lib import K\nN = 1\ndef f(x):\n    return x + N + K\n"
        got = []
        for helper in ("K = 10\n", "K = 20\n"):
            problem = problems.expression(
                path, text, "f(x)", "x", "x = torch.zeros(1)", names=("x",), project_root=folder,
                overlays=((f"{folder}/lib.py", helper),),
            )
            got.append(problems.both(problem)[1].item())
        assert got == [11.0, 21.0]


def body_retagged_devices() -> None:
    import torch

    text = (
        "import torch, torch.nn as nn\nfrom torch.utils.data import DataLoader\nimport torch._dynamo\n"
        "def f(x):\n"
        "    assert torch.cuda.is_available() and torch.cuda.current_device() == 0\n"
        "    assert x.is_cuda and x.device.type == 'cuda' and x.get_device() == 0\n"
        "    with torch.cuda.device(x.device):\n"
        "        s = torch.cuda.Stream()\n"
        "        with torch.cuda.stream(s):\n"
        "            y = torch.empty(x.shape, device=x.device, dtype=x.dtype, pin_memory=False)\n"
        "        torch.cuda.current_stream().wait_stream(s)\n"
        "    y.copy_(x.to('cuda:0', non_blocking=True))\n"
        "    z = torch.zeros_like(y).to(0).cuda()\n"
        "    g = torch.Generator(device='cuda').manual_seed(1)\n"
        "    n = torch.randn(3, device='cuda', generator=g)\n"
        "    m = nn.Linear(2, 2).cuda()\n"
        "    assert next(m.parameters()).is_cuda and n.is_cuda\n"
        "    p = torch.cuda.get_device_properties(0)\n"
        "    assert p.multi_processor_count > 0 and torch.cuda.get_device_capability() >= (8, 0)\n"
        "    h = torch.compile(lambda t: t + 1)\n"
        "    with torch.autocast('cuda', dtype=torch.bfloat16):\n"
        "        pass\n"
        "    return h(y + z)\n"
    )
    problem = problems.expression("/nowhere/d.py", text, "f(x)", "x + 1", "x = torch.rand(4, device='cuda')", names=("x",))
    wanted, got, _ = problems.both(problem)
    assert torch.equal(wanted, got) and not got.is_cuda


def test_vector_add_as_in_the_tutorial(interpreted):
    interpreted(body_vector_add)


@pytest.mark.parametrize("activation", ["", "leaky_relu"])
def test_matmul_as_in_the_tutorial(interpreted, activation):
    interpreted(body_matmul, activation)


def test_layer_norm_forward_and_backward_as_in_the_tutorial(interpreted):
    interpreted(body_layer_norm)


def test_a_kernelbench_pair(interpreted):
    interpreted(body_kernelbench)


def test_a_package_is_seen_as_its_own_python_would(interpreted, tmp_path):
    interpreted(body_project, str(tmp_path))


def test_each_load_is_fresh(interpreted):
    interpreted(body_fresh)


def test_cuda_calls_of_unmodified_code_end_on_the_cpu(interpreted):
    interpreted(body_retagged_devices)
