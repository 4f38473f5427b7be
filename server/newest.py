"""Owns the newest-wins slot: at most one running and one waiting piece of work a key, each with its cause.

Never knows what the work is. A newer submission replaces the one that waits and cancels the one that runs, so that what
is worked on is always the newest text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

Start = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _Slot:
    running: asyncio.Task[None] | None = None
    cause: str = ""
    waiting: tuple[Start, str] | None = None


@dataclass(slots=True)
class Newest:
    """One slot a key. All methods are called on the event loop's thread."""

    _slots: dict[Hashable, _Slot] = field(default_factory=dict)

    def submit(self, key: Hashable, start: Start, cause: str) -> None:
        """Work on `start` next: at once if the key is free, else as soon as the cancelled one has ended."""
        slot = self._slots.setdefault(key, _Slot())
        if slot.running is None:
            self._run(key, slot, start, cause)
            return
        slot.waiting = (start, cause)
        slot.running.cancel()

    def cancel(self, key: Hashable) -> bool:
        """Drop what waits and cancel what runs; whether there was anything."""
        slot = self._slots.get(key)
        if slot is None:
            return False
        slot.waiting = None
        if slot.running is not None:
            slot.running.cancel()
        return True

    def cause(self, key: Hashable) -> str | None:
        """Why the key is being worked on now; None when it is free."""
        slot = self._slots.get(key)
        return slot.cause if slot else None

    def keys(self) -> tuple[Hashable, ...]:
        """The keys that are being worked on."""
        return tuple(self._slots)

    async def close(self) -> None:
        """Cancel everything and wait until it has ended."""
        running = [slot.running for slot in self._slots.values() if slot.running is not None]
        for key in list(self._slots):
            self.cancel(key)
        await asyncio.gather(*running, return_exceptions=True)

    def _run(self, key: Hashable, slot: _Slot, start: Start, cause: str) -> None:
        slot.cause = cause
        slot.running = asyncio.ensure_future(start())
        slot.running.add_done_callback(lambda task: self._ended(key, slot, task))

    def _ended(self, key: Hashable, slot: _Slot, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # read here; whoever starts work puts its own fence inside
        slot.running = None
        waiting, slot.waiting = slot.waiting, None
        if waiting is not None:
            self._run(key, slot, *waiting)
        elif self._slots.get(key) is slot:
            del self._slots[key]
