"""Owns the base protocol's framing: bytes in, message bodies out. Never parses JSON, never does IO.

Header names are read in any case, and unknown headers are skipped; pygls' own reader loses step on both.
"""

from __future__ import annotations

MAX_BODY_BYTES = 256 << 20
MAX_HEADER_BYTES = 64 << 10


class FramingLost(Exception):
    """The stream cannot be followed any more; the connection has to be closed."""


class Framer:
    """Feed it what was read; it gives back whole bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take more bytes; the bodies that are whole now. Raises FramingLost."""
        self._buffer += data
        bodies: list[bytes] = []
        while True:
            if self._length is None and not self._take_header():
                return bodies
            assert self._length is not None
            if len(self._buffer) < self._length:
                return bodies
            bodies.append(bytes(self._buffer[: self._length]))
            del self._buffer[: self._length]
            self._length = None

    def _take_header(self) -> bool:
        end, width = self._buffer.find(b"\r\n\r\n"), 4
        bare = self._buffer.find(b"\n\n")
        if bare >= 0 and (end < 0 or bare < end):
            end, width = bare, 2  # some clients write bare newlines
        if end < 0:
            if len(self._buffer) > MAX_HEADER_BYTES:
                raise FramingLost("a header without end")
            return False
        header = bytes(self._buffer[:end])
        del self._buffer[: end + width]
        self._length = _content_length(header)
        return True


def _content_length(header: bytes) -> int:
    for line in header.splitlines():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            value = value.strip()
            if value.isdigit() and int(value) <= MAX_BODY_BYTES:
                return int(value)
            raise FramingLost(f"a message of {value[:40]!r} bytes")
    raise FramingLost("a message without Content-Length")


def frame(body: bytes) -> bytes:
    """A body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
