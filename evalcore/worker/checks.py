"""Owns check frames: a text looked at by Triton's front end or NVRTC, in a fork, while a person types. Never runs it."""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from evalcore.facts import KernelFacts
from evalcore.jobs import Diagnostic
from evalcore.wire import WireError, decode
from evalcore.worker.children import Child, ChildEnded
from evalcore.worker.lines import Lines
from evalcore.worker.mains import check_main
from evalcore.worker.station import Station

_CHECK_S = 20.0
_MOST_AT_ONCE = 2
_MOST_WAITING = 16


class Checks:
    """Checks in flight. For one path only the newest counts: an older one that still waits is dropped."""

    def __init__(self, station: Station, lines: Lines) -> None:
        self._station, self._lines = station, lines
        self._waiting: deque[dict[str, Any]] = deque()
        self._running: dict[str, Child] = {}

    def ask(self, frame: dict[str, Any]) -> None:
        """Take a check frame. Raises WireError where it has the wrong form."""
        wanted = ("check_id", "path", "text", "language")
        if not all(isinstance(frame.get(name), str) for name in wanted):
            raise WireError("a check frame without id, path, text or language")
        for old in [old for old in self._waiting if old["path"] == frame["path"]]:
            self._waiting.remove(old)
            self._answer(old["check_id"], (), ())
        self._waiting.append(frame)
        while len(self._waiting) > _MOST_WAITING:
            self._answer(self._waiting.popleft()["check_id"], (), ())
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < _MOST_AT_ONCE:
            frame = self._waiting.popleft()
            self._station.later(self._check(frame))

    async def _check(self, frame: dict[str, Any]) -> None:
        station, check_id = self._station, frame["check_id"]
        folder = station.child_folder("check")
        roots = tuple(each for each in [frame.get("root")] if isinstance(each, str) and each)
        settling = station.settling(folder, "cpu", roots or _folder_of(frame["path"]))
        child = station.family.fork("check", lambda post: check_main(post, settling, frame))
        self._running[check_id] = child
        try:
            letter = await child.ask({"ask": "check"}, timeout_s=_CHECK_S)
            body = letter.body
            found = decode(tuple[Diagnostic, ...], body["diagnostics"])  # type: ignore[type-var]
            kernels = decode(tuple[KernelFacts, ...], body["kernels"])  # type: ignore[type-var]
            self._answer(check_id, found, kernels)
        except ChildEnded:
            ending = await child.ended()
            words = f"the check of {frame['path']} ended early ({ending.cause or ending.signal or ending.exit_code})"
            last = child.tail.decode(errors="replace").strip().splitlines()[-1:]
            self._lines.send("log", level="warning", message=f"{words} {' '.join(last)}")
            self._answer(check_id, (), ())
        except (WireError, KeyError) as fault:
            self._lines.send("log", level="warning", message=f"a check that answered wrongly: {fault}")
            self._answer(check_id, (), ())
        finally:
            self._running.pop(check_id, None)
            station.bury(child, folder)
            self._start()

    def _answer(self, check_id: str, found: tuple[Diagnostic, ...], kernels: tuple[KernelFacts, ...]) -> None:
        self._lines.send("checked", check_id=check_id, diagnostics=found, kernels=kernels)


def _folder_of(path: str) -> tuple[str, ...]:
    return (os.path.dirname(path),) if os.path.isabs(path) else ()
