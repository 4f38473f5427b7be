"""Which opponents count."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.facts import ErrorStats
from evalcore.gpu.opponents import (
    OPPONENTS,
    OpponentOptions,
    _Counts,
    measure_opponent,
    measure_opponents,
    out_of_tolerance,
    strongest,
    void_reason,
)
from tests.unit.evalcore_timing.doubles import Diary, DiaryRecorder


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


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Any:
    """measure_opponent with dynamo as it is, its graphs run by torch itself, and a clock that plays times back."""
    torch = pytest.importorskip("torch")
    from tests.unit.evalcore_timing.test_ab import DiaryClock

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, mode, dynamic: real(f, backend="eager", dynamic=dynamic))
    x = torch.randn(8, 8)

    class Same:
        def next(self, index: int) -> list[Any]:
            return [x + index]

    def run(call: Any, compare: Any = lambda index, out: [stats()], name: str = "torch.compile default") -> Any:
        diary = Diary()
        clock = DiaryClock(diary, DiaryRecorder(diary, [9.0] + [5.0] * 50))
        return measure_opponent(name, call, Same(), clock, compare, OpponentOptions(n=20))

    return run


def test_a_clean_compile_is_admissible(measured: Any) -> None:
    row = measured(lambda inputs: (inputs[0] * 2).relu())
    assert row["admissible"], row
    assert (row["runtime_us"], row["interval_us"], row["graph_breaks"]) == (5.0, [5.0, 5.0], 0)
    assert row["flags"]["float32_matmul_precision"]


def test_eager_needs_no_compiler(measured: Any) -> None:
    assert measured(lambda inputs: inputs[0] * 2, name="eager")["admissible"]


def test_a_graph_break_voids(measured: Any) -> None:
    import torch

    def broken(inputs: list[Any]) -> Any:
        y = inputs[0] * 2
        torch._dynamo.graph_break()
        return y + 1

    row = measured(broken)
    assert not row["admissible"]
    assert "graph break" in row["reason"]


def test_recompiling_while_timed_voids(measured: Any) -> None:
    calls = {"n": 0}

    def grows(inputs: list[Any]) -> Any:
        return inputs[0] * calls["n"]

    def counted(index: int, out: Any) -> Any:
        calls["n"] = 1 if index > 5 else 0
        return [stats()]

    row = measured(grows, counted)
    assert not row["admissible"]
    assert "recompiled" in row["reason"]


def test_the_recompile_limit_is_an_error_not_eager(measured: Any) -> None:
    calls = {"n": 0.5}

    def restless(inputs: list[Any]) -> Any:
        return inputs[0] * calls["n"]

    def counted(index: int, out: Any) -> Any:
        calls["n"] = calls["n"] + 1
        return [stats()]

    row = measured(restless, counted)
    assert not row["admissible"]
    assert "limit" in row["reason"].lower() or "recompiled" in row["reason"]


def test_what_runs_eagerly_is_no_compiled_opponent(measured: Any) -> None:
    import torch

    inner = torch._dynamo.disable(lambda inputs: inputs[0] * 2)
    row = measured(lambda inputs: inner(inputs))
    assert not row["admissible"]
    assert "eagerly" in row["reason"]


def test_an_opponent_out_of_tolerance_is_struck_out_with_its_error(measured: Any) -> None:
    wrong = stats(out_of_tolerance=3, max_abs_error=0.5)
    row = measured(lambda inputs: inputs[0] * 2, lambda index, out: [wrong])
    assert not row["admissible"]
    assert row["error"] == 0.5
    assert row["runtime_us"] == 5.0


def test_a_reference_that_raises_is_a_row_with_its_reason(measured: Any) -> None:
    def raises(inputs: list[Any]) -> Any:
        raise ValueError("no such shape")

    row = measured(raises, name="eager")
    assert row["reason"] == "ValueError: no such shape"
    assert row["runtime_us"] is None
