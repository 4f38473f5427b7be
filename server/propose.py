"""Owns one search for a faster text: the ports it is given, its run, and what came of it.

The editor's session and the command line use the same: cards, ledger and model behind `skills.ports`. Never shows
anything, never edits a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evalcore.jobs import EvalJob, Measurement, Refusal
from evalcore.problem import Problem
from server.config import Settings
from server.git import GitFacts, git_facts
from server.host import Host
from server.llm.client import ChildModel, ModelSettings
from server.proposals import OpenProposal, opened
from server.recorder import Recorder
from skills.budget import Budget
from skills.ports import ChatModel, Evaluator, Progress, Proposal
from skills.search.optimize import Request, optimize

OnProgress = Callable[[str, int, int], None]
"""(what is done now, candidates judged, the most that are judged)."""

KEY_NAME = "ODYSSEY_API_KEY"
"""The variable by which the model's process gets its key; a person may set it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is searched, and how long."""

    run_id: str
    job: EvalJob
    """The job that judges the text as it stands."""
    text: str
    language: str
    """'triton' or 'cuda'."""
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a search: either `proposal` or `refusal` is set."""

    proposal: OpenProposal | None = None
    refusal: Refusal | None = None
    tried: int = 0
    """Candidates that were judged."""
    model_refusal: Refusal | None = None
    """Why the model's round brought nothing, where it ended early."""


class LedgerMemory:
    """skills.ports.Memory over a workspace's ledger. What it has recorded it still knows, by seq."""

    def __init__(self, host: Host, recorder: Recorder, problem: Problem, on_growth: Callable[[int], None]) -> None:
        self._host = host
        self._recorder = recorder
        self._problem = problem
        self._on_growth = on_growth
        self._git: GitFacts | None = None
        self._last_seq = 0
        self.rows: dict[int, Measurement] = {}

    async def append(self, measurement: Measurement, *, text: str, intent: str = "") -> int:
        """Record a candidate, which is no text of any commit. Raises LedgerUnusable, OSError and sqlite3.Error."""
        git = await self._git_facts()
        dirty = None if git.sha is None else True
        return await self._append(replace(measurement, git_dirty=dirty), text=text, intent=intent)

    async def append_base(self, measurement: Measurement, *, text: str, after: str | None) -> int:
        """Record the verdict on the text as it stands; `after` is the one judged before it. Raises as `append` does."""
        git = await self._git_facts()
        return await self._append(replace(measurement, git_dirty=git.dirty), text=text, after=after)

    async def _append(self, measurement: Measurement, *, text: str, intent: str = "", after: str | None = None) -> int:
        git = await self._git_facts()
        measurement = replace(measurement, measured_at=self._host.now_utc(), git_sha=git.sha)
        seq = await self._recorder.append(measurement, text=text, problem=self._problem, intent=intent, after=after)
        self.rows[seq] = measurement
        self._last_seq = seq
        self._on_growth(seq)
        return seq

    async def _git_facts(self) -> GitFacts:
        if self._git is None:
            self._git = await git_facts(self._host, self._problem.candidate.path)
        return self._git

    async def bury(self, sha: str, *, reason: str) -> None:
        """Record why a branch ends."""
        await self._recorder.call(lambda ledger: ledger.bury(sha, reason))
        self._on_growth(self._last_seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where a search's jobs run, what remembers them, who writes candidates beside the tuner."""

    evaluator: Evaluator
    memory: LedgerMemory
    model: ChatModel | None = None


class _Counted:
    """An evaluator that counts the candidates it has judged (an A/B is none), and keeps the last refusal."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.judged = 0
        self.refusal: Refusal | None = None

    async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
        """Judge one text."""
        outcome = await self._evaluator.evaluate(job)
        if isinstance(outcome, Refusal):
            self.refusal = outcome
        elif job.compare_with is None:
            self.judged += 1
        return outcome


async def search(plan: Plan, base: tuple[Measurement, int], ports: Ports, on_progress: OnProgress) -> Outcome:
    """Look for a faster text. `base` is the verdict on the text as it stands and its seq. Raises what the ledger raises."""
    counted = _Counted(ports.evaluator)
    request = request_of(plan, base)
    last: Proposal | Refusal = Refusal(code="no_gain", message="the search ended without a word", remedy="")
    model_refusal: Refusal | None = None
    async for event in optimize(request, evaluator=counted, memory=ports.memory, model=ports.model):
        if isinstance(event, Progress):
            on_progress(event.message, counted.judged, plan.budget.attempts)
            model_refusal = event.refusal or model_refusal
        else:
            last = event
    if isinstance(last, Proposal):
        measurement = ports.memory.rows[last.measurement_seq]
        found = opened(last, measurement, plan.text)
        return Outcome(proposal=found, tried=counted.judged, model_refusal=model_refusal)
    if counted.refusal is not None and not counted.judged:
        last = counted.refusal  # nothing could be judged at all: that is the reason, not the candidates
    return Outcome(refusal=last, tried=counted.judged, model_refusal=model_refusal)


def request_of(plan: Plan, base: tuple[Measurement, int]) -> Request:
    """A plan as the search wants it."""
    return Request(
        job=plan.job,
        text=plan.text,
        base=base[0],
        base_seq=base[1],
        language=plan.language,
        budget=plan.budget,
        run_id=plan.run_id,
    )


def model_of(settings: Settings, host: Host, key: str) -> ChildModel | None:
    """The model that the settings name, not started yet; its key goes to its own process and to no other."""
    if not settings.model:
        return None
    environment = host.environ
    if key:
        environment[KEY_NAME] = key
    chosen = ModelSettings(model=settings.model, base=settings.model_base or None, timeout_s=settings.model_timeout_s)
    return ChildModel(chosen, environment=environment)
