"""Owns the searches that run for the editor. Never decides about a proposal, never edits a text.

One search a kernel. A search is a run like any other: it is shown, and it is stopped, by its run id.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from evalcore.jobs import Cause, EvalJob, Measurement, Mode, Refusal
from server import words
from server.dispatch.evaluating import PatientPool
from server.events import Judged, LedgerGrew, NoProposal, ProposalFound, RunEnded, RunProgressed, RunStarted
from server.gpu_pool import GpuPool
from server.host import Host
from server.ledger.store import LedgerUnusable
from server.project import language_of
from server.proposal_decisions import Decisions
from server.propose import LedgerMemory, OnProgress, Outcome, Plan, Ports, model_of, request_of, search
from server.recall import Recall
from server.sites import Bound
from server.state import State
from server.verdicts import Verdict
from skills.budget import Budget
from skills.search.optimize import cannot_start

BoundsFor = Callable[[str, str, str], Awaitable[tuple[Bound, ...]]]
"""(path, text, sha) -> how the kernels of that text are judged."""

log = logging.getLogger("odyssey.proposing")


@dataclass(slots=True)
class _Run:
    """A search on its way."""

    plan: Plan
    task: asyncio.Task[None]


class Proposing:
    """Ask it for a proposal; it posts ProposalFound or NoProposal."""

    def __init__(self, host: Host, pool: GpuPool, state: State, bounds_for: BoundsFor) -> None:
        self._host = host
        self._pool = pool
        self._state = state
        self._bounds_for = bounds_for
        self._evaluator = PatientPool(pool)
        self._recall = Recall(pool, state)
        self._runs: dict[str, _Run] = {}
        self.decisions = Decisions(state)
        self.key = ""
        """The model's key as the editor keeps it; in memory only."""

    async def ask(self, path: str, kernel: str) -> Plan | Refusal:
        """Begin to look for a faster text of what stands in the editor now; its plan, or why that cannot be."""
        document = self._state.document(path)
        if document is None:
            return Refusal(code="unreadable", message="The file is not open", remedy="Open it, then ask again.")
        if not self._state.trusted:
            return _UNTRUSTED
        text, sha = document.index.text, document.sha
        bound = _bound_of(await self._bounds_for(path, text, sha), kernel)
        job = self._job(path, sha, bound) if isinstance(bound, Bound) else bound
        if isinstance(job, Refusal):
            return job
        plan = Plan(
            run_id=self._host.new_id(),
            job=job,
            text=text,
            language="cuda" if language_of(path, document.language) == "cuda" else "triton",
            budget=Budget(),
        )
        verdict = self._state.board.verdict(path, job.kernel) if self._state.fresh(path, job.kernel, sha) else None
        refusal = self._cannot_start(plan, verdict) if verdict is not None else None
        if refusal is not None:
            return refusal
        for run in list(self._runs.values()):
            if (run.plan.job.problem.candidate.path, run.plan.job.kernel) == (path, job.kernel):
                if run.plan.text == text:
                    return run.plan
                run.task.cancel()
        self._runs[plan.run_id] = _Run(plan, asyncio.ensure_future(self._run(plan, verdict)))
        return plan

    def stop(self, run_id: str) -> bool:
        """End a search; whether there was one. What it had judged stays in the ledger."""
        run = self._runs.get(run_id)
        if run is None:
            return False
        run.task.cancel()
        return True

    async def close(self) -> None:
        """End every search, and with it its model's process."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.key = ""

    def _job(self, path: str, sha: str, bound: Bound) -> EvalJob | Refusal:
        problem = bound.problem()
        if problem is None:
            return Refusal(code=bound.refusal_code, message=bound.refusal_words, remedy="")
        helpers = {other: text for other, text in self._state.dirty_texts().items() if other != path}
        return EvalJob(
            job_id=self._host.new_id(),
            cause=Cause.COMMAND,
            mode=Mode(self._state.settings.mode),
            problem=replace(problem, overlays=tuple(sorted(helpers.items()))),
            kernel=bound.anchor,
            kernel_sha=sha,
            device=self._state.settings.device,
            case=self._state.case_of(path, bound.anchor),
        )

    def _cannot_start(self, plan: Plan, verdict: Verdict) -> Refusal | None:
        refusal = cannot_start(request_of(plan, (verdict.measurement, verdict.seq)))
        if refusal is not None and refusal.code == "no_gpu" and plan.job.device == "cpu" and self._pool.facts.devices:
            return _HELD_TO_CPU
        return refusal

    async def _run(self, plan: Plan, verdict: Verdict | None) -> None:
        """One search behind the job fence: whatever happens in it, it ends with a word."""
        path, kernel, run_id = plan.job.problem.candidate.path, plan.job.kernel, plan.run_id
        self._state.post(RunStarted(run_id=run_id, path=path, kernel=kernel, cause=Cause.SEARCH))
        try:
            outcome = await self._search(plan, verdict)
        except (LedgerUnusable, OSError, sqlite3.Error) as fault:
            outcome = Outcome(refusal=words.unrecorded(fault))
        except Exception:
            log.exception("the search for %s failed", kernel)
            outcome = Outcome(
                refusal=Refusal(code="fault", message="Odyssey failed in the search", remedy="See its log.")
            )
        finally:
            self._runs.pop(run_id, None)
            self._state.post(RunEnded(run_id=run_id))
        if outcome.proposal is not None:
            self.decisions.waits(outcome.proposal)
            self._state.post(ProposalFound(proposal=outcome.proposal, model_refusal=outcome.model_refusal))
        elif outcome.refusal is not None:
            self._state.post(
                NoProposal(path=path, kernel=kernel, refusal=outcome.refusal, model_refusal=outcome.model_refusal)
            )

    async def _search(self, plan: Plan, verdict: Verdict | None) -> Outcome:
        def on_progress(message: str, done: int, total: int) -> None:
            self._state.post(RunProgressed(run_id=plan.run_id, stage=message, done=done, total=total))

        problem = plan.job.problem
        recorder = self._state.recorder(problem.candidate.path)
        memory = LedgerMemory(self._host, recorder, problem, lambda seq: self._state.post(LedgerGrew(seq=seq)))
        if verdict is None:
            found = await self._judge_first(plan, memory, on_progress)
            if isinstance(found, Refusal):
                return Outcome(refusal=found)
            verdict = found
        refusal = self._cannot_start(plan, verdict)
        if refusal is not None:
            return Outcome(refusal=refusal)
        model = model_of(self._state.settings, self._host, self.key)
        try:
            if model is not None:
                await model.warm()
            ports = Ports(evaluator=self._evaluator, memory=memory, model=model)
            return await search(plan, (verdict.measurement, verdict.seq), ports, on_progress)
        finally:
            if model is not None:
                await model.close()

    async def _judge_first(self, plan: Plan, memory: LedgerMemory, on_progress: OnProgress) -> Verdict | Refusal:
        """The verdict on the text as it stands: out of the ledger where it still holds, else measured now."""
        on_progress("judging the text as it stands", 0, 0)
        refusal = await self._pool.up()
        if refusal is not None:
            return refusal
        verdict = await self._recall.of_job(plan.job)
        if verdict is None:
            outcome = await self._pool.evaluate(plan.job)
            if isinstance(outcome, Refusal):
                return outcome
            verdict = await self._recorded(plan, memory, outcome)
        self._state.post(Judged(verdict=verdict))
        return verdict

    async def _recorded(self, plan: Plan, memory: LedgerMemory, measurement: Measurement) -> Verdict:
        path = plan.job.problem.candidate.path
        before = self._state.board.verdict(path, plan.job.kernel)
        seq = await memory.append_base(measurement, text=plan.text, after=before.sha if before is not None else None)
        return Verdict(
            path=path, kernel=plan.job.kernel, sha=plan.job.kernel_sha, seq=seq, measurement=memory.rows[seq]
        )


def _bound_of(bounds: tuple[Bound, ...], kernel: str) -> Bound | Refusal:
    meant = [bound for bound in bounds if kernel == bound.anchor or kernel in bound.kernels]
    judged = next((bound for bound in meant if bound.packed), None)
    if judged is not None:
        return judged
    if meant:
        return Refusal(code=meant[0].refusal_code, message=meant[0].refusal_words, remedy="")
    return Refusal(code="no_kernel", message=f"There is no kernel {kernel} in this text", remedy="")


_UNTRUSTED = Refusal(
    code="untrusted",
    message="This folder is not trusted, so nothing in it is run",
    remedy="Trust it to have its kernels judged and made faster.",
)

_HELD_TO_CPU = Refusal(
    code="no_gpu",
    message="a proposal needs times, and nothing was timed: odyssey.device holds the verdicts to the CPU",
    remedy="Set odyssey.device to auto and save, then propose again.",
)
