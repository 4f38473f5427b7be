"""Owns the one thread in which a workspace's ledger is open. Never touches the ledger from another thread.

SQLite connections are bound to their thread; and an append waits for the disk, which the event loop must not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from evalcore.jobs import Measurement
from evalcore.problem import Problem
from server.host import Host
from server.ledger.store import Ledger

T = TypeVar("T")


class Recorder:
    """One workspace's ledger behind one thread. It is opened with the first call that needs it."""

    def __init__(self, host: Host, workspace: Path) -> None:
        self._host = host
        self.workspace = workspace
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._ledger: Ledger | None = None
        self._data_version = 0
        self._last_seq = 0

    async def append(
        self,
        measurement: Measurement,
        *,
        text: str,
        problem: Problem | None,
        intent: str = "",
        after: str | None = None,
    ) -> int:
        """Record a verdict; its seq. Only when this has returned may anybody see the verdict. Raises LedgerUnusable."""
        return await self.call(
            lambda ledger: ledger.append(measurement, text=text, intent=intent, problem=problem, after=after)
        )

    async def call(self, work: Callable[[Ledger], T]) -> T:
        """Do something with the ledger in its thread. Raises LedgerUnusable where no place for one works."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work)

    async def exists(self) -> bool:
        """Whether there is a ledger to read; asking does not make one."""
        if self._ledger is not None:
            return True
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._file_is_there)

    async def grown(self) -> int | None:
        """The newest seq where another process has appended since the last look, else None."""
        if self._ledger is None and not await self.exists():
            return None
        return await self.call(self._look)

    async def close(self) -> None:
        """Close the file and end the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
        self._thread.shutdown(wait=False)

    def _do(self, work: Callable[[Ledger], T]) -> T:
        if self._ledger is None:
            self._ledger = Ledger.open(self.workspace, state_dir=self._host.state_dir(), clock=self._host.now_utc)
            self._data_version = self._ledger.data_version()
            self._last_seq = self._ledger.last_seq()
        return work(self._ledger)

    def _look(self, ledger: Ledger) -> int | None:
        version = ledger.data_version()
        if version == self._data_version:
            return None
        self._data_version = version
        last = ledger.last_seq()
        grown, self._last_seq = last > self._last_seq, last
        return last if grown else None

    def _file_is_there(self) -> bool:
        return (self.workspace / ".odyssey" / "ledger.db").exists()

    def _shut(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
