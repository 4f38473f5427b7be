"""Owns an evaluator for commands: the pool of this machine's cards for the time of a block, patient about an A/B.

The worker sends a verdict first and its interleaved A/B afterwards, as an amended measurement; an editor shows both as
they come, a command wants the whole. Never judges.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from evalcore.jobs import EvalJob, Measurement, Refusal
from evalcore.wire import WireError, decode
from server.config import Settings
from server.gpu_pool import GpuPool
from server.host import Host

AB_WAIT_S = 120.0
"""An A/B of two kernels of a second each takes that long; where none comes the verdict stands without it."""


class PatientPool:
    """skills.ports.Evaluator over a GpuPool: a job with `compare_with` is answered when its A/B is there."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool
        self._waiting: dict[str, asyncio.Future[Measurement]] = {}
        self._others: Callable[[dict[str, Any]], None] | None = None
        self._listen()

    async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
        """Judge one text."""
        if job.compare_with is None:
            return await self._pool.evaluate(job)
        self._listen()
        amended = self._waiting[job.job_id] = asyncio.get_running_loop().create_future()
        try:
            found = await self._pool.evaluate(job)
            if isinstance(found, Refusal) or found.ab is not None or not _comparable(found):
                return found
            with contextlib.suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(amended, AB_WAIT_S)
            return found
        finally:
            del self._waiting[job.job_id]

    def _listen(self) -> None:
        """Stand before whoever else hears the pool's frames; what is not for us goes on to them."""
        if self._pool.on_frame != self._take:
            self._others, self._pool.on_frame = self._pool.on_frame, self._take

    def _take(self, frame: dict[str, Any]) -> None:
        waiting = self._waiting.get(str(frame.get("job_id"))) if frame.get("frame") == "amended" else None
        if waiting is None:
            if self._others is not None:
                self._others(frame)
            return
        if waiting.done():
            return
        try:
            waiting.set_result(decode(Measurement, frame.get("measurement")))
        except WireError as problem:
            waiting.set_exception(problem)


def _comparable(found: Measurement) -> bool:
    """Only a right text on a card is timed against another."""
    return found.result.correct and found.environment.card is not None and not found.environment.interpreted


@contextlib.asynccontextmanager
async def evaluator(host: Host, python: str = "", device: str = "auto") -> AsyncIterator[PatientPool]:
    """A pool that ends with the block, with every process that it started."""
    pool = GpuPool(host, lambda: None)
    pool.configure(Settings(python=python, device=device))
    try:
        yield PatientPool(pool)
    finally:
        await pool.close()
