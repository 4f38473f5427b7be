"""Owns one evaluation from job to facts: what is asked of whom, in which order. Never computes and never judges.

The order: referee and spare side by side; sizes; load while inputs are made; trials; time; the rest of the facts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evalcore.facts import BuildLog, Crash
from evalcore.jobs import EvalJob, Mode
from evalcore.judge import judge
from evalcore.problem import Case, Problem, TensorSpec
from evalcore.run_facts import RunFacts
from evalcore.screen import ScreenHit
from evalcore.worker.desks import Desk, Desks, ReferenceFailed, Untransferable, trial_seed
from evalcore.worker.exchange import CaseFailed, Exchange
from evalcore.worker.gathered import Gathered, Refused, device_of, launched, line_case, screen_candidate
from evalcore.worker.memory import Watch
from evalcore.worker.remembered import Remembered
from evalcore.worker.sizes import Choice, TooLarge, choose
from evalcore.worker.spares import CannotWarm, Spare, Spares
from evalcore.worker.stages import Stages
from evalcore.worker.station import Station

TRIALS = 5
_AHEAD_BYTES = 8 << 30
"""Answers to all trials at once hold this much at most."""
FIRST_TRY_S = 10.0
"""Under the interpreter a first run that takes longer is tried again at a smaller size, where there is one."""


Beyond = Callable[["Evaluation"], Awaitable[None]]
"""What is done while the case still lives and its trials were right: timing, neighbours, probes."""


async def _plainly(work: Awaitable[None]) -> None:
    await work


class _Again(Exception):
    """Go on with a fresh case at another size."""

    def __init__(self, choice: Choice) -> None:
        super().__init__(choice.case.name)
        self.choice = choice


@dataclass(slots=True, kw_only=True)
class Tools:
    """What every evaluation of a loop works with."""

    station: Station
    desks: Desks
    spares: Spares
    remembered: Remembered


class Evaluation:
    """One job. `run` gathers, `facts` is what the judge gets."""

    def __init__(self, tools: Tools, job: EvalJob, sha: str) -> None:
        self.tools, self.station = tools, tools.station
        self.job, self.sha = job, sha
        self.problem: Problem = job.problem
        self.stages = Stages(self.station.loop)
        self.got = Gathered()
        self.screen: tuple[ScreenHit, ...] | None = None
        self.device = device_of(self.station, job)
        self.seed = 0
        self.line = line_case(job)
        self.stage: Callable[[str, int, int], None] = lambda stage, done, total: None
        self.specs: tuple[TensorSpec, ...] = ()
        """Of the inputs at the case on the line."""
        self.parameters: dict[str, tuple[int, ...]] = {}
        """The candidate's own, by name."""
        self.seeds_used: list[int] = []
        self.cases_used: list[str] = []
        """Sizes beside the given ones; the referee forgets them afterwards."""
        self.alongside: Beyond | None = None
        """Begun with the first attempt on a card, in a second case; `joined` waits for it."""
        self.backward: Beyond | None = None
        """The trials of gradients, for problems that have them."""
        self.second: Exchange | None = None
        """That second case; whoever uses it last releases it."""
        self._beside: asyncio.Task[None] | None = None
        self._desk: Desk | None = None
        self._exchange: Exchange | None = None
        self._watch: Watch | None = None

    @property
    def desk(self) -> Desk:
        """The referee of this problem."""
        if self._desk is None:
            raise RuntimeError("no referee yet")
        return self._desk

    @property
    def exchange(self) -> Exchange:
        """The conversation with the case of this job."""
        if self._exchange is None:
            raise RuntimeError("no case yet")
        return self._exchange

    @property
    def on_card(self) -> bool:
        """True where a CUDA device runs it."""
        return self.device != "cpu"

    @property
    def thorough(self) -> bool:
        """More than the fast mode's trials and timing."""
        return self.job.mode is Mode.THOROUGH

    def seeds(self, case: Case, count: int, kind: str = "") -> list[int]:
        """Seeds of a case's trials, a function of the evaluation's base seed."""
        found = [trial_seed(self.seed, kind or case.name, index) for index in range(count)]
        self.seeds_used += found
        return found

    async def run(self, beyond: Beyond) -> None:
        """Gather all facts. Raises Refused; a case that ends or a reference that fails is a fact, not an exception."""
        tools = self.tools
        self._desk = desk = tools.desks.get(self.problem, self.sha, self.device, self.job.seed)
        desk.in_use += 1
        self.seed = desk.take_seed(self.job.seed)
        try:
            await self._gather(beyond)
        except CaseFailed as failed:
            self.got.crash = failed.crash
        except ReferenceFailed as failed:
            self.got.reference_crash = failed.crash
            if self.on_card:
                tools.desks.discard(desk)
        except TooLarge as reason:
            self.got.crash = Crash(kind="cannot_interpret", message=str(reason))
        finally:
            desk.in_use -= 1
            await self._stop_beside()
            self._leave()

    async def _gather(self, beyond: Beyond) -> None:
        self.stage("screen", 0, 1)
        taking = self.station.loop.create_task(self._take_spare())
        try:
            with self.stages.timed("prepare"):
                choice = await choose(self.desk, self.line, free_bytes=self.free_bytes())
        except BaseException:
            taking.add_done_callback(self._bury_unused)
            raise
        with self.stages.timed("spare"):
            spare = await taking
        while True:
            self._enter(spare)
            try:
                await self._attempt(choice, beyond)
                return
            except _Again as again:
                choice = again.choice
                self._leave()
                self.got = Gathered()
                spare = await self._take_spare()

    async def _take_spare(self) -> Spare:
        try:
            return await self.tools.spares.take(self.device, self.problem)
        except CannotWarm as reason:
            words = f"no process can be made ready on {self.device}: {reason}"
            raise Refused("cannot_start", words, "see the log; `odyssey doctor` tells what is missing") from None

    def _bury_unused(self, task: asyncio.Task[Spare]) -> None:
        if not task.cancelled() and task.exception() is None:
            self.station.bury(task.result().child, task.result().folder)

    def free_bytes(self) -> int | None:
        """What inputs may take of the card; None on a CPU."""
        card = self.station.card(self.device)
        return int(card["memory_bytes"] * 0.8) if card is not None else None

    def _enter(self, spare: Spare) -> None:
        self._exchange = Exchange(self.desk, spare, self.job.limits)
        limit = min(self.job.limits.memory_bytes, self.station.memory_limit_bytes)
        self._watch = Watch(spare.child, limit)

    async def _attempt(self, choice: Choice, beyond: Beyond) -> None:
        """Everything at one size. Raises _Again to go on at a smaller one."""
        case = choice.case
        self.line = case
        self.got.cases = [case]
        if self.alongside is not None and self.on_card and self._beside is None:
            self._beside = self.station.loop.create_task(_plainly(self.alongside(self)))
        try:
            await self._ready(case)
            await self._trials(case, choice)
            if self.problem.backward and self.got.crash is None and self.backward is not None:
                await self.backward(self)
        except ReferenceFailed as failed:
            if choice.smaller and failed.crash.kind in ("out_of_memory", "timeout", "killed"):
                raise _Again(Choice(case=choice.smaller[0], smaller=choice.smaller[1:])) from None
            raise
        except Untransferable as reason:
            if self.station.ipc and self.on_card:
                # once refused, always refused: from now on tensors cross through the host
                self.station.ipc = False
                self.tools.spares.drop()
                raise _Again(choice) from None
            raise CaseFailed(Crash(kind="killed", message=f"its output cannot be read: {reason}")) from None
        if self.got.crash is None:
            await self.learn()
            if judge(self.facts()).result.correct:
                await beyond(self)

    async def _ready(self, case: Case) -> None:
        """Reference and candidate loaded at a case's sizes, parameters alike, storage for the inputs lent."""
        with self.stages.timed("reference"):
            opened = await self.desk.open(case)
        self.got.flags, self.got.reference_files = opened.flags, opened.files
        seeds = self.seeds(case, TRIALS)
        self.stage("build", 0, 1)
        how = {"winners": self.tools.remembered.winners(self.sha)}
        loading = self.station.loop.create_task(self.exchange.load(self.problem, case, opened, how=how))
        making = self.station.loop.create_task(self._inputs(case, seeds))
        # let both questions go out: the screen then runs while the children work
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self._screen()
        try:
            with self.stages.timed("load"):
                await asyncio.wait({loading, making}, return_when=asyncio.FIRST_EXCEPTION)
            if loading.done():
                loading.result()
            specs, own = await making, await loading
        finally:
            loading.cancel()
            making.cancel()
        self.specs, self.parameters = specs, own
        await self.exchange.make("inputs", specs)
        await self.exchange.share_state(case, opened, own)

    async def _inputs(self, case: Case, seeds: list[int]) -> tuple[TensorSpec, ...]:
        stocked = await self.desk.stock(case, seeds[0])
        study = await self.desk.study(case, (seeds[0], seeds[1]))
        self.got.probes = study.probes
        self.got.work = [(case.name, study.work)] if study.work is not None else []
        return stocked.specs

    def _screen(self) -> None:
        if self.screen is None:
            with self.stages.timed("screen"):
                self.screen = tuple(screen_candidate(self.problem))

    async def _trials(self, case: Case, choice: Choice) -> None:
        self.stage("trials", 0, TRIALS)
        seeds = self.seeds(case, TRIALS)
        if self.on_card:
            # the first call compiles: meanwhile the referee works out the answers to the others
            self.station.later(_plainly(self._answer_ahead(case, seeds[1:])))
        for index, seed in enumerate(seeds):
            first_try = index == 0 and bool(choice.smaller) and not self.on_card
            limit = min(self.job.limits.run_s, FIRST_TRY_S) if first_try else None
            with self.stages.timed("trials" if index else "first_trial"):
                trial = await self.exchange.trial(case, seed, run_s=limit)
            if first_try and trial.crash is not None and trial.crash.kind == "timeout":
                raise _Again(Choice(case=choice.smaller[-1]))
            self.got.trials.append(trial)
            self.stage("trials", index + 1, TRIALS)
            if trial.crash is not None:
                self.got.crash = trial.crash
                return
        self.got.canaries = tuple(self.exchange.canaries)
        self.got.build = BuildLog(seconds=self.exchange.build_s, cached=False)

    async def _answer_ahead(self, case: Case, seeds: list[int]) -> None:
        with contextlib.suppress(ReferenceFailed, Untransferable):
            for seed in seeds:
                made = await self.desk.stock(case, seed)
                if len(seeds) * (made.input_bytes + 4 * made.output_bytes) > _AHEAD_BYTES:
                    return

    async def learn(self) -> None:
        """Ask the case for its own facts; again after timing, for counts of launches grow."""
        with self.stages.timed("learn"):
            self.got.learned = await self.exchange.learn()
        self.got.canaries = tuple(self.exchange.canaries)
        self.tools.remembered.keep_winners(self.sha, self.got.learned.winners)

    async def joined(self) -> None:
        """Wait for what runs alongside: nothing else may run while time is taken."""
        if self._beside is not None:
            with self.stages.timed("beside"):
                await self._beside

    async def _stop_beside(self) -> None:
        if self._beside is not None and not self._beside.done():
            self._beside.cancel()
            await asyncio.wait([self._beside])

    def release_second(self) -> None:
        """End the second case, if there is one."""
        if self.second is not None:
            exchange, self.second = self.second, None
            exchange.leave()

    def facts(self) -> RunFacts:
        """What the judge gets."""
        got, learned = self.got, self.got.learned
        return RunFacts(
            problem=self.problem,
            mode=self.job.mode,
            trusted=self.job.trusted,
            interpreted=not self.on_card,
            cases=tuple(got.cases),
            line_case=self.line.name,
            trials=tuple(got.trials),
            samples=tuple(got.samples),
            work=tuple(got.work),
            ceilings=self.station.ceilings.get(self.device),
            build=got.build,
            crash=got.crash,
            reference_crash=got.reference_crash,
            screen=self.screen or (),
            kernels=learned.kernels if learned is not None else (),
            launched=launched(self.problem, learned) if learned is not None else None,
            tampered=learned.tampered if learned is not None else (),
            called_reference=learned.reference_called if learned is not None else False,
            threads_left=learned.threads_left if learned is not None else None,
            canaries=got.canaries,
            profile=got.profile,
            outside=got.outside,
            probes=got.probes,
            notes=learned.notes if learned is not None else (),
            opponents=self.tools.remembered.opponents(self.sha, self.device),
        )

    def _leave(self) -> None:
        """Let go of the case and of what the referee holds for it; what takes time happens after the verdict."""
        if self._watch is not None:
            self._watch.stop()
        if self._exchange is None:
            return
        exchange, self._exchange = self._exchange, None
        exchange.leave(seeds=tuple(self.seeds_used), cases=tuple(self.cases_used))
        self.seeds_used, self.cases_used = [], []
