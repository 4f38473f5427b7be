"""Seeded faults: every one that is not equivalent is caught; a one-input check misses a quarter of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.judging import Worker, worker
from tests.mutants.judged import judge, one_input_check, problem
from tests.mutants.table import KERNELS, MUTANTS, Mutant, hash_of

PER_RUN = 12
"""Mutants that a short run judges, another dozen for every commit."""
ON_CPU = [mutant for mutant in MUTANTS if not mutant.cuda]
FAULTS = [mutant for mutant in MUTANTS if not mutant.equivalent]


def rotated() -> list[Mutant]:
    """The sample of this commit; the whole list comes round every few commits."""
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    turn = int(told.stdout or 0) if told.returncode == 0 else 0
    order = sorted(ON_CPU, key=lambda mutant: hash_of(mutant.id))
    start = turn * PER_RUN % len(order)
    return (order + order)[start : start + PER_RUN]


@pytest.fixture(scope="module")
def interpreting() -> Iterator[Worker]:
    """A worker that interprets."""
    with worker("interpret") as made:
        yield made


@pytest.fixture(scope="module")
def on_card() -> Iterator[Worker]:
    """A worker with a card."""
    with worker("compile") as made:
        yield made


def check(found_correct: bool, mutant: Mutant, told: str) -> None:
    """A fault must not be correct; an equivalent must be."""
    assert found_correct == bool(mutant.equivalent), told


def test_the_table_is_what_it_says() -> None:
    assert len(FAULTS) >= 80 and len(KERNELS) >= 12
    assert len(MUTANTS) - len(FAULTS) <= 0.05 * len(MUTANTS)
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(mutant.cuda for mutant in MUTANTS) >= 15
    for mutant in MUTANTS:
        assert mutant.text() != mutant.path.read_text("utf-8")


@pytest.mark.parametrize("mutant", rotated(), ids=lambda mutant: mutant.id)
def test_rotating_sample(mutant: Mutant, interpreting: Worker) -> None:
    found = judge(interpreting, mutant)
    check(found.result.correct, mutant, f"{mutant.old!r} -> {mutant.new!r}: {found.result} {found.flags}")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if not kernel.startswith("cuda_")])
def test_the_right_kernels_are_right(kernel: str, interpreting: Worker) -> None:
    found = interpreting.judge(problem(kernel))
    assert found.result.correct, found.result.error


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ON_CPU, ids=lambda mutant: mutant.id)
def test_every_mutant(mutant: Mutant, interpreting: Worker) -> None:
    found = judge(interpreting, mutant)
    check(found.result.correct, mutant, f"{mutant.old!r} -> {mutant.new!r}: {found.result} {found.flags}")


@pytest.mark.slow
def test_a_one_input_check_misses_a_quarter() -> None:
    faults = [mutant for mutant in ON_CPU if not mutant.equivalent]
    missed = sum(one_input_check(faults).values())
    print(f"a one-input check catches {len(faults) - missed} of {len(faults)}")
    assert missed >= len(faults) / 4


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_right_kernels_are_right_on_a_card(kernel: str, on_card: Worker) -> None:
    found = on_card.judge(problem(kernel))
    assert found.result.correct, found.result.error


@pytest.mark.gpu
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_every_mutant_on_a_card(mutant: Mutant, on_card: Worker) -> None:
    found = judge(on_card, mutant)
    check(found.result.correct, mutant, f"{mutant.old!r} -> {mutant.new!r}: {found.result} {found.flags}")
