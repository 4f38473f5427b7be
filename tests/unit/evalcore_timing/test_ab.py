"""Mirrored order, same inputs on both sides, pairs kept or dropped together."""

from __future__ import annotations

from typing import Any

from evalcore.facts import Samples
from evalcore.gpu.ab import Sides, interleave, order
from evalcore.gpu.figures import Bench, Reading
from evalcore.gpu.timing import Clock, Labels
from tests.unit.evalcore_timing.doubles import Diary, DiaryCache, DiaryRecorder, DiaryRing, calm


class DiaryClock(Clock):
    """A clock whose parts are stand-ins."""

    def __init__(self, diary: Diary, recorder: DiaryRecorder, state: Any = calm) -> None:
        super().__init__("cuda:0")
        self._bench = Bench(cache=DiaryCache(diary), state=state, recorder=recorder)

    def ramp(self, seconds: float = 0.0) -> None:
        """Nothing to keep busy."""


def sides(diary: Diary) -> Sides:
    return Sides(
        a=lambda inputs: diary.note(f"A{inputs[0]}"),
        b=lambda inputs: diary.note(f"B{inputs[0]}"),
        ring=DiaryRing(diary),
    )


def test_order_is_mirrored() -> None:
    assert "".join(side for _pair, side in order(4)) == "abbaabba"
    assert [pair for pair, _side in order(2)] == [0, 0, 1, 1]
    assert order(2, 3) == [(3, "b"), (3, "a"), (4, "a"), (4, "b")]


def test_both_sides_of_a_pair_get_the_same_inputs_behind_their_own_flush() -> None:
    diary = Diary()
    times = [9.0] * 4 + [10.0, 20.0, 21.0, 11.0, 12.0, 22.0]
    of_a, of_b = interleave(DiaryClock(diary, DiaryRecorder(diary, times)), sides(diary), pairs=3)
    runs = [line for line in diary.lines if line[0] in "AB" and line[1:].isdigit()]
    assert runs == ["A0", "B0", "B1", "A1", "A2", "B2", "B3", "A3", "A4", "B4"]
    assert diary.lines.count("flush") == len(runs)
    assert of_a.values_us == (10.0, 11.0, 12.0)
    assert of_b.values_us == (20.0, 21.0, 22.0)
    assert (of_a.subject, of_b.subject) == ("previous", "candidate")


def test_a_pair_with_one_bad_side_is_dropped_on_both() -> None:
    diary = Diary()
    times = [9.0] * 4 + [10.0, 20.0, 0.0, 11.0, 12.0, 22.0]
    of_a, of_b = interleave(DiaryClock(diary, DiaryRecorder(diary, times)), sides(diary), pairs=3)
    assert (of_a.values_us, of_b.values_us) == ((10.0, 12.0), (20.0, 22.0))
    assert len(of_a.discarded) == len(of_b.discarded) == 1


def test_a_budget_of_time_stops_after_the_first_chunk() -> None:
    diary = Diary()
    recorder = DiaryRecorder(diary, [9.0] * 500, chunk=10)
    of_a, _of_b = interleave(DiaryClock(diary, recorder), sides(diary), pairs=100, seconds=0.0)
    assert len(of_a.values_us) == 10


def test_samples_carry_clock_and_empty_reading() -> None:
    diary = Diary()
    clock = DiaryClock(diary, DiaryRecorder(diary, []))
    reading = Reading(timer="diary", empty=[0.4, 0.6])
    reading.add(5.0, calm())
    samples: Samples = clock.samples(reading, "device", Labels(case="as given"))
    assert samples.sm_clock_mhz == (1980,)
    assert samples.empty_kernel_us == 0.5
    assert samples.foreign_processes is None
    assert samples.case == "as given"
