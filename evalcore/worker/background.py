"""Owns what the loop does when nobody waits: spares, input sets, roofs, opponents, comparison with the text before.

Everything here gives way to a job at once, and is taken up again afterwards. After a quiet time it gives all back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from evalcore.fingerprint import problem_sha
from evalcore.jobs import EvalJob, Measurement
from evalcore.problem import Case, Problem
from evalcore.worker.compared import compared
from evalcore.worker.desks import Desk, ReferenceFailed, Untransferable
from evalcore.worker.evaluation import TRIALS, Evaluation, Tools
from evalcore.worker.lines import Lines
from evalcore.worker.reference_time import reference_samples
from evalcore.worker.report import measurement
from evalcore.worker.roofs import measure_roofs
from evalcore.worker.sizes import TooLarge, choose
from evalcore.worker.spares import CannotWarm
from evalcore.worker.station import roots_of
from evalcore.worker.stubs import Stubs

Work = Callable[[], Coroutine[Any, Any, None]]
_TICK_S = 5.0


class Background:
    """One piece of work at a time, newest need first; a job interrupts it."""

    def __init__(self, tools: Tools, lines: Lines, *, busy: Callable[[], bool]) -> None:
        self._tools, self._station, self._lines = tools, tools.station, lines
        self._busy = busy
        self._stubs = Stubs(self._station)
        self._urgent: deque[Work] = deque()
        """What belongs to a verdict that is just out, or was asked for; before making spares."""
        self._later: deque[Work] = deque()
        """What may take long."""
        self._stock: tuple[Desk, Case] | None = None
        self._now: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None
        self._last = self._station.loop.time()

    def start(self) -> None:
        """Begin; the machine's facts are known now."""
        station = self._station
        judges_here = bool(station.devices) != station.interpreted
        device = station.device_for("auto")
        if judges_here and device is not None and station.options.roots:
            self._tools.spares.expect(device, station.options.roots)
        self._runner = station.loop.create_task(self._run())

    def stop(self) -> None:
        """The loop ends."""
        if self._runner is not None:
            self._runner.cancel()

    def touch(self) -> None:
        """Something happened: the quiet time starts anew."""
        self._last = self._station.loop.time()
        self._wake.set()

    def give_way(self) -> None:
        """A job has come: stop what is going on; work that was interrupted is done later."""
        self.touch()
        if self._now is not None:
            self._now.cancel()

    def prepare(self, problem: Problem) -> None:
        """A file was opened: make its referee, its sets, and the reference's time."""
        self._urgent.append(lambda: self._prepare(problem))
        self.touch()

    def ceilings(self, device: str) -> None:
        """Measure the card's roofs and send them."""
        self._later.appendleft(lambda: self._ceilings(device))
        self.touch()

    def opponents(self, problem: Problem, device: str) -> None:
        """Measure torch's own attempts at a problem and send the rows."""
        self._later.append(lambda: self._opponents(problem, device))
        self.touch()

    def after(self, evaluation: Evaluation, done: Measurement) -> None:
        """A verdict is out: compare with the text before where asked, and stock up for the next save."""
        job = evaluation.job
        if job.compare_with and done.result.correct and evaluation.on_card:
            text = job.compare_with
            self._urgent.appendleft(lambda: self._compare(evaluation, job, text))
        else:
            evaluation.release_second()
        learned = evaluation.got.learned
        signatures = self._stubs.new(learned.launchers) if learned is not None and done.result.correct else []
        if signatures:
            self._urgent.append(lambda: self._stubs.build(signatures))
        if evaluation.got.reference_crash is None and evaluation.desk.alive:
            self._stock = (evaluation.desk, evaluation.line)
        if evaluation.on_card and evaluation.device not in self._station.ceilings and done.result.correct:
            self.ceilings(evaluation.device)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            if self._busy():
                await self._wake.wait()
                continue
            work = self._next()
            if work is None:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _TICK_S)
                self._quiet()
                continue
            await self._do(work)

    def _next(self) -> Work | None:
        spares = self._tools.spares
        if self._urgent:
            return self._urgent.popleft()
        if spares.wanting():
            return self._refill
        if self._stock is not None:
            return self._stock_up
        return self._later.popleft() if self._later else None

    async def _do(self, work: Work) -> None:
        self._now = self._station.loop.create_task(work())
        await asyncio.wait([self._now])
        task, self._now = self._now, None
        if task.cancelled():
            if work not in (self._refill, self._stock_up):
                self._later.append(work)
            return
        fault = task.exception()
        if isinstance(fault, (ReferenceFailed, Untransferable, CannotWarm, TooLarge)):
            self._lines.send("log", level="info", message=f"{type(fault).__name__}: {fault}")
            if isinstance(fault, CannotWarm):
                self._tools.spares.give_up()
            self._stock = None
        elif fault is not None:
            self._lines.send("log", level="error", message=f"background: {type(fault).__name__}: {fault}")
            self._stock = None

    def _quiet(self) -> None:
        if self._busy():
            return
        self._tools.spares.thin()
        if self._station.loop.time() - self._last > self._station.options.idle_s:
            self._tools.spares.rest()
            self._tools.desks.drop()
            self._stock = None

    async def _refill(self) -> None:
        await self._tools.spares.make_one()

    async def _stock_up(self) -> None:
        if self._stock is None:
            return
        desk, case = self._stock
        if not desk.alive or not await desk.stock_ahead(case, TRIALS):
            self._stock = None

    async def _prepare(self, problem: Problem) -> None:
        station, tools = self._station, self._tools
        device = station.device_for("auto")
        if device is None or station.stack.torch is None or not problem.cases:
            return
        tools.spares.expect(device, roots_of(problem))
        desk = tools.desks.get(problem, problem_sha(problem), device)
        card = station.card(device)
        free = int(card["memory_bytes"] * 0.8) if card is not None else None
        case = (await choose(desk, problem.cases[0], free_bytes=free)).case
        await desk.open(case)
        self._stock = (desk, case)
        if card is not None and case.timed:
            from evalcore.stats import FAST
            from evalcore.wire import encode

            await reference_samples(tools, desk, case, encode(FAST))
        self._lines.send("prepared", problem_sha=desk.sha, case=case.name)

    async def _ceilings(self, device: str) -> None:
        found, reason = await measure_roofs(self._station, device)
        self._lines.send("ceilings", ceilings=found, reason=reason, device=device)

    async def _opponents(self, problem: Problem, device: str) -> None:
        from evalcore.worker.rivals import measure_rivals

        sha = problem_sha(problem)
        rows = await measure_rivals(self._tools, problem, sha, device)
        self._tools.remembered.keep_opponents(sha, device, rows)
        self._lines.send("opponents", problem_sha=sha, opponents=rows)

    async def _compare(self, evaluation: Evaluation, job: EvalJob, text: str) -> None:
        try:
            ab = await compared(evaluation, text)
        finally:
            evaluation.release_second()
        # None is said too: whoever asked for the comparison waits for it
        self._lines.send("amended", job_id=job.job_id, measurement=measurement(evaluation, ab=ab))
