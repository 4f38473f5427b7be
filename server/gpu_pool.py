"""Owns the worker loops of this machine and which of them gets a job; implements skills.ports.Evaluator.

Never judges, and never imports torch: it learns about devices from the loops. Without a GPU jobs go to the loop that
interprets; the front end always goes to the loop that compiles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evalcore.jobs import EvalJob, Measurement, Refusal
from evalcore.problem import Problem
from server.children.loop import Checked, Hello, LoopPlan, OnStage, WorkerLoop
from server.config import Settings
from server.host import Host
from server.interpreters import Interpreter, choose
from server.lanes import Lane

SPARES = 2
IDLE_S = 300
"""After this long without a job the loops give the card's memory back."""

log = logging.getLogger("odyssey.pool")

_UNTRUSTED = Refusal(
    code="untrusted",
    message="This folder is not trusted, so nothing in it is run",
    remedy="Trust the folder in the editor to have its kernels judged.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """What is known about the workers now."""

    trusted: bool
    interpreter: Interpreter | None
    compile: Hello | None
    interpret: Hello | None
    refusal: Refusal | None
    """Why nothing can be judged, if so."""
    starting: bool
    busy: bool

    @property
    def devices(self) -> tuple[dict[str, Any], ...]:
        """The cards that the compile loop sees."""
        return self.compile.devices if self.compile is not None else ()


@dataclass(slots=True, kw_only=True)
class _Workers:
    """One interpreter's two loops."""

    interpreter: Interpreter
    compile: WorkerLoop
    interpret: WorkerLoop

    async def close(self) -> None:
        await asyncio.gather(self.compile.close(), self.interpret.close())


class GpuPool:
    """Give it jobs; it finds the place."""

    def __init__(self, host: Host, on_change: Callable[[], None]) -> None:
        self._host = host
        self._on_change = on_change
        self._settings = Settings()
        self._editor_python = ""
        self._roots: tuple[str, ...] = ()
        self._trusted = True
        self._workers: asyncio.Task[_Workers | Refusal] | None = None
        self._lanes: dict[str, Lane[Measurement | Refusal]] = {"compile": Lane(), "interpret": Lane()}
        self.on_frame: Callable[[dict[str, Any]], None] | None = None
        """Gets 'opponents' and 'ceilings' frames."""

    def expect(self, roots: tuple[str, ...]) -> None:
        """Project folders that jobs will come from: loops that start later warm their spares for them."""
        self._roots = roots

    def configure(self, settings: Settings, *, editor_python: str | None = None, trusted: bool | None = None) -> None:
        """Take new settings; running loops are ended where they would be started otherwise now."""
        editor_python = self._editor_python if editor_python is None else editor_python
        trusted = self._trusted if trusted is None else trusted
        old = (self._settings.python, self._settings.sandbox, self._settings.device, self._editor_python, self._trusted)
        new = (settings.python, settings.sandbox, settings.device, editor_python, trusted)
        self._settings, self._editor_python, self._trusted = settings, editor_python, trusted
        if old != new and self._workers is not None:
            self.restart()

    def restart(self) -> None:
        """End the loops; the next job, or `start`, makes new ones."""
        old, self._workers = self._workers, None
        if old is not None:
            asyncio.ensure_future(_end(old))
        self._on_change()

    def start(self) -> None:
        """Bring the loops up in the background, because a kernel is in sight."""
        if self._trusted and self._workers is None:
            self._workers = asyncio.ensure_future(self._begin())
            self._workers.add_done_callback(lambda _: self._on_change())
            self._on_change()

    async def up(self) -> Refusal | None:
        """Wait until the loops that judge here are up; why they are not, if so."""
        workers = await self._ready()
        if isinstance(workers, Refusal):
            return workers
        ready = await workers.compile.ready()
        if isinstance(ready, Hello) and (not ready.devices or self._settings.device == "cpu"):
            ready = await workers.interpret.ready()
        return ready if isinstance(ready, Refusal) else None

    async def close(self) -> None:
        """End everything."""
        old, self._workers = self._workers, None
        self._trusted = False
        if old is not None:
            await _end(old)

    @property
    def facts(self) -> PoolFacts:
        """What is known now."""
        workers = self._known()
        refusal = workers if isinstance(workers, Refusal) else None
        both = (workers.compile.state, workers.interpret.state) if isinstance(workers, _Workers) else (None, None)
        refused = next((each for each in both if isinstance(each, Refusal)), None)
        starting = self._workers is not None and (
            workers is None or (isinstance(workers, _Workers) and workers.compile.state is None)
        )
        return PoolFacts(
            trusted=self._trusted,
            interpreter=workers.interpreter if isinstance(workers, _Workers) else None,
            compile=both[0] if isinstance(both[0], Hello) else None,
            interpret=both[1] if isinstance(both[1], Hello) else None,
            refusal=refusal or refused,
            starting=starting,
            busy=any(lane.busy for lane in self._lanes.values()),
        )

    @property
    def pids(self) -> tuple[int, ...]:
        """The loops that run now."""
        workers = self._known()
        if not isinstance(workers, _Workers):
            return ()
        return tuple(pid for loop in (workers.compile, workers.interpret) if (pid := loop.pid) is not None)

    async def evaluate(self, job: EvalJob, on_stage: OnStage | None = None) -> Measurement | Refusal:
        """Judge one text. Cancelling the awaiting task cancels the job and frees the device."""
        workers = await self._ready()
        if isinstance(workers, Refusal):
            return workers
        flavour = await self._flavour(workers, job)
        if isinstance(flavour, Refusal):
            return flavour
        loop = workers.compile if flavour == "compile" else workers.interpret
        self._on_change()
        try:
            return await self._lanes[flavour].run(job.cause, lambda: loop.evaluate(job, on_stage))
        finally:
            self._on_change()

    async def check(self, **fields: Any) -> Checked | Refusal:
        """The compiler's front end on a text: path, text, language, kernels, overlays, target."""
        workers = await self._ready()
        if isinstance(workers, Refusal):
            return workers
        return await workers.compile.check(self._host.new_id(), **fields)

    def prepare(self, problem: Problem) -> None:
        """A hint: this problem will be judged soon."""
        loop = self._judging_loop()
        if loop is not None:
            loop.tell("prepare", problem=problem)

    def measure_opponents(self, problem: Problem, device: str) -> None:
        """Ask for the opponents' times in the background; they arrive as an 'opponents' frame."""
        loop = self._judging_loop()
        if loop is not None and self.facts.devices:
            loop.tell("opponents", problem=problem, device=device)

    def _judging_loop(self) -> WorkerLoop | None:
        workers = self._known()
        if not isinstance(workers, _Workers):
            return None
        gpu = bool(self.facts.devices) and self._settings.device != "cpu"
        return workers.compile if gpu else workers.interpret

    def _known(self) -> _Workers | Refusal | None:
        if self._workers is None or not self._workers.done() or self._workers.cancelled():
            return None
        return self._workers.result()

    async def _ready(self) -> _Workers | Refusal:
        if not self._trusted:
            return _UNTRUSTED
        if isinstance(self._known(), Refusal):
            self._workers = None  # what was missing may be there now
        self.start()
        assert self._workers is not None
        return await asyncio.shield(self._workers)

    async def _begin(self) -> _Workers | Refusal:
        await asyncio.to_thread(self._host.sweep_scratch)
        interpreter = await choose(self._host, self._settings.python, self._editor_python)
        if isinstance(interpreter, Refusal):
            return interpreter
        workers = _Workers(
            interpreter=interpreter,
            compile=self._loop("compile", interpreter),
            interpret=self._loop("interpret", interpreter),
        )
        _background(workers.compile.ready())
        if not self._host.has_nvidia() or self._settings.device == "cpu":
            _background(workers.interpret.ready())
        return workers

    def _loop(self, flavour: str, interpreter: Interpreter) -> WorkerLoop:
        options = {
            "device": self._settings.device,
            "spares": SPARES,
            "idle_s": IDLE_S,
            "sandbox": self._settings.sandbox,
            "roots": list(self._roots),
        }
        plan = LoopPlan(flavour=flavour, python=interpreter.path, options=options)
        loop = WorkerLoop(self._host, plan, self._on_change)
        loop.on_frame = self._take
        return loop

    def _take(self, frame: dict[str, Any]) -> None:
        if self.on_frame is not None:
            self.on_frame(frame)

    async def _flavour(self, workers: _Workers, job: EvalJob) -> str | Refusal:
        if job.device == "cpu":
            return "interpret"
        ready = await workers.compile.ready()
        if isinstance(ready, Refusal):
            return ready
        if ready.devices:
            return "compile"
        if job.device.startswith("cuda"):
            return Refusal(
                code="no_gpu",
                message=f"{job.device} was asked for, and {workers.interpreter.path} sees no CUDA device",
                remedy="Set odyssey.device to auto to judge with Triton's interpreter on the CPU.",
            )
        return "interpret"


async def _end(workers: asyncio.Task[_Workers | Refusal]) -> None:
    """End loops that may still be coming up."""
    if not workers.done():
        workers.cancel()
    found = (await asyncio.gather(workers, return_exceptions=True))[0]
    if isinstance(found, _Workers):
        await found.close()
    elif isinstance(found, Exception):
        log.error("the workers could not be started", exc_info=found)


_TASKS: set[asyncio.Future[Any]] = set()


def _background(work: Any) -> None:
    """Keep a reference: the event loop alone would let a running task be collected."""
    task = asyncio.ensure_future(work)
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)
