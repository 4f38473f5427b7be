"""Owns the order in which jobs go to one worker loop: by cause, then by age. Never looks into a job.

One job runs at a time. A person's own job never waits for a search: the search's running job is cancelled and
queued again.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from evalcore.jobs import Cause

T = TypeVar("T")

PRIORITY = {Cause.COMMAND: 0, Cause.SAVE: 1, Cause.PAUSE: 2, Cause.WATCH: 3, Cause.SEARCH: 4}


@dataclass(order=True, slots=True)
class _Turn:
    priority: int
    number: int
    granted: asyncio.Future[None] = field(compare=False)
    work: asyncio.Future[Any] | None = field(default=None, compare=False)
    preempted: bool = field(default=False, compare=False)


class Lane(Generic[T]):
    """A queue with one place at its head."""

    def __init__(self) -> None:
        self._waiting: list[_Turn] = []
        self._running: _Turn | None = None
        self._numbers = itertools.count()

    @property
    def busy(self) -> bool:
        """Whether something runs or waits."""
        return self._running is not None or bool(self._waiting)

    async def run(self, cause: Cause, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` when its turn comes; it is started again from the beginning where it had to step aside."""
        turn = _Turn(PRIORITY[cause], next(self._numbers), asyncio.get_running_loop().create_future())
        while True:
            heapq.heappush(self._waiting, turn)
            self._advance()
            try:
                await turn.granted
                task = turn.work = asyncio.ensure_future(work())
                if turn.preempted:
                    task.cancel()
                await _finished(task)
            finally:
                self._leave(turn)
            if not (task.cancelled() and turn.preempted):
                return task.result()
            turn = _Turn(turn.priority, turn.number, asyncio.get_running_loop().create_future())

    def _leave(self, turn: _Turn) -> None:
        if self._running is turn:
            self._running = None
        elif turn in self._waiting:
            self._waiting.remove(turn)
            heapq.heapify(self._waiting)
        self._advance()

    def _advance(self) -> None:
        while self._waiting and self._waiting[0].granted.cancelled():
            heapq.heappop(self._waiting)
        if not self._waiting:
            return
        first = self._waiting[0]
        if self._running is None:
            self._running = heapq.heappop(self._waiting)
            self._running.granted.set_result(None)
        elif self._running.priority == PRIORITY[Cause.SEARCH] and first.priority < self._running.priority:
            self._running.preempted = True
            if self._running.work is not None:
                self._running.work.cancel()


async def _finished(task: asyncio.Future[T]) -> None:
    """Wait for a task's end whatever it is; where we are cancelled ourselves, cancel it and still wait for its end."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
