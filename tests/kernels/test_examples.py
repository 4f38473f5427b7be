"""Every example is bound without configuration and judged right: interpreted here, for real on a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.jobs import Mode, Reason
from evalcore.results import Status
from tests.kernels.judging import judge_file
from tests.kernels.twins import EXAMPLES
from tests.unit.evalcore_worker.real_loop import RealLoop

TRITON = ["vector_add.py", "softmax.py", "layer_norm.py", "rms_norm.py", "matmul.py", "flash_attention.py"]
CUDA = ["reduce_rows.cu", "inline_gelu.py"]


@pytest.mark.parametrize("name", TRITON)
def test_interpreted_without_a_card(name: str, cpu_loop: RealLoop) -> None:
    verdict = judge_file(cpu_loop, EXAMPLES / name, device="cpu")
    assert verdict.result.status is Status.CORRECT, verdict.result.error
    assert verdict.environment.interpreted and verdict.environment.card is None
    assert verdict.result.runtime_us is None and verdict.result.speedup is None, "a figure that nobody measured"
    assert verdict.cases and all(case.status == "right" for case in verdict.cases)
    assert "interpreted" in {flag.code for flag in verdict.flags}


@pytest.mark.parametrize("name", CUDA)
def test_cuda_is_compiled_and_then_not_judgeable(name: str, cpu_loop: RealLoop) -> None:
    verdict = judge_file(cpu_loop, EXAMPLES / name, device="cpu")
    assert verdict.result.status is Status.ERROR and verdict.reason is Reason.NOT_JUDGEABLE
    assert "registers" in (verdict.result.error or ""), verdict.result.error


@pytest.mark.gpu
@pytest.mark.parametrize("mode", [Mode.FAST, Mode.THOROUGH])
@pytest.mark.parametrize("name", [*TRITON, *CUDA])
def test_on_a_card(name: str, mode: Mode, card_loop: RealLoop) -> None:
    verdict = judge_file(card_loop, EXAMPLES / name, mode=mode, device="cuda:0")
    assert verdict.result.status is Status.CORRECT, verdict.result.error
    assert verdict.result.runtime_us is not None and verdict.result.runtime_us > 0
    assert verdict.result.ref_runtime_us is not None
    assert verdict.environment.card and verdict.environment.uuid
    assert all(sample.timer for sample in verdict.samples)


def test_the_examples_are_at_least_eight() -> None:
    found = {path.name for path in Path(EXAMPLES).iterdir() if path.suffix in (".py", ".cu")}
    assert set(TRITON + CUDA) <= found and len(TRITON + CUDA) >= 8
