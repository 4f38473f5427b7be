"""Owns the way from a wish to judge a text to verdicts in the ledger. Never shows anything, never judges itself.

One batch a file: its text, and the kernels still to be judged. A newer text replaces the batch; the same text adds
to it.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from evalcore.jobs import Cause, EvalJob, Measurement, Mode, Refusal
from evalcore.problem import Problem
from server import words
from server.document import Document
from server.events import Judged, JudgeRefused, LedgerGrew, RunEnded, RunProgressed, RunStarted
from server.followups import FollowUps, Judgement
from server.git import GitFacts, git_facts
from server.gpu_pool import GpuPool
from server.host import Host
from server.ledger.store import LedgerUnusable
from server.newest import Newest
from server.recall import Recall
from server.sites import Bound
from server.state import State
from server.verdicts import Verdict

MOST_ON_SAVE = 16
"""Kernels that one save judges; a file of a hundred is judged where it was edited, the others when asked."""

BoundsFor = Callable[[str, str, str], Awaitable[tuple[Bound, ...]]]
"""(path, text, sha) -> how the kernels of that text are judged."""

log = logging.getLogger("odyssey.judging")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Judge kernels of this text."""

    path: str
    text: str
    sha: str
    cause: Cause
    mode: Mode
    kernels: tuple[str, ...] = ()
    """() for every bound kernel that has no fresh verdict."""
    epoch: int = 0
    """Grows when something beside the text changed (a helper, a setting): the same text is then judged anew."""


@dataclass(frozen=True, slots=True)
class Target:
    """One kernel to be judged."""

    bound: Bound
    mode: Mode
    cause: Cause
    asked: bool
    """Whether a person asked for this one: it is then measured again even where a verdict stands."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """What is being judged of one file."""

    wish: Wish
    pending: list[Target] = field(default_factory=list)
    current: Target | None = None
    resolved: bool = False
    late: list[Wish] = field(default_factory=list)
    """Wishes about the same text that came before its bindings were known."""


class Judging:
    """All batches, one a file, and the jobs that they become."""

    def __init__(self, host: Host, pool: GpuPool, state: State, bounds_for: BoundsFor) -> None:
        self._host = host
        self._pool = pool
        self._state = state
        self._bounds_for = bounds_for
        self._recall = Recall(pool, state)
        self._followups = FollowUps(host, pool, state)
        self._newest = Newest()
        self._batches: dict[str, Batch] = {}
        self._settling: set[asyncio.Future[None]] = set()

    def ask(self, wish: Wish) -> None:
        """Judge this text next. The same text does not start over what already runs."""
        batch = self._batches.get(wish.path)
        if batch is not None and (batch.wish.sha, batch.wish.epoch) == (wish.sha, wish.epoch):
            self._join(batch, wish)
            return
        batch = self._batches[wish.path] = Batch(wish=wish)
        self._newest.submit(wish.path, lambda: self._drain(batch), wish.cause.value)

    def remember(self, document: Document) -> bool:
        """Show what the ledger knows about a document just opened; False where it cannot be asked yet."""
        return self._recall.remember(document)

    def stop(self, path: str) -> bool:
        """End what is being judged of a file; whether there was anything."""
        self._batches.pop(path, None)
        return self._newest.cancel(path)

    def stop_all(self) -> None:
        """End everything that is being judged."""
        for path in list(self._batches):
            self.stop(path)

    async def close(self) -> None:
        """End everything; what was already measured still reaches the ledger."""
        self._batches.clear()
        await self._newest.close()
        await asyncio.gather(*self._settling, return_exceptions=True)
        await self._followups.close()

    def _join(self, batch: Batch, wish: Wish) -> None:
        if not batch.resolved:
            batch.late.append(wish)
            return
        if not wish.kernels:
            return
        known = [batch.current, *batch.pending]
        bounds = {target.bound.anchor: target.bound for target in known if target is not None}
        wanted = [name for name in wish.kernels if name not in bounds or wish.mode is Mode.THOROUGH]
        if wanted:
            batch.late.append(replace(wish, kernels=tuple(wanted)))

    async def _drain(self, batch: Batch) -> None:
        path = batch.wish.path
        try:
            bounds = await self._bounds_for(path, batch.wish.text, batch.wish.sha)
            batch.late.insert(0, batch.wish)
            batch.resolved = True
            while batch.late or batch.pending:
                if batch.late:
                    batch.pending = _merged(self._targets(batch.late.pop(0), bounds), batch.pending)
                    continue
                batch.current = batch.pending.pop(0)
                await self._judge(batch, batch.current)
                batch.current = None
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("judging %s failed", path)
            refusal = Refusal(code="fault", message="Odyssey failed while judging; see its log", remedy="Save again.")
            kernel = batch.current.bound.anchor if batch.current else ""
            self._refuse(batch, kernel, refusal)
        finally:
            if self._batches.get(path) is batch:
                del self._batches[path]

    def _targets(self, wish: Wish, bounds: tuple[Bound, ...]) -> list[Target]:
        if wish.kernels:
            chosen = [
                bound for bound in bounds
                if bound.packed and any(name == bound.anchor or name in bound.kernels for name in wish.kernels)
            ]  # fmt: skip
            for name in wish.kernels:
                self._explain_unbound(wish, name, bounds)
            return [Target(bound, wish.mode, wish.cause, True) for bound in chosen]
        broken = next((bound for bound in bounds if bound.place is not None), None)
        if broken is not None:
            self._explain(wish, broken.anchor, broken)
        stale = [
            bound for bound in self._state.touched_first(wish.path, bounds)
            if bound.packed and not self._state.fresh(wish.path, bound.anchor, wish.sha)
        ]  # fmt: skip
        return [Target(bound, wish.mode, wish.cause, False) for bound in stale[:MOST_ON_SAVE]]

    def _explain_unbound(self, wish: Wish, name: str, bounds: tuple[Bound, ...]) -> None:
        if any(bound.packed and (name == bound.anchor or name in bound.kernels) for bound in bounds):
            return
        self._explain(
            wish, name, next((bound for bound in bounds if name == bound.anchor or name in bound.kernels), None)
        )

    def _explain(self, wish: Wish, name: str, why: Bound | None) -> None:
        refusal = Refusal(
            code=why.refusal_code if why else "no_kernel",
            message=why.refusal_words if why else f"There is no kernel {name} in this text",
            remedy="",
        )
        place = why.place if why else None
        self._state.post(
            JudgeRefused(path=wish.path, kernel=name, sha=wish.sha, refusal=refusal, cause=wish.cause, place=place)
        )

    async def _judge(self, batch: Batch, target: Target) -> None:
        job = self._job(batch, target)
        if job is None:
            return
        self._state.post(RunStarted(run_id=job.job_id, path=batch.wish.path, kernel=job.kernel, cause=target.cause))
        try:
            reused = None if target.asked else await self._recall.of_job(job)
            if reused is not None:
                self._state.post(Judged(verdict=reused))
                return
            git = asyncio.ensure_future(git_facts(self._host, batch.wish.path))
            try:
                outcome = await self._pool.evaluate(job, self._stages(job.job_id))
            except asyncio.CancelledError:
                git.cancel()
                raise
            if isinstance(outcome, Refusal):
                git.cancel()
                self._refuse(batch, job.kernel, outcome)
            else:
                await self._settled(self._record(batch, job, outcome, git))
        finally:
            self._state.post(RunEnded(run_id=job.job_id))

    def _job(self, batch: Batch, target: Target) -> EvalJob | None:
        problem = target.bound.problem()
        if problem is None:
            return None
        helpers = {path: text for path, text in self._state.dirty_texts().items() if path != batch.wish.path}
        problem = replace(problem, overlays=tuple(sorted(helpers.items())))
        return EvalJob(
            job_id=self._host.new_id(),
            cause=target.cause,
            mode=target.mode,
            problem=problem,
            kernel=target.bound.anchor,
            kernel_sha=batch.wish.sha,
            device=self._state.settings.device,
            case=self._state.case_of(batch.wish.path, target.bound.anchor),
            compare_with=self._followups.previous_text(batch.wish.path, target.bound.anchor, batch.wish.sha),
        )

    async def _record(
        self, batch: Batch, job: EvalJob, measurement: Measurement, git: asyncio.Future[GitFacts]
    ) -> None:
        """Append, then show. From here on nothing cancels it: what was measured is kept."""
        facts = await git
        measurement = replace(measurement, measured_at=self._host.now_utc(), git_sha=facts.sha, git_dirty=facts.dirty)
        problem: Problem = job.problem
        before = self._state.board.verdict(batch.wish.path, job.kernel)
        try:
            seq = await self._state.recorder(batch.wish.path).append(
                measurement, text=batch.wish.text, problem=problem, after=before.sha if before is not None else None
            )
        except (LedgerUnusable, OSError, sqlite3.Error) as fault:
            self._refuse(batch, job.kernel, words.unrecorded(fault))
            return
        verdict = Verdict(path=batch.wish.path, kernel=job.kernel, sha=batch.wish.sha, seq=seq, measurement=measurement)
        self._state.post(LedgerGrew(seq=seq))
        self._state.post(Judged(verdict=verdict))
        self._followups.judged(Judgement(verdict=verdict, text=batch.wish.text, problem=problem))

    async def _settled(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        await asyncio.shield(task)

    def _stages(self, run_id: str) -> Callable[[str, int, int], None]:
        def on_stage(stage: str, done: int, total: int) -> None:
            self._state.post(RunProgressed(run_id=run_id, stage=stage, done=done, total=total))

        return on_stage

    def _refuse(self, batch: Batch, kernel: str, refusal: Refusal) -> None:
        self._state.post(
            JudgeRefused(
                path=batch.wish.path, kernel=kernel, sha=batch.wish.sha, refusal=refusal, cause=batch.wish.cause
            )
        )


def _merged(first: list[Target], then: list[Target]) -> list[Target]:
    names = {target.bound.anchor for target in first}
    return first + [target for target in then if target.bound.anchor not in names]
