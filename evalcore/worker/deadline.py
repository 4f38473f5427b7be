"""Owns one deadline with two clocks: time to build and time to run, apart. Never kills by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Runs out after `run_s`, not counting what the child says it spends building, which has `build_s` of its own.

    A child may lie about building; what it can gain is the build time once, and no more.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, run_s: float, build_s: float, late: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._late = late
        self._left = {"run": run_s, "build": build_s}
        self._now = "run"
        self._since = loop.time()
        self._timer = loop.call_later(run_s, late, "run")

    def building(self, building: bool) -> None:
        """The child says that it starts, or has ended, building."""
        wanted = "build" if building else "run"
        if wanted == self._now:
            return
        now = self._loop.time()
        self._left[self._now] -= now - self._since
        self._now, self._since = wanted, now
        self._timer.cancel()
        self._timer = self._loop.call_later(max(self._left[wanted], 0.0), self._late, wanted)

    def stop(self) -> None:
        """The answer has come."""
        self._timer.cancel()
