"""Owns messages between the loop and its children: length, JSON, descriptors, over one socket. Never unpickles.

Each message is an 8-byte header (bytes of the body, number of descriptors) and a JSON object. The descriptors travel with
the header. Both ends check sizes before they read a body; the loop's end trusts nothing in it beyond that.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

_HEADER = struct.Struct("!II")
MOST_BODY_BYTES = 16 << 20
_MOST_DESCRIPTORS = 16
_CHUNK = 1 << 16


class PostError(RuntimeError):
    """A peer that broke the form of a message."""


@dataclass(slots=True, kw_only=True)
class Letter:
    """One message with the descriptors that came beside it; whoever takes it closes them."""

    body: dict[str, Any]
    descriptors: list[int] = field(default_factory=list)

    def close(self) -> None:
        """Close the descriptors that nobody took."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()


def pack(body: dict[str, Any], descriptors: int = 0) -> bytes:
    """A whole message as bytes."""
    data = json.dumps(body, separators=(",", ":")).encode()
    if len(data) > MOST_BODY_BYTES:
        raise PostError(f"a message of {len(data)} bytes")
    return _HEADER.pack(len(data), descriptors) + data


def send_with(sock: socket.socket, data: bytes, descriptors: list[int]) -> int:
    """sendmsg with the descriptors attached to its first byte. Returns how many bytes went."""
    if not descriptors:
        return sock.send(data)
    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())]
    return sock.sendmsg([data], extra)


class Inbox:
    """Bytes and descriptors in, whole letters out. `most_bytes` bounds one body."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._descriptors: list[int] = []

    def receive(self, sock: socket.socket) -> bool:
        """Read what is there, once. False at the end of the stream. Raises BlockingIOError, PostError."""
        space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
        data, extra, flags, _address = sock.recvmsg(_CHUNK, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        for level, kind, payload in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(payload[: len(payload) - len(payload) % found.itemsize])
                self._descriptors.extend(found)
        if flags & socket.MSG_CTRUNC or len(self._descriptors) > _MOST_DESCRIPTORS:
            raise PostError("more descriptors than a message may carry")
        self._buffer += data
        return bool(data)

    def take(self) -> Letter | None:
        """The next whole letter, or None. Raises PostError for what is none."""
        if len(self._buffer) < _HEADER.size:
            return None
        size, count = _HEADER.unpack_from(self._buffer)
        if size > self._most_bytes or count > len(self._descriptors):
            raise PostError(f"a message of {size} bytes with {count} descriptors")
        if len(self._buffer) < _HEADER.size + size:
            return None
        data = bytes(self._buffer[_HEADER.size : _HEADER.size + size])
        del self._buffer[: _HEADER.size + size]
        descriptors, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        letter = Letter(body={}, descriptors=descriptors)
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            letter.close()
            raise PostError("a message that is no JSON") from None
        if not isinstance(body, dict):
            letter.close()
            raise PostError("a message that is no object")
        letter.body = body
        return letter

    def close(self) -> None:
        """Close descriptors that belong to no whole letter."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()


class Post:
    """A child's end of the socket: blocking, one message at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._inbox = Inbox(MOST_BODY_BYTES)

    def send(self, body: dict[str, Any], descriptors: list[int] | None = None) -> None:
        """Write one message whole."""
        descriptors = descriptors or []
        data = memoryview(pack(body, len(descriptors)))
        gone = send_with(self._socket, bytes(data), descriptors)
        if gone < len(data):
            self._socket.sendall(data[gone:])

    def receive(self) -> Letter | None:
        """Wait for the next message; None when the loop is gone."""
        while True:
            letter = self._inbox.take()
            if letter is not None:
                return letter
            if not self._inbox.receive(self._socket):
                return None

    def ask(self, body: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        """Send a request of our own and wait for its answer. Ends the process when the loop is gone."""
        self.send(body, descriptors)
        letter = self.receive()
        if letter is None:
            os._exit(0)
        letter.close()
        return letter.body
