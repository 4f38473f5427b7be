"""Owns where the time of one evaluation goes, by stage. Never a figure about a kernel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Stages:
    """Seconds by stage; stages may overlap, so they need not add up to the whole."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begun = loop.time()
        self._seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        started = self._loop.time()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + self._loop.time() - started

    def add(self, name: str, seconds: float) -> None:
        """Add to a stage by hand."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def report(self) -> dict[str, float]:
        """Every stage and the whole, rounded to tenths of a millisecond."""
        found = {**self._seconds, "total": self._loop.time() - self._begun}
        return {name: round(seconds, 4) for name, seconds in found.items()}
