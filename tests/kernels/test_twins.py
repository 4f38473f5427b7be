"""Broken twins get their status, their reason and their place; the loop survives each and judges the next."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalcore.bindings.registry import bind
from evalcore.jobs import Measurement
from tests.kernels.judging import IMPATIENT, PATIENT, judge_file, place_of, read
from tests.kernels.twins import EXAMPLES, TWINS, Twin
from tests.unit.evalcore_worker.real_loop import RealLoop

SMALL = {"layer_norm.py": ("batch_size = 4096", "batch_size = 21")}
"""A KernelBench pair lists one size; on the CPU its twins are judged at one that the interpreter runs whole."""


def judged(loop: RealLoop, twin: Twin, folder: Path, *, device: str) -> tuple[Measurement, str]:
    """The verdict on a twin, and its text."""
    for sibling in EXAMPLES.glob("*_reference.py"):
        shutil.copy(sibling, folder)
    text = twin.text()
    if device == "cpu" and twin.example in SMALL:
        text = text.replace(*SMALL[twin.example], 1)
    path = folder / twin.example
    path.write_text(text)
    limits = IMPATIENT if twin.kind == "endless-loop" else PATIENT
    return judge_file(loop, path, limits=limits, device=device), text


def check_place(twin: Twin, verdict: Measurement, text: str, folder: Path) -> None:
    """The first error stands where the twin says: at a piece of text, or at the kernel's name."""
    if twin.at:
        wanted = place_of(text, twin.at)
    else:
        problem = bind(str(folder / twin.example), text, read=read)[0].problem
        kernel = problem.kernels[0]
        line, column = place_of(text, f"{kernel}(")
        wanted = (line, column)
    errors = [d for d in verdict.diagnostics if d.severity == "error"]
    assert errors, f"no diagnostic for {verdict.result}"
    assert (errors[0].line, errors[0].column) == wanted, errors[0]
    assert Path(errors[0].path).name == twin.example


@pytest.mark.parametrize("twin", [t for t in TWINS if not t.needs_gpu], ids=lambda t: t.id)
def test_twin_on_the_cpu(twin: Twin, cpu_loop: RealLoop, folder: Path) -> None:
    verdict, text = judged(cpu_loop, twin, folder, device="cpu")
    assert verdict.result.status.value == twin.status, verdict.result.error
    assert (verdict.reason.value if verdict.reason else None) == twin.reason
    assert twin.words in (verdict.result.error or ""), verdict.result.error
    if verdict.diagnostics or twin.at:
        check_place(twin, verdict, text, folder)


@pytest.mark.gpu
@pytest.mark.parametrize("twin", TWINS, ids=lambda t: t.id)
def test_twin_on_a_card(twin: Twin, card_loop: RealLoop, folder: Path) -> None:
    verdict, text = judged(card_loop, twin, folder, device="cuda:0")
    assert verdict.result.status.value in (twin.gpu_statuses or (twin.status,)), verdict.result.error
    if verdict.result.status.value == twin.status and twin.kind in ("compile-error",):
        check_place(twin, verdict, text, folder)
