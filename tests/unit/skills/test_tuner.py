"""The tuner turns literals and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from skills.agents.diagnosis import CriticDiagnosis
from skills.agents.knobs import find_cuda_knobs, find_knobs
from skills.agents.tuner import propose_moves

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def moves_of(text: str, kernel: str, diagnosis: CriticDiagnosis | None = None):
    return propose_moves(text, language="triton", kernels=(kernel,), diagnosis=diagnosis)


def test_launch_literals_are_knobs() -> None:
    text = (EXAMPLES / "softmax.py").read_text()
    knobs, insertions = find_knobs(text, ("softmax_kernel",))
    assert [(k.name, k.value, text[k.start : k.end]) for k in knobs] == [("num_warps", 8, "8")]
    assert [i.name for i in insertions] == ["num_stages"]


def test_config_entries_are_knobs_with_numbers() -> None:
    knobs, insertions = find_knobs((EXAMPLES / "matmul.py").read_text(), ("matmul_kernel",))
    assert "Config BLOCK_M #1" in {k.name for k in knobs} and "Config num_warps #3" in {k.name for k in knobs}
    assert len(knobs) == 15 and insertions == []


def test_a_runtime_argument_is_no_knob() -> None:
    text = "@triton.jit\ndef k(x, n, BLOCK: tl.constexpr):\n    pass\nk[(4,)](x, 512, BLOCK=64, EVEN=1)\n"
    knobs, _ = find_knobs(text, ("k",))
    assert [(k.name, k.value) for k in knobs] == [("BLOCK", 64)]


@pytest.mark.parametrize(
    ("example", "kernel"),
    [("softmax.py", "softmax_kernel"), ("vector_add.py", "add_kernel"), ("matmul.py", "matmul_kernel"),
     ("flash_attention.py", "attention_kernel")],
)  # fmt: skip
def test_every_move_changes_only_its_place_and_still_parses(example: str, kernel: str) -> None:
    text = (EXAMPLES / example).read_text()
    moves = moves_of(text, kernel)
    assert moves
    for move in moves:
        changed = move.apply(text)
        ast.parse(changed)
        assert changed != text
        assert len(changed.splitlines()) == len(text.splitlines())
        assert changed[: move.start] == text[: move.start]
        assert changed.endswith(text[move.end :])


def test_columns_are_right_behind_emoji() -> None:
    text = "@triton.jit\ndef k(x, B: tl.constexpr):\n    pass\n\n'🚀🚀'; k[(1,)](x, B=64, BLOCK=32, num_warps=4)\n"
    knobs, _ = find_knobs(text, ("k",))
    assert {text[k.start : k.end] for k in knobs} <= {"4", "64", "32"}
    assert any(k.name == "num_warps" and text[k.start : k.end] == "4" for k in knobs)


def test_cuda_block_sizes() -> None:
    knobs = find_cuda_knobs((EXAMPLES / "reduce_rows.cu").read_text())
    assert [(k.name, k.value) for k in knobs] == [("block", 256)]
    knobs = find_cuda_knobs((EXAMPLES / "inline_gelu.py").read_text())
    assert [(k.name, k.value) for k in knobs] == [("threads", 256)]


def test_half_typed_text_has_no_moves() -> None:
    assert moves_of("@triton.jit\ndef k(x, n:", "k") == []


def test_a_move_refuses_another_text() -> None:
    text = (EXAMPLES / "softmax.py").read_text()
    move = moves_of(text, "softmax_kernel")[0]
    with pytest.raises(ValueError, match="no longer has"):
        move.apply("# a new first line\n" + text)


def test_the_diagnosis_orders_the_moves() -> None:
    text = (EXAMPLES / "flash_attention.py").read_text()
    compute = CriticDiagnosis(
        bottleneck_type=None, roofline_position=None, specific_issue="compute-bound, 40 %", recommendation="",
        estimated_headroom=None, confidence=0.7,
    )  # fmt: skip
    assert moves_of(text, "attention_kernel", compute)[0].kind == "tile"
    assert moves_of(text, "attention_kernel")[0].kind == "warps"
