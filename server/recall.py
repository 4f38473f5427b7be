"""Owns showing what the ledger already knows about a text, so that nothing is measured twice. Never appends.

Only rows of this user's own key count, and only for the same text, problem, evaluator, card and environment.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evalcore.jobs import Cause, EvalJob, Measurement, Mode
from server.analyst import ReaderLost
from server.children.loop import Hello
from server.document import Document
from server.events import Judged
from server.gpu_pool import GpuPool
from server.ledger.reuse import ReuseKey
from server.ledger.store import Ledger, LedgerUnusable
from server.sites import Bound
from server.state import State
from server.verdicts import Verdict

MOST_REMEMBERED = 32
"""Kernels of one document whose verdicts are looked up when it is opened."""

OTHER_SURROUNDINGS = "This text was measured before, with another version of the evaluator, problem or environment."

log = logging.getLogger("odyssey.recall")


class Recall:
    """Questions to the ledger about texts."""

    def __init__(self, pool: GpuPool, state: State) -> None:
        self._pool = pool
        self._state = state
        self._asking: set[asyncio.Task[None]] = set()

    async def of_job(self, job: EvalJob) -> Verdict | None:
        """An own earlier verdict that still holds for this job, marked as reused; None where reuse is off."""
        if not self._state.settings.reuse:
            return None
        path = job.problem.candidate.path
        if not await self._state.recorder(path).exists():
            return None
        key = await self._key(job)
        if key is None:
            return None
        found = await self._ask(path, lambda ledger: _plain(ledger.reusable(key)))
        if found is None:
            return None
        seq, measurement = found
        return Verdict(path=path, kernel=job.kernel, sha=job.kernel_sha, seq=seq, measurement=measurement, reused=True)

    def _place(self, job: EvalJob) -> tuple[Hello, dict[str, Any], bool] | None:
        """(loop, card, whether it is on a card) that the job would run on; None where that is not known yet."""
        facts = self._pool.facts
        gpu = bool(facts.devices) and job.device != "cpu"
        hello = facts.compile if gpu else facts.interpret
        if hello is None or (gpu and len(facts.devices) > 1):
            return None
        return hello, facts.devices[0] if gpu else {}, gpu

    async def _key(self, job: EvalJob) -> ReuseKey | None:
        """What must be the same for a verdict to hold; None where it cannot be found out."""
        place = self._place(job)
        if place is None or self._state.problem_sha is None:
            return None
        hello, device, gpu = place
        try:
            sha = await self._state.problem_sha(job.problem)
        except ReaderLost as lost:
            log.warning("%s", lost)
            return None
        return ReuseKey(
            kernel=job.kernel,
            kernel_sha=job.kernel_sha,
            problem_sha=sha,
            evaluator_sha=hello.evaluator_sha,
            uuid=device.get("uuid"),
            driver=device.get("driver"),
            torch=hello.torch,
            triton=hello.triton,
            interpreted=not gpu,
            mode=job.mode,
            sha_of=self._state.sha_of,
            case=job.case,
            python=hello.python or None,
        )

    def remember(self, document: Document) -> bool:
        """Show what is known about a document just opened; False where it cannot be asked yet."""
        facts = self._pool.facts
        if facts.starting or (facts.compile is None and facts.interpret is None):
            return False
        if self._state.settings.reuse:
            task = asyncio.ensure_future(self._remember(document))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return True

    async def _remember(self, document: Document) -> None:
        if not await self._state.recorder(document.path).exists():
            return
        for bound in [each for each in document.bounds if each.packed][:MOST_REMEMBERED]:
            if self._state.board.verdict(document.path, bound.anchor) is not None:
                continue
            try:
                verdict = await self._known(document, bound)
            except ValueError as problem:  # a problem that no longer decodes; nothing is known then
                log.info("%s: %s", bound.anchor, problem)
                continue
            if verdict is not None and self._state.board.verdict(document.path, bound.anchor) is None:
                self._state.post(Judged(verdict=verdict))

    async def _known(self, document: Document, bound: Bound) -> Verdict | None:
        problem = bound.problem()
        if problem is None:
            return None
        job = EvalJob(
            job_id="",
            cause=Cause.SAVE,
            mode=Mode(self._state.settings.mode),
            problem=problem,
            kernel=bound.anchor,
            kernel_sha=document.sha,
            device=self._state.settings.device,
            case=self._state.case_of(document.path, bound.anchor),
        )
        latest = await self._latest(job)
        if latest is None or latest.sha != job.kernel_sha:
            return latest
        return await self.of_job(job) or replace(latest, old_because=OTHER_SURROUNDINGS)

    async def _latest(self, job: EvalJob) -> Verdict | None:
        """The newest own verdict on this card, about whatever text; on another text it is shown as older."""
        place = self._place(job)
        if place is None:
            return None
        _, device, gpu = place
        path, uuid = job.problem.candidate.path, device.get("uuid")

        def ask(ledger: Ledger) -> tuple[int, Measurement] | None:
            row = ledger.latest(path, job.kernel)
            if row is None or row.foreign or row.uuid != uuid or row.interpreted == gpu:
                return None
            return row.seq, row.measurement

        found = await self._ask(path, ask)
        if found is None:
            return None
        seq, measurement = found
        sha = measurement.kernel_sha
        return Verdict(path=path, kernel=job.kernel, sha=sha, seq=seq, measurement=measurement, reused=True)

    async def _ask(
        self, path: str, work: Callable[[Ledger], tuple[int, Measurement] | None]
    ) -> tuple[int, Measurement] | None:
        recorder = self._state.recorder(path)
        try:
            return await recorder.call(work) if await recorder.exists() else None
        except (LedgerUnusable, OSError, sqlite3.Error) as problem:
            log.warning("the ledger cannot be read: %s", problem)
            return None


def _plain(row: object) -> tuple[int, Measurement] | None:
    return None if row is None else (row.seq, row.measurement)  # type: ignore[attr-defined]
