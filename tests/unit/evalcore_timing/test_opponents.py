"""Which opponents count."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.facts import ErrorStats
from evalcore.gpu.opponents import OPPONENTS, _Counts, measure_opponents, out_of_tolerance, strongest, void_reason


def stats(**more: Any) -> ErrorStats:
    given = {
        "output": "out",
        "elements": 100,
        "out_of_tolerance": 0,
        "max_abs_error": 1e-6,
        "max_rel_error": 1e-6,
        "worst_index": None,
        "got": None,
        "want": None,
        "region": None,
    }
    return ErrorStats(**(given | more))


@pytest.mark.parametrize(
    ("warm", "after", "words"),
    [
        (_Counts(graphs=1), _Counts(graphs=1), None),
        (_Counts(), _Counts(), "eagerly"),
        (_Counts(graphs=2, breaks=1), _Counts(graphs=2, breaks=1, first_break="call to print"), "print"),
        (_Counts(graphs=1), _Counts(graphs=3), "recompiled 2"),
    ],
)
def test_a_quiet_way_out_of_the_compiler_voids_the_row(warm: _Counts, after: _Counts, words: str | None) -> None:
    reason = void_reason(warm, after)
    assert reason is None if words is None else reason is not None and words in reason


def test_an_opponent_is_held_to_the_tolerance() -> None:
    assert out_of_tolerance([stats()]) is None
    assert "7 of 100" in str(out_of_tolerance([stats(), stats(out_of_tolerance=7)]))
    assert "shape" in str(out_of_tolerance([stats(problem="shape [4] instead of [5]")]))
    assert "NaN" in str(out_of_tolerance([stats(nonfinite_mismatch=1)]))


def test_the_strongest_is_admissible_and_of_the_lane_as_given() -> None:
    rows = [
        {"name": "eager", "admissible": True, "runtime_us": 50.0, "lane": "as given"},
        {"name": "default", "admissible": True, "runtime_us": 30.0, "lane": "as given"},
        {"name": "max-autotune", "admissible": False, "runtime_us": 10.0, "lane": "as given"},
        {"name": "eager", "admissible": True, "runtime_us": 5.0, "lane": "tf32"},
    ]
    best = strongest(rows)
    assert best is not None and best["name"] == "default"
    assert strongest([rows[2]]) is None


def test_a_process_that_died_is_a_void_row() -> None:
    rows = measure_opponents(lambda name: {"name": name, "admissible": True} if name == "eager" else None)
    assert [row["name"] for row in rows] == list(OPPONENTS)
    assert [row["admissible"] for row in rows] == [True, False, False, False]
    assert all(row["reason"] for row in rows[1:])
