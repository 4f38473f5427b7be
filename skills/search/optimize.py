"""Owns the one entry of the search: an async iterator of events that ends in a Proposal or a Refusal.

First the tuner (no model needed), then, where a model is set, one round of critic and generator. Every candidate is
judged by the same evaluator as a person's save, recorded with its parent, and buried with a reason where its branch
ends.
Never decides a verdict or a number itself; never touches LSP, processes or databases.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, EvalJob, Measurement, Mode, Refusal
from skills.agents.diagnosis import CriticDiagnosis, diagnose
from skills.agents.tuner import Move, propose_moves
from skills.budget import Budget
from skills.ports import ChatModel, Evaluator, Memory, Progress, Proposal
from skills.search.model_round import ModelRound

LEAST_GAIN = 1.05
"""A proposal must be faster by 5 % by interleaved A/B; less is not worth a person's attention."""
PROMISING = 1.02
"""A candidate this much faster in the fast mode is worth building on and worth an A/B."""
DEPTH = 3
"""How many moves may be stacked."""
LEFT_FOR_MODEL = 2
"""Attempts that the tuner leaves where a model is asked after it: its candidate, and that candidate mended once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to make faster. `job` is the job whose verdict `base` is."""

    job: EvalJob
    text: str
    """The candidate file's whole text."""
    base: Measurement
    base_seq: int
    language: str = "triton"
    budget: Budget = field(default_factory=Budget)
    run_id: str = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One judged text of the search."""

    text: str
    sha: str
    words: str
    measurement: Measurement
    seq: int
    author: str

    @property
    def time_us(self) -> float | None:
        """Median device time of the candidate, or None where it is not correct or was not timed."""
        return self.measurement.result.runtime_us if self.measurement.result.correct else None


async def optimize(
    request: Request, *, evaluator: Evaluator, memory: Memory, model: ChatModel | None = None
) -> AsyncIterator[Progress | Proposal | Refusal]:
    """Search, yielding what happens; the last event is the Proposal or the Refusal."""
    refusal = cannot_start(request)
    if refusal is not None:
        yield refusal
        return
    search = Search(request, evaluator, memory)
    async for event in search.tune(leave=0 if model is None else LEFT_FOR_MODEL):
        yield event
    if model is not None:
        async for event in search.ask_model(ModelRound(model, language=request.language)):
            yield event
    if search.best is not search.base:
        yield Progress(message=f"interleaved A/B against your text: {search.best.words}")
    yield await search.conclude()


def cannot_start(request: Request) -> Refusal | None:
    """Why no search can begin, or None."""
    result = request.base.result
    if not result.correct:
        return Refusal(
            code="not_correct",
            message="only a kernel that is right can be made faster",
            remedy="Make the verdict correct first, then propose again.",
        )
    if result.runtime_us is None:
        return Refusal(
            code="no_gpu",
            message="a proposal needs times, and nothing was timed: " + why_untimed(request.base),
            remedy="Open the folder on a machine with an NVIDIA GPU, for example over Remote-SSH.",
        )
    return None


def why_untimed(base: Measurement) -> str:
    """One clause that names what is missing."""
    if base.environment.card is None:
        return "this machine has no CUDA device"
    return "the verdict was reached at reduced sizes, where nothing is timed"


class Search:
    """The state of one run: what was judged, the best so far, and what is left of the budget."""

    def __init__(self, request: Request, evaluator: Evaluator, memory: Memory) -> None:
        self.request = request
        self.evaluator = evaluator
        self.memory = memory
        self.budget = request.budget
        self.judged: dict[str, Candidate] = {}
        self.best = Candidate(
            text=request.text,
            sha=sha256_text(request.text),
            words="as it stands",
            measurement=request.base,
            seq=request.base_seq,
            author="person",
        )
        self.base = self.best
        self.judged[self.best.sha] = self.best

    async def tune(self, *, leave: int = 0) -> AsyncIterator[Progress]:
        """Greedy moves: all single moves from the best text, then again from the new best, at most DEPTH deep.

        `leave` attempts of the budget are not touched.
        """
        for _depth in range(DEPTH):
            start = self.best
            moves = self._moves(start)
            for move in moves:
                if not self.budget.may(attempts=1 + leave):
                    return
                yield Progress(message=f"tuner: {move.words}", done=len(self.judged), total=len(moves))
                await self.judge(move.apply(start.text), words=_joined(start, move.words), author="tuner", parent=start)
            if self.best is start:
                return

    def _moves(self, start: Candidate) -> list[Move]:
        kernels = self.request.job.problem.kernels or (self.request.job.kernel,)
        diagnosis = diagnose(start.measurement)
        return propose_moves(start.text, language=self.request.language, kernels=kernels, diagnosis=diagnosis)

    async def ask_model(self, round_: ModelRound) -> AsyncIterator[Progress]:
        """One round of critic and generator; a compile or correctness error goes back once."""
        yield Progress(message="model: reading the kernel and its profile")
        written = await round_.write(self.request.text, self.base.measurement, diagnose(self.base.measurement))
        for attempt in range(2):
            self.budget = self.budget.spend(tokens=round_.tokens)
            if isinstance(written, Refusal):
                yield Progress(message=f"model: {written.message}", refusal=written)
                return
            if not self.budget.may(attempts=1):
                return
            yield Progress(message=f"model: judging {written.change}")
            candidate = await self.judge(written.text, words=written.change, author="model", parent=self.base)
            if candidate is None or candidate.measurement.result.correct or attempt == 1:
                return
            yield Progress(message="model: the candidate was refused by the judge, asking once more")
            written = await round_.repair(written, candidate.measurement)

    async def judge(self, text: str, *, words: str, author: str, parent: Candidate) -> Candidate | None:
        """Judge one text, record it, bury it where it is no better; None where it was judged before or refused."""
        sha = sha256_text(text)
        if sha in self.judged:
            return None
        self.budget = self.budget.spend(attempts=1)
        outcome = await self.evaluator.evaluate(self._job(text, sha, author))
        if isinstance(outcome, Refusal):
            return None
        measurement = replace(outcome, parents=(parent.sha,), author=author, cause=Cause.SEARCH)
        seq = await self.memory.append(measurement, text=text, intent=words)
        candidate = Candidate(text=text, sha=sha, words=words, measurement=measurement, seq=seq, author=author)
        self.judged[sha] = candidate
        reason = self._why_not_better(candidate)
        if reason is None:
            self.best = candidate
        else:
            await self.memory.bury(sha, reason=reason)
        return candidate

    def _why_not_better(self, candidate: Candidate) -> str | None:
        result = candidate.measurement.result
        if not result.correct:
            return (
                f"{result.status.value}: {(result.error or '').splitlines()[0] if result.error else 'no reason given'}"
            )
        best_us = self.best.time_us
        if candidate.time_us is None or best_us is None:
            return "not timed"
        if candidate.time_us * PROMISING > best_us:
            return f"no faster: {candidate.time_us:.1f} us against {best_us:.1f} us"
        return None

    def _job(self, text: str, sha: str, author: str, *, compare: bool = False) -> EvalJob:
        job, problem = self.request.job, self.request.job.problem
        return replace(
            job,
            job_id=f"{self.request.run_id}-{len(self.judged)}{'-ab' if compare else ''}",
            cause=Cause.SEARCH,
            mode=Mode.FAST,
            problem=replace(problem, candidate=replace(problem.candidate, text=text)),
            kernel_sha=sha,
            trusted=author != "model",
            compare_with=self.request.text if compare else None,
        )

    async def conclude(self) -> Proposal | Refusal:
        """The best candidate against the base by interleaved A/B: a Proposal, or why there is none."""
        best = self.best
        tried = len(self.judged) - 1
        if best is self.base:
            return Refusal(
                code="no_gain",
                message=_none_of(tried),
                remedy=SEE_MAP if tried else "",
            )
        outcome = await self.evaluator.evaluate(self._job(best.text, best.sha, best.author, compare=True))
        if isinstance(outcome, Refusal):
            return outcome
        measurement = replace(outcome, parents=(self.base.sha,), author=best.author, cause=Cause.SEARCH)
        seq = await self.memory.append(measurement, text=best.text, intent=best.words)
        ratio, reason = admitted(measurement)
        if ratio is None:
            await self.memory.bury(best.sha, reason=reason)
            return Refusal(
                code="no_gain",
                message=f"the best of {tried} candidates ({best.words}) is not offered: {reason}",
                remedy=SEE_MAP,
            )
        return self._proposal(best, measurement, seq, ratio)

    def _proposal(self, best: Candidate, measurement: Measurement, seq: int, ratio: float) -> Proposal:
        job = self.request.job
        return Proposal(
            proposal_id=f"{self.request.run_id}-{best.sha[:12]}",
            path=job.problem.candidate.path,
            kernel=job.kernel,
            base_sha=self.base.sha,
            candidate_sha=best.sha,
            new_text=best.text,
            title=f"{job.kernel}: {ratio:.2f}x faster than your text, right, {best.words}",
            measurement_seq=seq,
            author=best.author,
            change=best.words,
            ratio=ratio,
        )


SEE_MAP = "The map shows what was tried and why each branch ended."


def admitted(measurement: Measurement) -> tuple[float | None, str]:
    """(ratio, '') where the interleaved A/B makes a candidate worth offering, else (None, why not)."""
    if not measurement.result.correct:
        return None, f"judged again it is {measurement.result.status.value}"
    verdict = measurement.ab
    if not verdict:
        return None, "its interleaved A/B against your text could not be had"
    ratio = verdict.get("ratio")
    if not isinstance(ratio, (int, float)) or verdict.get("verdict") != "faster":
        shown = f", ratio {ratio:.3f}" if isinstance(ratio, (int, float)) else ""
        return None, f"interleaved A/B says {verdict.get('verdict', 'nothing')}{shown}"
    if ratio < LEAST_GAIN:
        return None, f"interleaved A/B says faster, but by less than 5 %, ratio {ratio:.3f}"
    return float(ratio), ""


def _none_of(tried: int) -> str:
    if not tried:
        return "there is nothing here that the tuner could turn"
    if tried == 1:
        return "the one candidate was not both right and faster than the text as it stands"
    return f"none of {tried} candidates was right and faster than the text as it stands"


def _joined(start: Candidate, words: str) -> str:
    return words if start.author == "person" else f"{start.words}, {words}"


def headline(diagnosis: CriticDiagnosis | None) -> str:
    """One sentence for the kernel, or ''."""
    return f"{diagnosis.specific_issue}; {diagnosis.recommendation}" if diagnosis else ""
