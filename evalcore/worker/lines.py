"""Owns the loop's end of the channel to the server: lines in, frames out, both without waiting. Never interprets one."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

from evalcore.gpu.scratch import write_large
from evalcore.wire import MAX_LINE_BYTES, WireError, encode, frame

_CHUNK = 1 << 18
_MOST_WAITING_BYTES = 64 << 20
_LARGE_BYTES = 900_000


class Lines:
    """One object per line over two descriptors of our own."""

    def __init__(self, channel_in: int, channel_out: int, *, folder: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._in, self._out = channel_in, channel_out
        self._folder = folder
        self._buffer = bytearray()
        self._skipping = False
        self._waiting = bytearray()
        self._large = 0
        self._line: Callable[[bytes], None] = lambda line: None
        self._closed: Callable[[], None] = lambda: None
        os.set_blocking(channel_in, False)
        os.set_blocking(channel_out, False)

    def listen(self, line: Callable[[bytes], None], closed: Callable[[], None]) -> None:
        """Call `line` with every whole line from now on, and `closed` once when the server is gone."""
        self._line, self._closed = line, closed
        self._loop.add_reader(self._in, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._in, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._in)
            self._closed()
            return
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if self._skipping:
                self._skipping = False
            elif line.strip():
                self._line(line)
        if len(self._buffer) > MAX_LINE_BYTES:
            self._buffer.clear()
            if not self._skipping:
                self._skipping = True
                self.send("log", level="error", message=f"a frame of more than {MAX_LINE_BYTES} bytes was left out")

    def send(self, name: str, **fields: Any) -> None:
        """Queue one frame. A measurement that is too large for a line becomes a file, and the frame names it."""
        try:
            line = frame(name, **fields)
        except WireError as fault:
            line = frame("log", level="error", message=f"a frame could not be sent: {fault}")
        if name == "done" and len(line) > _LARGE_BYTES:
            line = self._by_file(fields)
        self._waiting += line
        self._flush()

    def _by_file(self, fields: dict[str, Any]) -> bytes:
        import json

        self._large += 1
        data = json.dumps(encode(fields["measurement"])).encode()
        place = write_large(self._folder, f"measurement-{self._large}.json", data)
        return frame("done", job_id=fields["job_id"], file=place)

    def _flush(self) -> None:
        while self._waiting:
            try:
                gone = os.write(self._out, self._waiting[:_CHUNK])
            except BlockingIOError:
                break
            except OSError:
                self._waiting.clear()
                self._closed()
                return
            del self._waiting[:gone]
        if not self._waiting:
            self._loop.remove_writer(self._out)
        elif len(self._waiting) > _MOST_WAITING_BYTES:
            self._closed()
        else:
            self._loop.add_writer(self._out, self._flush)

    def flush_now(self) -> None:
        """Write what is left, waiting for it; for the end of the loop."""
        with contextlib.suppress(OSError):
            os.set_blocking(self._out, True)
            while self._waiting:
                del self._waiting[: os.write(self._out, self._waiting[:_CHUNK])]
