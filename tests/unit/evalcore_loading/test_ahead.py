"""A launch that was interpreted is compiled for a card that is not here: what Triton refuses is certain then."""

from __future__ import annotations

import json

import loading_problems as problems
import loading_tutorials as tutorials
import pytest

pytest.importorskip("triton")

LOOP = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, out_ptr, n, scale, eps, BLOCK: tl.constexpr, DTYPE: tl.constexpr, mode: tl.constexpr = "sum"):
    acc = tl.zeros((BLOCK,), dtype=DTYPE)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) * scale + eps)


def run(x):
    out = torch.empty((), device=x.device)
    total[(1,)](x, out, x.numel(), 1, 0.5, BLOCK=256, DTYPE=tl.float32, num_warps=8)
    return out
'''


def body_signature() -> list:
    problem = problems.expression("/nowhere/l.py", LOOP, "run(x)", "x.sum() + 0.5", "x = torch.rand(1000)", names=("x",))
    wanted, got, loaded = problems.both(problem)
    (facts,) = loaded.kernel_facts()
    return [facts.name, facts.launches, facts.signature, facts.config]


def body_compile(text: str, name: str, signature: str, target: str) -> list:
    from evalcore.gpu.ahead import compile_captured

    diagnostics, facts = compile_captured("/nowhere/l.py", text, (), [(name, signature)], target)
    lines = text.split("\n")
    found = [[one.message, lines[one.line - 1][one.column - 1 : one.end_column - 1]] for one in diagnostics]
    told = [[one.name, one.registers, one.spill_bytes, one.shared_bytes, one.warps, one.origin] for one in facts]
    return [found, told]


def test_types_constants_and_options_of_a_launch(interpreted):
    name, launches, signature, config = interpreted(body_signature)
    assert (name, launches) == ("total", 1)
    assert json.loads(signature) == {
        "types": {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "eps": "fp32"},
        "constants": {"scale": [1], "BLOCK": [256], "DTYPE": {"dtype": "fp32"}, "mode": ["sum"]},
        "divisible": ["x_ptr", "out_ptr"], "options": {"num_warps": 8},
    }
    assert "BLOCK=256" in config and "mode=sum" in config


def test_resources_for_a_named_card(interpreted, compiled):
    _, _, signature, _ = interpreted(body_signature)
    found, ((name, registers, spills, shared, warps, origin),) = compiled(body_compile, LOOP, "total", signature, "sm_90")
    assert found == [] and name == "total" and registers > 8 and spills == 0 and shared > 0 and warps == 8
    assert origin == "compiled for sm_90"


def test_what_only_the_compiler_refuses(interpreted, compiled):
    _, _, signature, _ = interpreted(body_signature)
    text = LOOP.replace("acc = tl.zeros((BLOCK,), dtype=DTYPE)", "acc = 0")
    (((message, marked),), facts) = compiled(body_compile, text, "total", signature, "sm_90")
    assert "acc" in message and facts == []
    assert marked


def test_a_kernel_that_cannot_be_launched_there(interpreted, compiled):
    signature = json.dumps(
        {
            "types": dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16")
            | dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32"),
            "constants": {"stride_ak": [1], "stride_bn": [1], "stride_cn": [1], "BLOCK_SIZE_M": [128],
                          "BLOCK_SIZE_N": [256], "BLOCK_SIZE_K": [64], "GROUP_SIZE_M": [8], "ACTIVATION": [""]},
            "divisible": ["a_ptr", "b_ptr", "c_ptr", "M", "N", "K", "stride_am", "stride_bk", "stride_cm"],
            "options": {"num_warps": 8, "num_stages": 6},
        }
    )
    found, _ = compiled(body_compile, tutorials.MATMUL, "matmul_kernel", signature, "sm_90")
    ((message, marked),) = found
    assert "out of shared memory" in message and "sm_90 has 232448 bytes" in message
    assert marked == "matmul_kernel"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"types": 1, "constants": {}, "divisible": [], "options": {}}', "x"])
def test_a_broken_signature_gives_nothing(compiled, text):
    assert compiled(body_compile, LOOP, "total", text, "sm_90") == [[], []]
