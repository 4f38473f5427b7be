"""Owns the watch over memory: what a child and its tree hold, and what is left on the machine. Never limits address space.

An address-space limit breaks CUDA, which maps far more than it uses. So the loop looks, often, and ends what holds too
much before the kernel's own killer picks somebody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

from evalcore.worker.children import Child
from evalcore.worker.processes import descendants, table

_PERIOD_S = 0.05
_LEAST_LEFT_RATIO = 0.04
_TREE_EVERY = 10
"""The child itself is looked at every time; the whole table of processes, which costs more, every so often."""


def _field(path: str, names: tuple[bytes, ...]) -> int:
    """Sum of the named kB fields of a /proc file, in bytes; 0 where it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.read(file, 8192)
    except OSError:
        return 0
    finally:
        os.close(file)
    total = 0
    for name in names:
        at = text.find(name)
        if at >= 0:
            with contextlib.suppress(ValueError, IndexError):
                total += int(text[at + len(name) :].split(None, 1)[0]) * 1024
    return total


def held_bytes(pid: int) -> int:
    """Memory of one process that is not a file's: private and shared."""
    return _field(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:"))


def proportional_bytes(pid: int) -> int:
    """The same with pages shared among forks counted once in all; slower."""
    return _field(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))


def available_bytes() -> int:
    """What the machine can still give."""
    return _field("/proc/meminfo", (b"MemAvailable:",))


def total_bytes() -> int:
    """All memory of the machine."""
    return _field("/proc/meminfo", (b"MemTotal:",)) or 1 << 62


class Watch:
    """Watches one child while it lives; ends it with cause 'memory' when it, with all below it, holds too much."""

    def __init__(self, child: Child, limit_bytes: int) -> None:
        self._child = child
        self._limit_bytes = limit_bytes
        self.most_bytes = 0
        """The most that was seen."""
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        count = 0
        floor = int(total_bytes() * _LEAST_LEFT_RATIO)
        await asyncio.sleep(_PERIOD_S)
        while self._child.alive:
            held = held_bytes(self._child.pid)
            count += 1
            if count % _TREE_EVERY == 0:
                held += self._tree(descendants([self._child.pid], table()), held)
            self.most_bytes = max(self.most_bytes, held)
            if held > self._limit_bytes:
                self._child.end("memory", f"it held {held / 2**30:.1f} GiB, more than {self._limit_bytes / 2**30:.1f}")
            elif count % _TREE_EVERY == 1 and available_bytes() < floor:
                self._child.end("memory", "the machine had no memory left to give")
            await asyncio.sleep(_PERIOD_S)

    def _tree(self, tree: set[int], own: int) -> int:
        """What the processes below hold; counted exactly only where a rough sum would be over the limit."""
        rough = sum(held_bytes(pid) for pid in tree)
        if own + rough <= self._limit_bytes:
            return rough
        return sum(proportional_bytes(pid) for pid in tree)

    def stop(self) -> None:
        """No longer of interest."""
        self._task.cancel()
