"""Owns the recorder that reads Triton's Proton, one adapter per form of its interface. Never decides what a time means.

Triton 3.2 to 3.6 give data only by `finalize`, as a file; 3.7 and later hand it over in memory. Both serve Triton and
CUDA kernels alike. What Proton does not see: copies and sets, and the call's scope on threads other than the caller's.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from evalcore.gpu.activity import MAX_STRAY, Launch, Recorder, RecorderError, Recording

_CALL = "odyssey.call."
_MARK = "odyssey.mark."
_TIME = "time (ns)"
_COUNT = "count"

FORMS: dict[tuple[int, int], str] = {
    (3, 2): "file",
    (3, 3): "file",
    (3, 4): "file",
    (3, 5): "file",
    (3, 6): "file",
    (3, 7): "memory",
    (3, 8): "memory",
    (3, 9): "memory",
}
"""How each Triton minor hands its data over. A minor that is not listed is detected by what its module offers."""


def form_of(version: str, proton: object) -> str:
    """'memory' or 'file' for this Triton. What the module really offers wins over the table."""
    offers_memory = hasattr(getattr(proton, "data", None), "get")
    minor = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    listed = FORMS.get(minor) if len(minor) == 2 else None
    if listed == "memory" and not offers_memory:
        return "file"
    return listed or ("memory" if offers_memory else "file")


def leaves(node: dict[str, Any]) -> Iterator[Launch]:
    """Kernels below a scope, each with its summed time and count."""
    children = node.get("children") or []
    metrics = node.get("metrics") or {}
    if _TIME in metrics and not any(_has_time(child) for child in children):
        name = str((node.get("frame") or {}).get("name", "?"))
        yield Launch(name=name, device_us=float(metrics[_TIME]) / 1e3, count=int(metrics.get(_COUNT, 1)))
        return
    for child in children:
        yield from leaves(child)


def _has_time(node: dict[str, Any]) -> bool:
    return _TIME in (node.get("metrics") or {}) or any(_has_time(child) for child in node.get("children") or [])


def parse_tree(database: Iterable[dict[str, Any]], wanted: range) -> Recording:
    """Proton's hatchet tree into calls: the scopes `odyssey.call.N` and `odyssey.mark.N` with N in `wanted`.

    A call that launched no kernel leaves no scope: it becomes an empty tuple, never a missing one.
    """
    calls: dict[int, list[Launch]] = {number: [] for number in wanted}
    empty: dict[int, float] = {}
    stray: list[Launch] = []

    def visit(node: dict[str, Any]) -> None:
        name = str((node.get("frame") or {}).get("name", ""))
        prefix = next((each for each in (_CALL, _MARK) if name.startswith(each)), None)
        if prefix is None:
            children = node.get("children") or []
            if not children and len(stray) < MAX_STRAY:
                stray.extend(leaves(node))
            for child in children:
                visit(child)
            return
        number = int(name[len(prefix) :])
        if number not in calls:
            return
        found = list(leaves(node))
        if prefix == _CALL:
            calls[number] += found
        elif found:
            empty[number] = sum(launch.device_us for launch in found)

    for root in database:
        if "frame" in root:
            visit(root)
    return Recording(
        calls=tuple(tuple(calls[number]) for number in wanted),
        empty_us=tuple(empty[number] for number in sorted(empty)),
        stray=tuple(stray),
    )


def read_tree(path: str) -> list[dict[str, Any]]:
    """Proton's file, which is then removed."""
    try:
        with open(path, encoding="utf-8") as file:
            database: list[dict[str, Any]] = json.load(file)
        os.unlink(path)
    except (OSError, ValueError) as problem:
        raise RecorderError(f"Proton wrote no readable data: {problem}") from None
    return database


def import_proton() -> tuple[ModuleType, str]:
    try:
        triton = importlib.import_module("triton")
        proton = importlib.import_module("triton.profiler")
    except ImportError as problem:
        raise RecorderError(f"this Triton has no Proton: {problem}") from None
    return proton, str(triton.__version__)


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    """Proton's own faults are the recorder's, never the candidate's."""
    try:
        yield
    except (RuntimeError, ValueError, OSError, IndexError) as problem:
        raise RecorderError(f"Proton: {problem}") from None


def make_proton(scratch: str = "") -> Recorder:
    """The adapter that fits the Triton of this process. Raises RecorderError where there is none."""
    proton, version = import_proton()
    folder = tempfile.mkdtemp(prefix="odyssey-proton-", dir=scratch or None)
    if form_of(version, proton) == "memory":
        return ProtonMemory(proton, folder)
    return ProtonFile(proton, folder)


class _ProtonScopes(Recorder):
    """What both forms share: numbered scopes."""

    timer = "proton-cupti"
    chunk = 0

    def __init__(self, proton: Any, folder: str) -> None:
        self._proton = proton
        self._folder = folder
        self._next = 0
        self._taken = 0

    def _start(self, name: str) -> int:
        path = os.path.join(self._folder, name)
        with _asking():
            session = self._proton.start(path, context="shadow", data="tree", backend="cupti")
        if session is None:
            raise RecorderError("Proton is switched off in this process (TRITON_PROTON_DISABLE or its command line)")
        return int(session)

    def call(self) -> contextlib.AbstractContextManager[object]:
        """A scope of its own for each call, so that each has its own time."""
        number, self._next = self._next, self._next + 1
        return self._proton.scope(f"{_CALL}{number}")  # type: ignore[no-any-return]

    def mark(self) -> contextlib.AbstractContextManager[object]:
        """A scope for the marker that follows the latest call."""
        return self._proton.scope(f"{_MARK}{self._next - 1}")  # type: ignore[no-any-return]

    def end(self) -> None:
        """End all sessions; Proton then detaches CUPTI."""
        with _asking():
            self._proton.finalize()

    def _since_take(self) -> range:
        wanted = range(self._taken, self._next)
        self._taken = self._next
        return wanted


class ProtonMemory(_ProtonScopes):
    """Triton 3.7 and later: one session for the whole process, data read in memory."""

    chunk = 25

    def __init__(self, proton: Any, folder: str) -> None:
        super().__init__(proton, folder)
        self._session: int | None = None

    def warm(self) -> None:
        """Start the session once, then leave it inactive."""
        if self._session is None:
            self._session = self._start("session")
            self.close()

    def open(self) -> None:
        """Activate the session."""
        with _asking():
            self._proton.activate(self._session)

    def take(self) -> Recording:
        """Flush, read and clear; leaves the session active."""
        with _asking():
            self._proton.deactivate(self._session, flushing=True)
            database = self._proton.data.get(self._session)
            self._proton.data.clear(self._session)
            self._proton.activate(self._session)
        return parse_tree(database, self._since_take())

    def close(self) -> None:
        """Deactivate the session; it stays for the next measurement."""
        with _asking():
            self._proton.deactivate(self._session, flushing=True)


class ProtonFile(_ProtonScopes):
    """Triton 3.2 to 3.6: a session per measurement, written on finalize, beside an idle one that keeps CUPTI started.

    Proton detaches CUPTI when its last session ends, and attaching again is dear; the keeper session is active only
    while another one ends.
    """

    def __init__(self, proton: Any, folder: str) -> None:
        super().__init__(proton, folder)
        self._keeper: int | None = None
        self._session: int | None = None
        self._path = ""
        self._numbers = itertools.count()

    def warm(self) -> None:
        """Start the keeper and leave it inactive."""
        if self._keeper is None:
            self._keeper = self._start("keeper")
            with _asking():
                self._proton.deactivate(self._keeper)

    def open(self) -> None:
        """Start a session of its own for what follows."""
        name = f"measure-{next(self._numbers)}"
        self._path = os.path.join(self._folder, name + ".hatchet")
        self._session = self._start(name)

    def _finish(self) -> list[dict[str, Any]]:
        if self._session is None:
            return []
        session, self._session = self._session, None
        with _asking():
            self._proton.activate(self._keeper)
            self._proton.finalize(session)
            self._proton.deactivate(self._keeper)
        return read_tree(self._path)

    def take(self) -> Recording:
        """End the session, read its file and start the next one."""
        database = self._finish()
        recording = parse_tree(database, self._since_take())
        self.open()
        return recording

    def close(self) -> None:
        """End the session and drop its file."""
        self._finish()
