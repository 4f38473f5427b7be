"""Owns stdin and stdout of a server on pipes: one thread reads, one writes. Never parses, never blocks the event loop.

pygls reads stdin in the pool that its thread handlers share, and writes on the event loop: a client that does not read
would stop the server. Here neither can.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import AsyncIterator
from typing import BinaryIO

from server.lsp.framing import Framer, FramingLost

CHUNK_BYTES = 1 << 16
FLUSH_S = 2.0
"""How long the last messages may take to leave when the server ends."""


class PipeReader:
    """Bodies from a descriptor, read in a thread of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._bodies: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="lsp-in", daemon=True).start()

    async def bodies(self) -> AsyncIterator[bytes]:
        """Message bodies until the client closes, or until its stream cannot be followed."""
        while (body := await self._bodies.get()) is not None:
            yield body

    def _read(self) -> None:
        framer = Framer()
        with contextlib.suppress(OSError, FramingLost, RuntimeError):
            while data := os.read(self._descriptor, CHUNK_BYTES):
                for body in framer.feed(data):
                    self._loop.call_soon_threadsafe(self._bodies.put_nowait, body)
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            self._loop.call_soon_threadsafe(self._bodies.put_nowait, None)


class PipeWriter:
    """pygls' writer interface over a thread. Messages leave in order; after the client is gone they go nowhere."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="lsp-out", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Hand over a framed message."""
        self._queue.put(data)

    def close(self) -> None:
        """Let what was handed over leave, for a moment."""
        self._queue.put(None)
        self._thread.join(FLUSH_S)

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (data := self._queue.get()) is not None:
                self._stream.write(data)
                if self._queue.empty():
                    self._stream.flush()
            self._stream.flush()


async def stream_bodies(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Message bodies from a socket."""
    framer = Framer()
    with contextlib.suppress(ConnectionError, FramingLost):
        while data := await reader.read(CHUNK_BYTES):
            for body in framer.feed(data):
                yield body
