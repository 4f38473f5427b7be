"""Public files, unmodified and without a line of configuration: Triton's tutorials and KernelBench's problems.

They are fetched for the run and never committed. ODYSSEY_TUTORIALS names a folder with Triton's python/tutorials,
ODYSSEY_KERNELBENCH a clone's KernelBench/level1; without them the tests are skipped, by name.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evalcore.results import Status
from tests.conftest import has_card
from tests.kernels.judging import judge_file
from tests.unit.evalcore_worker.real_loop import RealLoop

TUTORIALS = os.environ.get("ODYSSEY_TUTORIALS")
KERNELBENCH = os.environ.get("ODYSSEY_KERNELBENCH")
ANSWERS = sorted((Path(__file__).parent / "kernelbench_answers").glob("*_new.py"))
NAMES = [
    "01-vector-add.py", "02-fused-softmax.py", "03-matrix-multiplication.py", "05-layer-norm.py",
    "06-fused-attention.py",
]  # fmt: skip


@pytest.fixture()
def loop(request: pytest.FixtureRequest) -> RealLoop:
    """The card's loop where there is one."""
    return request.getfixturevalue("card_loop" if has_card() else "cpu_loop")


@pytest.mark.skipif(TUTORIALS is None, reason="ODYSSEY_TUTORIALS names no folder")
@pytest.mark.parametrize("name", NAMES)
def test_tutorial_as_it_stands(name: str, loop: RealLoop, folder: Path) -> None:
    path = Path(shutil.copy(Path(str(TUTORIALS)) / name, folder))
    verdict = judge_file(loop, path)
    assert verdict.result.status is Status.CORRECT, verdict.result.error
    assert (verdict.result.runtime_us is not None) == has_card()


@pytest.mark.skipif(KERNELBENCH is None, reason="ODYSSEY_KERNELBENCH names no folder")
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: path.stem.removesuffix("_new"))
def test_kernelbench_problem_with_its_answer(answer: Path, loop: RealLoop, folder: Path) -> None:
    problem = answer.stem.removesuffix("_new") + ".py"
    shutil.copy(Path(str(KERNELBENCH)) / problem, folder)
    verdict = judge_file(loop, Path(shutil.copy(answer, folder)))
    assert verdict.result.status is Status.CORRECT, verdict.result.error
    assert verdict.format == "kernelbench"
    assert (verdict.result.runtime_us is not None) == has_card()


def test_there_are_ten_answers() -> None:
    assert len(ANSWERS) == 10
