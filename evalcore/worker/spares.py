"""Owns spares: children that are settled and warm before their job is known. Never warms one while something is measured.

A spare is confined to one project's folders from its first moment, so it can serve only jobs of that project; and only as
long as the folder shows the same entries as then.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field
from typing import Any

from evalcore.gpu import sandbox, scratch
from evalcore.gpu.lock import DeviceLock
from evalcore.problem import Problem
from evalcore.slicing import module_dependencies
from evalcore.worker.children import Child, ChildEnded
from evalcore.worker.mains import case_main
from evalcore.worker.station import Station, roots_of

WARM_S = 120.0
"""A first context on a cold machine, with a compiler run for the driver's stub, takes long."""
_LOCK_EVERY_S = 0.05
_IDLE_NAME = re.compile(r"\..*|.*~|.*\.(sw[a-z]|tmp|bak|orig|log|pyc)|__pycache__|\d+")
"""What editors, tools and runs leave in a folder and no kernel reads."""
_CALM_S = 20.0
"""So long after the last job one spare is enough: each holds memory of the card."""


@dataclass(slots=True, kw_only=True)
class Spare:
    """A case without a job."""

    child: Child
    folder: str
    device: str
    roots: tuple[str, ...]
    entries: dict[str, int]
    """What the project's folder showed when the sandbox closed."""
    facts: dict[str, Any] = field(default_factory=dict)

    def fits(self, device: str, problem: Problem) -> bool:
        """Whether it may serve a job of this problem on this device now."""
        if not self.child.alive or self.device != device or self.roots != roots_of(problem):
            return False
        missed = sandbox.unreadable_since(self.entries, self.roots)
        return not missed or not _needed(missed, problem)


def _needed(missed: set[str], problem: Problem) -> bool:
    """Whether a job may need one of these paths. The job brings the texts of its own files and of unsaved ones."""
    brought = {problem.candidate.path, problem.reference.path, *(path for path, _text in problem.overlays)}
    left = {path for path in missed - brought if not _IDLE_NAME.fullmatch(os.path.basename(path))}
    modules = {path for path in left if path.endswith(".py")}
    if left - modules:
        return True
    return bool(modules) and not modules.isdisjoint(_dependencies(problem))


def _dependencies(problem: Problem) -> set[str]:
    found: set[str] = set()
    for program in (problem.candidate, problem.reference):
        found.update(module_dependencies(program.text, program.path, problem.project_root))
    return found


class CannotWarm(RuntimeError):
    """No case can be made here. The message says why, with the child's own last words."""


class Spares:
    """The pool. `take` for a job, `refill` when nothing is going on, `drop` after idle time."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._ready: list[Spare] = []
        self._warming: asyncio.Task[Spare] | None = None
        self._roots: tuple[str, ...] = station.options.roots
        self._device: str | None = None
        self._last_job = 0.0
        self._resting = False

    def expect(self, device: str, roots: tuple[str, ...]) -> None:
        """Jobs of this project are coming: make spares for it from now on."""
        if (device, roots) != (self._device, self._roots):
            self._device, self._roots = device, roots
            self.drop()
        self._resting = False

    def take_ready(self, device: str, problem: Problem) -> Spare | None:
        """A warm case for one job if one is there this moment, else None."""
        while self._ready:
            spare = self._ready.pop(0)
            if spare.fits(device, problem):
                return spare
            self._station.bury(spare.child, spare.folder)
        return None

    async def take_soon(self, device: str, problem: Problem) -> Spare | None:
        """A warm case that is there, or that is being warmed already; never one that is begun for this."""
        found = self.take_ready(device, problem)
        if found is None and self._warming is not None:
            await asyncio.wait([self._warming])
            found = self.take_ready(device, problem)
        return found

    async def take(self, device: str, problem: Problem) -> Spare:
        """A warm case for one job: a spare if one fits, else made now. Raises CannotWarm."""
        roots = roots_of(problem)
        self.expect(device, roots)
        self._last_job = self._station.loop.time()
        self._resting = False
        if self._warming is not None and not self._ready:
            await asyncio.wait([self._warming])
        return self.take_ready(device, problem) or await self._make(device, roots)

    def wanting(self) -> bool:
        """Whether one more spare should be made now; only to be asked while nothing is going on."""
        return self._device is not None and not self._resting and len(self._ready) < self._wanted()

    async def make_one(self) -> None:
        """Make one spare. A job that comes meanwhile waits for this one rather than start its own."""
        device = self._device
        if device is None:
            return
        lock = self._station.lock(device) if device != "cpu" else None
        while lock is not None and not lock.try_shared():
            await asyncio.sleep(_LOCK_EVERY_S)
        self._warming = warming = self._station.loop.create_task(self._make(device, self._roots))
        # first of all callbacks: whoever waits for this one finds it among the ready
        warming.add_done_callback(lambda task: self._warmed(task, lock))
        await asyncio.shield(asyncio.wait([warming]))
        warming.result()

    def _warmed(self, task: asyncio.Task[Spare], lock: DeviceLock | None) -> None:
        if lock is not None:
            lock.release()
        if self._warming is task:
            self._warming = None
        if not task.cancelled() and task.exception() is None:
            self._ready.append(task.result())

    def _wanted(self) -> int:
        calm = self._station.loop.time() - self._last_job > _CALM_S
        return min(self._station.options.spares, 1 if calm else 99)

    def thin(self) -> None:
        """Give back what calm times do not need."""
        while len(self._ready) > self._wanted():
            spare = self._ready.pop()
            self._station.bury(spare.child, spare.folder)

    def rest(self) -> None:
        """Give all back and make none until the next job or opened file."""
        self._resting = True
        self.drop()

    give_up = rest
    """None can be made: do not try again for nothing."""

    def drop(self) -> None:
        """Give all back."""
        while self._ready:
            spare = self._ready.pop()
            self._station.bury(spare.child, spare.folder)

    async def _make(self, device: str, roots: tuple[str, ...]) -> Spare:
        """Fork and warm one. Where the driver does not bear a layer of the sandbox, it is given up, the last first; but
        only if that helps: a card without memory is no reason to confine less."""
        station = self._station
        wanted = station.layers
        while True:
            try:
                made = await self.fork(device, roots)
            except CannotWarm:
                if device == "cpu" or not station.options.sandbox or not station.layers:
                    station.layers = wanted
                    raise
                station.layers = station.layers[:-1]
            else:
                if station.layers != wanted:
                    station.say("warning", f"this card does not open under {set(wanted) - set(station.layers)}")
                return made

    async def fork(self, device: str, roots: tuple[str, ...], *, clock: bool = True) -> Spare:
        """One new case, warm. Without a clock no recorder runs in it, as a profiler of its own needs. Raises CannotWarm."""
        station = self._station
        folder = station.child_folder("case")
        scratch.seed(station.stubs, os.path.join(folder, "triton"))
        entries = sandbox.entries(roots)
        settling = station.settling(folder, device, roots)
        child = station.family.fork("case", lambda post: case_main(post, settling, ipc=station.ipc, clock=clock))
        try:
            letter = await child.ask({"ask": "warm"}, timeout_s=WARM_S)
        except ChildEnded:
            ending = await child.ended()
            station.bury(child, folder)
            last = child.tail.decode(errors="replace").strip().splitlines()[-1:] or [str(ending)]
            raise CannotWarm(last[0]) from None
        except asyncio.CancelledError:
            station.bury(child, folder)
            raise
        station.isolation = tuple(letter.body["layers"])
        if device != "cpu" and not station.stubs_harvested:
            station.stubs_harvested = True
            scratch.seed(os.path.join(folder, "triton"), station.stubs)
        return Spare(child=child, folder=folder, device=device, roots=roots, entries=entries, facts=letter.body)
