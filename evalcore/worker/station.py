"""Owns what all parts of the loop share: family, folders, options, the machine's facts. Never holds a job's state."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from evalcore.facts import Ceilings
from evalcore.gpu import sandbox, scratch
from evalcore.gpu.device import Stack
from evalcore.gpu.lock import DeviceLock
from evalcore.worker.birth import FAULT_STATUS
from evalcore.worker.children import Child, Family
from evalcore.worker.memory import total_bytes
from evalcore.worker.settle import Settling
from evalcore.worker.stages import Stages

_FEW_THREADS = 4
_LOCK_EVERY_S = 0.004
_LOCK_MOST_S = 60.0
_LOCK_SAY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the server's hello asks for."""

    device: str = "auto"
    spares: int = 2
    idle_s: float = 300.0
    sandbox: bool = True
    ipc: bool = True
    """False sends tensors through the host, as where device memory cannot be shared (WSL)."""
    roots: tuple[str, ...] = ()
    """Project folders, where known ahead: spares made for them can be used for their jobs."""

    @staticmethod
    def read(given: Any) -> Options:
        """Options from a hello frame; what does not fit keeps its default."""
        options = Options()
        if not isinstance(given, dict):
            return options
        for name, kind in (("device", str), ("spares", int), ("sandbox", bool), ("ipc", bool)):
            if isinstance(given.get(name), kind):
                options = replace(options, **{name: given[name]})
        if isinstance(given.get("idle_s"), (int, float)):
            options = replace(options, idle_s=float(given["idle_s"]))
        roots = given.get("roots")
        if isinstance(roots, list) and all(isinstance(each, str) for each in roots):
            options = replace(options, roots=tuple(roots))
        return options


@dataclass(slots=True)
class Station:
    """The loop's shared state."""

    loop: asyncio.AbstractEventLoop
    family: Family
    folder: str
    """This loop's own folder."""
    cache: str
    """A folder that outlives this loop: measured roofs."""
    flavour: str
    stack: Stack
    evaluator: tuple[str, str]
    """(sha256, md5) of evalcore's sources."""
    options: Options = field(default_factory=Options)
    devices: list[dict[str, Any]] = field(default_factory=list)
    why_no_device: str = ""
    isolation: tuple[str, ...] = ()
    """Layers that a child really got."""
    layers: tuple[str, ...] = sandbox.LAYERS
    """Layers to ask for; shorter where a driver does not bear all of them."""
    ipc: bool = True
    """False once exporting device memory was refused: then tensors cross through the host."""
    ceilings: dict[str, Ceilings] = field(default_factory=dict)
    """By device, 'cuda:N'."""
    say: Callable[[str, str], None] = lambda level, message: None
    """(level, message) for the server's log."""
    stubs_harvested: bool = False
    """Whether a first warm case has left its driver's stub in `stubs`."""
    _count: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _burials: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def interpreted(self) -> bool:
        """True where this loop's children run Triton's interpreter on the CPU."""
        return self.flavour == "interpret"

    def device_for(self, wanted: str) -> str | None:
        """'cpu' or 'cuda:N' for a job's wish; None where this loop cannot serve it."""
        if wanted == "auto" and self.options.device != "auto":
            wanted = self.options.device
        if self.interpreted:
            return "cpu" if wanted in ("auto", "cpu") else None
        if wanted == "auto":
            return "cuda:0" if self.devices else None
        known = {f"cuda:{each['index']}" for each in self.devices}
        return wanted if wanted in known else None

    def card(self, device: str) -> dict[str, Any] | None:
        """The facts of 'cuda:N', or None."""
        return next((each for each in self.devices if f"cuda:{each['index']}" == device), None)

    def lock(self, device: str) -> DeviceLock:
        """A hold of its own on the machine-wide lock of a device: our own parts exclude each other with it as well."""
        card = self.card(device)
        return DeviceLock(card["uuid"] if card is not None else device)

    @property
    def stubs(self) -> str:
        """Compile cache with what processes of ours made before they ran anybody's code; copied into each case's own."""
        return os.path.join(self.folder, "stubs")

    def child_folder(self, kind: str) -> str:
        """A fresh scratch folder for one child."""
        self._count += 1
        return scratch.make_child_folder(self.folder, f"{kind}-{self._count}")

    def settling(self, folder: str, device: str, roots: tuple[str, ...]) -> Settling:
        """How a child settles in for one project."""
        policy = sandbox.Policy(scratch=folder, readable=roots, cuda=device != "cpu", layers=self.layers)
        # under the interpreter tensors are small, and threads that wait for each other cost more than they save
        threads = 1 if device == "cpu" else min(os.cpu_count() or 1, _FEW_THREADS)
        return Settling(device=device, policy=policy, sandboxed=self.options.sandbox, cpu_threads=threads)

    def bury(self, child: Child, folder: str) -> None:
        """End a child, and once it is gone sweep its tree and its folder. Returns at once."""
        child.end("done")
        self.hold(self._bury(child, folder))

    def hold(self, ending: Coroutine[Any, Any, None]) -> None:
        """Do something that ends a child, beside; nobody measures before it is done."""
        task = self.later(ending)
        self._burials.add(task)
        task.add_done_callback(self._burials.discard)

    def later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside; it is held until it is done."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _bury(self, child: Child, folder: str) -> None:
        ending = await child.ended()
        if ending.exit_code == FAULT_STATUS:
            # our own code failed in there: the only trace of it is what the child printed last
            last = bytes(child.tail).decode(errors="replace")
            self.say("error", f"a {child.name} failed:\n{last[-4000:]}")
        self.family.sweep(child)
        if not scratch.sweep(folder):
            sweeper = self.family.fork("sweep", lambda post: scratch.sweep_slowly(folder))
            await sweeper.ended()

    async def buried(self) -> None:
        """Wait until every child that was to end is gone: closing a context would disturb a measurement."""
        while self._burials:
            await asyncio.wait(set(self._burials))

    @contextlib.asynccontextmanager
    async def alone(self, device: str, stages: Stages) -> AsyncIterator[None]:
        """Hold the device's lock: nobody else measures, and no context of ours opens or closes meanwhile."""
        lock = self.lock(device)
        with stages.timed("lock"):
            await self.buried()
            begun, said = self.loop.time(), False
            while not lock.try_alone() and (waited := self.loop.time() - begun) < _LOCK_MOST_S:
                if waited > _LOCK_SAY_S and not said:
                    said = True
                    self.say("info", f"waiting for {device}: process {lock.holder()} measures on it")
                await asyncio.sleep(_LOCK_EVERY_S)
        try:
            yield
        finally:
            lock.release()

    @property
    def memory_limit_bytes(self) -> int:
        """What one child may hold at the very most on this machine."""
        return int(total_bytes() * 0.8)


def roots_of(problem: Any) -> tuple[str, ...]:
    """The folders that a problem's programs may read: the project, and where its files lie."""
    found = [problem.project_root] if problem.project_root else []
    for program in (problem.candidate, problem.reference):
        folder = os.path.dirname(program.path)
        inside = any(folder == root or folder.startswith(root.rstrip("/") + "/") for root in found)
        if folder and os.path.isabs(folder) and not inside:
            found.append(folder)
    return tuple(found)
