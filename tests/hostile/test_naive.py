"""The attacks are attacks: a naive checker calls every one of them correct, and every honest twin too."""

from __future__ import annotations

import pytest

from tests.hostile.corpus import ATTACKS, HONEST, KINDS, TEXTS
from tests.hostile.naive import verdicts


@pytest.fixture(scope="module")
def naive() -> dict[str, bool]:
    """Naive verdicts by candidate name."""
    attacks = [(each, each.naive) for each in ATTACKS if each.naive and not each.gpu]
    honest = [(each, "early") for each in HONEST if not (each.gpu or each.slow) and each.name not in _NEEDS_MORE]
    jobs = [
        (str(each.path), str(TEXTS / f"reference_{each.reference}.py"), variant) for each, variant in attacks + honest
    ]
    found = verdicts(jobs)
    return {path.rsplit("/", 1)[-1].removesuffix(".py"): right for path, right in found.items()}


_NEEDS_MORE = (
    "honest_autotune",
    "honest_tuple",
    "honest_empty",
    "honest_nan",
    "honest_in_place",
    "honest_out_of_place",
)
"""Beyond a naive checker: several configurations interpreted, outputs that are not one tensor, NaN, inputs changed."""


@pytest.mark.parametrize("name", [each.name for each in ATTACKS if each.naive and not each.gpu])
def test_a_naive_checker_is_fooled(name: str, naive: dict[str, bool]) -> None:
    assert naive[name], f"{name} does not even fool a naive checker"


def test_a_naive_checker_accepts_honest_candidates(naive: dict[str, bool]) -> None:
    wrong = [each.name for each in HONEST if each.name in naive and not naive[each.name]]
    assert wrong == []


def test_every_public_kind_is_covered() -> None:
    assert {each.kind for each in ATTACKS if each.kind} == set(KINDS)
    assert sum(1 for each in ATTACKS if each.kind) >= 40
    assert len(HONEST) >= 18


def test_every_text_is_in_the_index() -> None:
    named = {each.path.name for each in (*ATTACKS, *HONEST)}
    lying = {path.name for path in TEXTS.glob("*.py") if not path.name.startswith("reference_")}
    assert lying == named
