"""The arithmetic of graph replays."""

from __future__ import annotations

import pytest

from evalcore.facts import Samples
from evalcore.gpu.graphs import MAX_CALLS, calls_for, differences
from evalcore.gpu.timing import better


def test_the_flush_is_taken_off_per_call() -> None:
    got = differences([810.0, 820.0], [500.0, 500.0], 10)
    assert got.values_us == (31.0, 32.0)
    assert got.reason is None


def test_a_replay_that_is_not_longer_is_discarded() -> None:
    got = differences([810.0, 490.0, 810.0, 810.0], [500.0] * 4, 10)
    assert got.values_us == (31.0, 31.0, 31.0)
    assert got.discarded[0][0] == pytest.approx(-1.0)


def test_positive_by_chance_is_no_reading() -> None:
    got = differences([505.0, 498.0, 503.0, 495.0], [500.0] * 4, 10)
    assert got.values_us == ()
    assert got.reason is not None and "short" in got.reason
    assert len(got.discarded) == 4


def test_nothing_left_has_a_reason() -> None:
    assert differences([490.0], [500.0], 10).reason is not None


def test_work_that_was_not_captured_is_noticed() -> None:
    got = differences([510.0, 512.0], [500.0, 500.0], 10, expected_us=31.0)
    assert got.values_us == ()
    assert got.reason is not None and "stream" in got.reason
    assert len(got.discarded) == 2


def test_a_little_less_than_the_device_figure_is_fine() -> None:
    assert differences([790.0], [500.0], 10, expected_us=31.0).values_us == (29.0,)


@pytest.mark.parametrize(("expected", "calls"), [(None, MAX_CALLS), (5.0, MAX_CALLS), (5000.0, 4), (1e6, 1)])
def test_long_calls_are_captured_fewer_times(expected: float | None, calls: int) -> None:
    assert calls_for(expected) == calls


def samples(figure: str, timer: str, *values: float) -> Samples:
    return Samples(subject="candidate", figure=figure, timer=timer, values_us=values, empty_kernel_us=2.0)


def test_a_graph_stands_in_for_events_and_says_so() -> None:
    graph = samples("graph", "graph", 31.0)
    got = better(samples("device", "events", 36.0), graph)
    assert (got.figure, got.timer, got.values_us) == ("device", "graph", (31.0,))
    recorded = samples("device", "cupti", 30.0)
    assert better(recorded, graph) is recorded
    events = samples("device", "events", 36.0)
    assert better(events, samples("graph", "graph")) is events
