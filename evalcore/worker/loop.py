"""Owns the worker's loop: frames in, children out, the judge's verdict back. Never opens a card, never runs a candidate.

One thread, and forks only: torch and triton are imported once, and from then on every process of somebody's code is a
fork of this one. One evaluation runs at a time; what is asked beside it waits or runs in children of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import traceback
from collections import deque
from typing import Any

from evalcore import wire
from evalcore.fingerprint import evaluator_sha, problem_sha
from evalcore.gpu import scratch as folders
from evalcore.gpu.device import preload
from evalcore.gpu.warming import before_fork
from evalcore.jobs import EvalJob, Refusal
from evalcore.problem import Problem
from evalcore.worker import mains
from evalcore.worker.background import Background
from evalcore.worker.backward import backward_trials
from evalcore.worker.beyond import beyond
from evalcore.worker.call_on import alongside
from evalcore.worker.checks import Checks
from evalcore.worker.children import Family
from evalcore.worker.desks import Desks
from evalcore.worker.evaluation import Evaluation, Refused, Tools
from evalcore.worker.hello import hello, look_around
from evalcore.worker.lines import Lines
from evalcore.worker.processes import adopt_orphans, set_dumpable
from evalcore.worker.remembered import Remembered
from evalcore.worker.report import measurement
from evalcore.worker.spares import Spares
from evalcore.worker.station import Options, Station


def run(*, channel_in: int, channel_out: int, flavour: str, scratch: str) -> int:
    """The loop from start to end. Returns the process's exit status."""
    set_dumpable(False)
    adopt_orphans()
    folder = folders.make_loop_folder(scratch)
    stack = preload()
    if stack.triton is not None:
        before_fork()
    if stack.torch is not None:
        mains.preload(flavour)
    gc.collect()
    gc.freeze()
    return asyncio.run(_main(channel_in, channel_out, flavour, folder, scratch, stack))


async def _main(channel_in: int, channel_out: int, flavour: str, folder: str, scratch: str, stack: Any) -> int:
    loop = asyncio.get_running_loop()
    station = Station(
        loop=loop,
        family=Family(loop),
        folder=folder,
        cache=os.path.join(os.path.abspath(scratch), "ceilings"),
        flavour=flavour,
        stack=stack,
        evaluator=evaluator_sha(),
    )
    lines = Lines(channel_in, channel_out, folder=folder)
    station.say = lambda level, message: lines.send("log", level=level, message=message)
    worker = Worker(station, lines)
    lines.listen(worker.on_line, worker.stop)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
        loop.add_signal_handler(number, worker.stop)
    try:
        await worker.work()
    finally:
        station.family.end_all()
        lines.flush_now()
        folders.sweep_slowly(folder)
    return 0


class Worker:
    """Frames to deeds."""

    def __init__(self, station: Station, lines: Lines) -> None:
        self.station, self.lines = station, lines
        self.tools = Tools(station=station, desks=Desks(station), spares=Spares(station), remembered=Remembered())
        self.checks = Checks(station, lines)
        self.background = Background(self.tools, lines, busy=lambda: bool(self._queue) or self._running is not None)
        self._queue: deque[EvalJob] = deque()
        self._running: tuple[str, asyncio.Task[None]] | None = None
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End in order: the server is gone, or asks for it."""
        self._stopping.set()
        self._wake.set()

    def on_line(self, line: bytes) -> None:
        """One frame. Whatever is wrong with it is said and changes nothing."""
        try:
            frame = wire.parse(line)
            self._on_frame(frame)
        except wire.WireError as fault:
            self.lines.send("log", level="error", message=f"a frame that cannot be understood: {fault}")

    def _on_frame(self, frame: dict[str, Any]) -> None:
        name = frame["frame"]
        if name == "hello":
            self._on_hello(frame)
        elif name == "evaluate":
            job = wire.decode(EvalJob, frame.get("job"))
            self._queue.append(job)
            self.lines.send("stage", job_id=job.job_id, stage="queued", done=len(self._queue), total=len(self._queue))
            self.background.give_way()
            self._wake.set()
        elif name == "cancel":
            self._cancel(str(frame.get("job_id")))
        elif name == "check":
            self.checks.ask(frame)
        elif name == "prepare":
            self.background.prepare(wire.decode(Problem, frame.get("problem")))
        elif name == "ceilings":
            self.background.ceilings(str(frame.get("device") or "cuda:0"))
        elif name == "opponents":
            device = str(frame.get("device") or "cuda:0")
            self.background.opponents(wire.decode(Problem, frame.get("problem")), device)
        elif name == "shutdown":
            self.stop()
        else:
            raise wire.WireError(f"no frame {name!r}")

    def _on_hello(self, frame: dict[str, Any]) -> None:
        if frame.get("protocol") != wire.PROTOCOL:
            words = f"the server speaks protocol {frame.get('protocol')!r}, this worker {wire.PROTOCOL}"
            self.lines.send("log", level="error", message=f"{words}: restart the workers")
        self.station.options = Options.read(frame.get("options"))
        self.station.ipc = self.station.options.ipc
        self.background.touch()

    def _cancel(self, job_id: str) -> None:
        for job in list(self._queue):
            if job.job_id == job_id:
                self._queue.remove(job)
                self._refuse(job_id, _CANCELLED)
        if self._running is not None and self._running[0] == job_id:
            self._running[1].cancel()

    def _refuse(self, job_id: str, refusal: Refusal) -> None:
        self.lines.send("refused", job_id=job_id, refusal=refusal)

    async def work(self) -> None:
        """Until the server is gone: jobs in order, and what is useful between them."""
        await look_around(self.station)
        self.lines.send("hello", **hello(self.station))
        self.background.start()
        while not self._stopping.is_set():
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            job = self._queue.popleft()
            task = self.station.loop.create_task(self._job(job))
            self._running = (job.job_id, task)
            stopping = self.station.loop.create_task(self._stopping.wait())
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            self._running = None
            self.background.touch()
        self.background.stop()

    async def _job(self, job: EvalJob) -> None:
        """The job fence: whatever happens to one job, the next one is served."""
        try:
            await self._evaluate(job)
        except Refused as reason:
            self._refuse(job.job_id, reason.refusal)
        except asyncio.CancelledError:
            self._refuse(job.job_id, _CANCELLED)
        except Exception as fault:  # noqa: BLE001 - the job fence
            self.lines.send("log", level="error", message=traceback.format_exc(limit=-12))
            words = f"the evaluation failed by a fault of ours: {type(fault).__name__}: {fault}"
            self._refuse(job.job_id, Refusal(code="internal", message=words, remedy="try again; the log has more"))

    async def _evaluate(self, job: EvalJob) -> None:
        evaluation = Evaluation(self.tools, job, problem_sha(job.problem))
        evaluation.stage = lambda stage, done, total: self.lines.send(
            "stage", job_id=job.job_id, stage=stage, done=done, total=total
        )
        evaluation.alongside, evaluation.backward = alongside, backward_trials
        try:
            await evaluation.run(beyond)
            evaluation.stage("judge", 0, 1)
            done = measurement(evaluation)
            self.lines.send("done", job_id=job.job_id, measurement=done)
            self.background.after(evaluation, done)
        except BaseException:
            evaluation.release_second()
            raise


_CANCELLED = Refusal(code="cancelled", message="cancelled", remedy="evaluate again")
