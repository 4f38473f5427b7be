"""Owns what a worker still learns after a verdict: the comparison with the text before, the opponents' times, the roofs.

Each becomes a row of its own before it is shown: a number never reaches the screen without one. Never asks for a job.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from evalcore.jobs import Measurement
from evalcore.problem import Problem
from evalcore.wire import WireError, decode
from server.events import Judged, LedgerGrew
from server.gpu_pool import GpuPool
from server.host import Host
from server.ledger.store import LedgerUnusable
from server.state import State
from server.verdicts import Verdict

MOST_KEPT = 64
"""Verdicts that a late remark can still be added to."""

MOST_EARLY = 8
"""Amendments kept that came before their verdict was recorded."""

log = logging.getLogger("odyssey.followups")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict that was shown, and what its row was made of."""

    verdict: Verdict
    text: str
    problem: Problem


class FollowUps:
    """Hears the pool's frames that answer no question."""

    def __init__(self, host: Host, pool: GpuPool, state: State) -> None:
        self._host = host
        self._pool = pool
        self._state = state
        self._judged: OrderedDict[str, Judgement] = OrderedDict()
        self._early: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._asked: set[tuple[str, str | None]] = set()
        """(problem, card) whose opponents were asked for."""
        self._tasks: set[asyncio.Task[None]] = set()
        pool.on_frame = self.take

    def judged(self, judgement: Judgement) -> None:
        """A verdict is out: remember it, and let the opponents be timed once for its problem."""
        measurement = judgement.verdict.measurement
        self._judged[measurement.job_id] = judgement
        while len(self._judged) > MOST_KEPT:
            self._judged.popitem(last=False)
        early = self._early.pop(measurement.job_id, None)
        if early is not None:
            self._amended(early)
        where = (measurement.problem_sha, measurement.environment.uuid)
        if measurement.result.runtime_us is None or measurement.opponents or where in self._asked:
            return
        self._asked.add(where)
        self._pool.measure_opponents(judgement.problem, _device_of(self._pool, measurement))

    def previous_text(self, path: str, kernel: str, sha: str) -> str | None:
        """The last other text of a kernel that was right and timed: what a new one is compared with."""
        for judgement in reversed(self._judged.values()):
            verdict = judgement.verdict
            if (verdict.path, verdict.kernel) == (path, kernel) and verdict.measurement.result.runtime_us is not None:
                return judgement.text if verdict.sha != sha else None
        return None

    def take(self, frame: dict[str, Any]) -> None:
        """One frame of a worker loop."""
        name = frame.get("frame")
        if name == "amended":
            self._amended(frame)
        elif name == "opponents":
            self._compared(frame)

    async def close(self) -> None:
        """Let what is being recorded reach the ledger."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _amended(self, frame: dict[str, Any]) -> None:
        job_id = str(frame.get("job_id"))
        judgement = self._judged.get(job_id)
        if judgement is None:
            self._early[job_id] = frame  # its verdict is still on its way through the ledger
            while len(self._early) > MOST_EARLY:
                self._early.popitem(last=False)
            return
        if not self._stands(judgement):
            return
        try:
            measurement = decode(Measurement, frame.get("measurement"))
        except WireError as problem:
            log.warning("an amendment that cannot be read: %s", problem)
            return
        if measurement.ab is not None:
            self._run(self._record(judgement, measurement))

    def _compared(self, frame: dict[str, Any]) -> None:
        sha = str(frame.get("problem_sha"))
        rows = tuple(each for each in frame.get("opponents") or () if isinstance(each, dict))
        if not rows:
            return
        for judgement in list(self._judged.values()):
            measurement = judgement.verdict.measurement
            if measurement.problem_sha == sha and measurement.result.runtime_us is not None and self._stands(judgement):
                self._run(self._record(judgement, replace(measurement, opponents=rows)))

    def _stands(self, judgement: Judgement) -> bool:
        """Whether it is still the newest verdict of its kernel: an older one is not brought back."""
        verdict = judgement.verdict
        return self._state.board.verdict(verdict.path, verdict.kernel) == verdict

    async def _record(self, judgement: Judgement, measurement: Measurement) -> None:
        """Append, then show in place of the verdict that it completes."""
        old = judgement.verdict
        measurement = replace(
            measurement,
            measured_at=self._host.now_utc(),
            git_sha=old.measurement.git_sha,
            git_dirty=old.measurement.git_dirty,
        )
        try:
            recorder = self._state.recorder(old.path)
            seq = await recorder.append(measurement, text=judgement.text, problem=judgement.problem)
        except (LedgerUnusable, OSError, sqlite3.Error) as fault:
            log.warning("an amendment cannot be kept, so it is not shown: %s", fault)
            return
        self._state.post(LedgerGrew(seq=seq))
        if self._stands(judgement):
            verdict = replace(old, seq=seq, measurement=measurement)
            self._judged[measurement.job_id] = replace(judgement, verdict=verdict)
            self._state.post(Judged(verdict=verdict))

    def _run(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _device_of(pool: GpuPool, measurement: Measurement) -> str:
    for number, device in enumerate(pool.facts.devices):
        if device.get("uuid") == measurement.environment.uuid:
            return f"cuda:{device.get('index', number)}"
    return "cuda:0"
