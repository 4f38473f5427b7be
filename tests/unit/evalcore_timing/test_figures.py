"""The order of a timed call, what is kept, and what is discarded for which reason."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.gpu.activity import RecorderError
from evalcore.gpu.figures import Bench, Run, call_figure, device_figure
from evalcore.stats import StopRule
from tests.unit.evalcore_timing.doubles import Diary, DiaryCache, DiaryRecorder, DiaryRing, calm, hot


def bench(diary: Diary, recorder: DiaryRecorder | None = None, state: Any = calm) -> Bench:
    return Bench(cache=DiaryCache(diary), state=state, recorder=recorder)


def run(diary: Diary, n: int, **more: Any) -> Run:
    def call(inputs: list[Any]) -> Any:
        diary.note(f"call {inputs[0]}")
        return inputs[0] * 10

    return Run(call=call, ring=DiaryRing(diary), n=n, **more)


def test_device_figure_flushes_last_and_never_waits_between_flush_and_start() -> None:
    diary = Diary()
    device_figure(bench(diary, DiaryRecorder(diary, [9.0, 5.0])), run(diary, 1))
    one = ["drain", "reset", "flush", "(", "call {}", ")", "drain", "mark", "drain"]
    expected = ["open"]
    for index in (0, 1):
        expected += [f"refill {index}"] + [line.format(index) for line in one]
    assert diary.lines == [*expected, "take", "close"]


def test_call_figure_waits_for_the_flush() -> None:
    diary = Diary()
    call_figure(bench(diary), run(diary, 0))
    assert diary.lines == ["refill 0", "drain", "reset", "flush", "drain", "call 0", "drain", "mark", "drain"]


def test_first_call_is_the_warm_up_and_is_kept_as_discarded() -> None:
    diary = Diary()
    reading = device_figure(bench(diary, DiaryRecorder(diary, [90.0, 5.0, 6.0])), run(diary, 2))
    assert reading.values == [5.0, 6.0]
    assert reading.discarded == [(90.0, "warm-up")]
    assert reading.empty == [0.5] * 3


def test_outputs_come_with_the_index_of_their_inputs() -> None:
    diary, seen = Diary(), []
    recorder = DiaryRecorder(diary, [9.0, 5.0, 6.0])
    device_figure(
        bench(diary, recorder), run(diary, 2, first=7, on_output=lambda index, out: seen.append((index, out)))
    )
    assert seen == [(8, 80), (9, 90)]


def test_a_disturbed_card_discards_the_sample_with_its_reason() -> None:
    diary = Diary()
    reading = device_figure(bench(diary, DiaryRecorder(diary, [9.0, 5.0]), hot), run(diary, 1))
    assert reading.values == []
    assert reading.discarded == [(9.0, "warm-up"), (5.0, "thermal (hardware)")]


def test_a_call_that_launches_nothing_is_no_sample_of_zero() -> None:
    diary = Diary()
    reading = device_figure(bench(diary, DiaryRecorder(diary, [9.0, 0.0, 5.0])), run(diary, 2))
    assert reading.values == [5.0]
    assert (0.0, "no kernel activity was seen") in reading.discarded


def test_lost_calls_are_a_fault_and_the_recorder_is_closed() -> None:
    diary = Diary()
    with pytest.raises(RecorderError, match="2 of 3 timed calls"):
        device_figure(bench(diary, DiaryRecorder(diary, [9.0, 5.0, 6.0], lose=1)), run(diary, 2))
    assert diary.lines[-1] == "close"


def test_a_fault_of_the_call_closes_the_recorder_and_goes_through() -> None:
    diary = Diary()

    def call(inputs: list[Any]) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        device_figure(bench(diary, DiaryRecorder(diary, [])), Run(call=call, ring=DiaryRing(diary), n=3))
    assert diary.lines[-1] == "close"


def test_the_stopping_rule_is_asked_after_each_chunk() -> None:
    diary = Diary()
    recorder = DiaryRecorder(diary, [9.0] + [5.0] * 100, chunk=10)
    rule = StopRule(least=20, most=100, relative_error=0.01)
    reading = device_figure(bench(diary, recorder), run(diary, 100, stop=rule))
    assert len(reading.values) == 20
    assert recorder.takes == [11, 10]


def test_noisy_samples_run_to_the_limit() -> None:
    diary = Diary()
    recorder = DiaryRecorder(diary, [9.0] + [5.0, 9.0] * 50, chunk=30)
    rule = StopRule(least=20, most=100, relative_error=0.01)
    reading = device_figure(bench(diary, recorder), run(diary, 100, stop=rule))
    assert len(reading.values) == 100
    assert recorder.takes == [31, 30, 30, 10]


def test_call_figure_counts_the_time_of_the_call() -> None:
    import time

    diary = Diary()

    def slow(inputs: list[Any]) -> None:
        time.sleep(0.002)

    reading = call_figure(bench(diary), Run(call=slow, ring=DiaryRing(diary), n=3))
    assert len(reading.values) == 3
    assert all(2000 <= value < 50_000 for value in reading.values)
    assert all(value < 1000 for value in reading.empty)


def test_a_retired_clock_has_no_recorder() -> None:
    from tests.unit.evalcore_timing.test_ab import DiaryClock

    diary = Diary()
    clock = DiaryClock(diary, DiaryRecorder(diary, []))
    assert clock.timer == "diary"
    clock.retire()
    clock.retire()
    assert diary.lines == ["end"]
    assert clock.timer == "events"
