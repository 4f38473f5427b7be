"""The check while typing: certain errors on their range, and never an error that a guess made."""

from __future__ import annotations

import textwrap
import time

import loading_tutorials as tutorials
import pytest

pytest.importorskip("triton")

KERNEL = textwrap.dedent('''\
    import torch
    import not_installed_here
    import triton
    import triton.language as tl
    SIZE = tl.constexpr(64)

    @triton.jit
    def helper(x, y):
        return x * y

    @triton.autotune([triton.Config({"BLOCK": 128})], key=["n"])
    @triton.jit
    def kernel(x_ptr, index_ptr, out_ptr, n, eps, BLOCK: tl.constexpr, HAS_BIAS: tl.constexpr, MODE: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        where = tl.load(index_ptr + i, mask=i < n)
        x = tl.load(x_ptr + where, mask=i < n)
        if MODE == "twice":
            y = x * 2
        elif MODE == "none":
            y = x
        if HAS_BIAS:
            x += 1
        x = helper(x, eps)
        """é🚀"""; x = tl.exp(x)
        tl.store(out_ptr + i, x, mask=i < n)

    def run(x, index):
        out = torch.empty_like(x)
        kernel[(1,)](x, index, out, x.numel(), 1e-5, HAS_BIAS=True, MODE="twice")
        return out

    raise SystemExit("never run")
''')


def body_check(text: str) -> list:
    from evalcore.gpu.frontend import check_triton

    found, facts = check_triton("/nowhere/k.py", text)
    assert facts == []
    lines = text.split("\n")
    return [[one.message, lines[one.line - 1][one.column - 1 : one.end_column - 1]] for one in found]


HONEST = [
    KERNEL,
    tutorials.VECTOR_ADD,
    tutorials.MATMUL,
    tutorials.LAYER_NORM,
    KERNEL.replace('MODE="twice"', "MODE=unknown_mode()").replace("helper(x, eps)", "helper(y, eps)"),
    KERNEL.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK * 3 // 3)"),
    KERNEL.replace("kernel[(1,)](", "other[(1,)]("),
    "import triton\nfrom triton import jit\n@jit\ndef f(a):\n    return a.load([0, 0])\n",
    "import triton\nimport triton.language as tl\n@triton.jit\ndef f(p, N: tl.constexpr, M: tl.constexpr):\n"
    "    x = tl.load(p + tl.arange(0, N))\n    tl.store(p + tl.arange(0, M), tl.reshape(x, (M,)))\n",
    "x = (\n",
    "import nothing_like_this\n",
    "",
]


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_text_has_no_errors(compiled, text):
    assert compiled(body_check, text) == []


@pytest.mark.parametrize(
    ("old", "new", "message", "marked"),
    [
        ("tl.exp(x)", "tl.expo(x)", "AttributeError: module 'triton.language' has no attribute 'expo'", "tl.expo"),
        ("tl.exp(x)", "tl.exp(xx)", "NameError: xx is not defined", "xx"),
        ("return x * y", "return x * z", "NameError: z is not defined", "z"),
        ("        y = x\n", "        y = xy\n", "NameError: xy is not defined", "xy"),
        ("helper(x, eps)", "helper(x)", "argument: 'y'", "helper(x)"),
        ("tl.exp(x)", "tl.max(x, axis=2)", "invalid axis 2. Expected -1 <= axis < 1", "tl.max(x, axis=2)"),
        ("tl.program_id(0)", "tl.program_id(0, 1, 2)", "takes fewer positional arguments", "tl.program_id(0, 1, 2)"),
        ("    where =", "    bad = [k for k in (1, 2) for j in (3, 4)]\n    where =", "supported", None),
    ],
)
def test_a_certain_error_is_on_its_range(compiled, old, new, message, marked):
    assert old in KERNEL
    found = compiled(body_check, KERNEL.replace(old, new))
    assert found, "nothing was reported"
    assert message.lower() in found[0][0].lower()
    if marked is not None:
        assert found[0][1] == marked


def body_speed(text: str) -> float:
    from evalcore.gpu import frontend

    start = time.perf_counter()
    frontend.check_triton("/nowhere/k.py", text)
    return time.perf_counter() - start


def test_a_check_is_fast_enough_while_typing(compiled):
    assert min(compiled(body_speed, tutorials.VECTOR_ADD) for _ in range(3)) < 1.0  # 0.08 s on a quiet machine


def test_kernels_that_are_not_asked_for_are_left_alone(compiled):
    assert compiled(body_only, KERNEL.replace("tl.exp(x)", "tl.exp(xx)")) == 0


def body_only(text: str) -> int:
    from evalcore.gpu.frontend import check_triton

    other = text + "\n@triton.jit\ndef fine(p):\n    tl.store(p, 1)\n"
    return len(check_triton("/nowhere/k.py", other, kernels=("fine",))[0])
