"""Owns frames over asyncio pipes: one JSON object a line, both ways. Never starts or ends a process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from evalcore.wire import WireError, encode, parse

READ_LIMIT_BYTES = 64 << 20
"""Longest line read from a child of our own (analysis of a huge file); a worker's lines are held to wire's limit."""

THREAD_BYTES = 128 << 10
"""Longer lines are parsed in a thread, so that the event loop is not held."""


class Channel:
    """Both directions of one child. Sending never waits; a child that does not read is the sender's to kill."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limit_bytes = limit_bytes

    def send(self, name: str, **fields: Any) -> None:
        """Put one frame on the pipe. Raises WireError where a value cannot travel or the frame is too long."""
        body = {"frame": name, **encode(fields)}
        self.send_line(json.dumps(body, separators=(",", ":"), ensure_ascii=True).encode() + b"\n")

    def send_line(self, line: bytes) -> None:
        """Put one finished line on the pipe; silently dropped where the child is gone, the reader will say so."""
        if len(line) > self._limit_bytes:
            raise WireError(f"a frame of {len(line)} bytes, more than {self._limit_bytes}")
        if not self._writer.transport.is_closing():
            self._writer.write(line)

    async def frames(self) -> AsyncIterator[dict[str, Any]]:
        """Frames until the child closes its end. Raises WireError on a line that is no frame."""
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:  # the stream's limit
                raise WireError(f"a line of more than {self._limit_bytes} bytes") from None
            except (ConnectionError, BrokenPipeError):
                return
            if not line:
                return
            if not line.endswith(b"\n"):
                return  # cut off in the middle: the child died
            yield await asyncio.to_thread(parse, line) if len(line) > THREAD_BYTES else parse(line)

    def close(self) -> None:
        """Close our end: the child reads end of file and leaves."""
        if not self._writer.transport.is_closing():
            self._writer.close()
