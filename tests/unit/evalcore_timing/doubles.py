"""Stand-ins that record in which order a timed loop asks for things. They measure nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from evalcore.gpu.activity import Launch, Recording
from evalcore.gpu.nvml import CardState


class Diary:
    """What happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)


class DiaryCache:
    def __init__(self, diary: Diary) -> None:
        self.diary = diary

    def drain(self) -> None:
        self.diary.note("drain")

    def reset_persisting(self) -> None:
        self.diary.note("reset")

    def flush(self) -> None:
        self.diary.note("flush")

    def mark(self) -> None:
        self.diary.note("mark")


class DiaryRing:
    def __init__(self, diary: Diary) -> None:
        self.diary = diary

    def next(self, index: int) -> list[Any]:
        self.diary.note(f"refill {index}")
        return [index]


class DiaryRecorder:
    """Plays back `times`: one launch of that many microseconds per call, none for a time of 0."""

    timer = "diary"

    def __init__(self, diary: Diary, times: Sequence[float], *, chunk: int = 0, lose: int = 0) -> None:
        self.diary = diary
        self.chunk = chunk
        self.times = list(times)
        self.lose = lose
        self.pending = 0
        self.takes: list[int] = []

    def warm(self) -> None:
        self.diary.note("warm")

    def open(self) -> None:
        self.diary.note("open")

    def close(self) -> None:
        self.diary.note("close")

    def end(self) -> None:
        self.diary.note("end")

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        self.diary.note("(")
        self.pending += 1
        yield
        self.diary.note(")")

    @contextlib.contextmanager
    def mark(self) -> Iterator[None]:
        yield

    def take(self) -> Recording:
        self.diary.note("take")
        self.takes.append(self.pending)
        count, self.pending = self.pending, 0
        times, self.times = self.times[:count], self.times[count:]
        calls = [(Launch(name="k", device_us=each),) if each else () for each in times]
        return Recording(calls=tuple(calls[self.lose :]), empty_us=(0.5,) * count)


def calm() -> CardState:
    return CardState(sm_clock_mhz=1980)


def hot() -> CardState:
    return CardState(sm_clock_mhz=1200, throttle=("power cap", "thermal (hardware)"))
