"""Owns children of the loop: fork, messages, log tail, end. Never lets one of them hold the loop up or speak for it.

A child answers to what it was asked, and may ask on its own while it is being asked; every message is bounded in size
and number, its log is read and mostly thrown away, and when it ends its whole tree ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from evalcore.worker.birth import be_child
from evalcore.worker.deadline import Deadline
from evalcore.worker.post import MOST_BODY_BYTES, Inbox, Letter, Post, PostError, pack, send_with
from evalcore.worker.processes import descendants, kill_members, kill_session, send, table

TAIL_BYTES = 8192
_LOG_CHUNK = 1 << 16
_END_S = 5.0
_MOST_UNASKED = 20_000
"""Messages of its own that a child may send in answer to one question."""

Answer = Callable[[Letter], Awaitable[tuple[dict[str, Any], list[int]]]]
"""Takes a child's own request, returns the body and the descriptors to answer with."""


class ChildEnded(Exception):
    """The child ended, or was ended, before it answered. `child.ending` says how."""


class ChildTimeout(ChildEnded):
    """The child was ended because it did not answer in time."""


@dataclass(slots=True, kw_only=True)
class Ending:
    """How a child ended."""

    exit_code: int | None = None
    signal: int | None = None
    cause: str | None = None
    """Why we ended it: 'timeout', 'memory', 'breach', 'cancelled', 'done', or None where it ended by itself."""
    message: str = ""
    """For 'timeout' the phase, 'build' or 'run'; else words."""


class Child:
    """One forked child as the loop sees it."""

    def __init__(self, family: Family, name: str, pid: int, sock: socket.socket, log: int) -> None:
        self.name = name
        self.pid = pid
        self.ending: Ending | None = None
        self.tail = bytearray()
        """The last bytes that it printed."""
        self._family = family
        self._socket = sock
        self._log = log
        self._inbox = Inbox(MOST_BODY_BYTES)
        self._asked: asyncio.Future[Letter] | None = None
        self._answer: Answer | None = None
        self._unasked = 0
        self._deadline: Deadline | None = None
        self._cause: tuple[str, str] | None = None
        self._ended = family.loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        family.loop.add_reader(sock, self._readable)
        family.loop.add_reader(log, self._log_readable)

    @property
    def alive(self) -> bool:
        """False once it has ended or is being ended."""
        return self.ending is None and self._cause is None

    async def ask(
        self,
        body: dict[str, Any],
        *,
        timeout_s: float,
        build_s: float = 0.0,
        descriptors: list[int] | None = None,
        answer: Answer | None = None,
    ) -> Letter:
        """Send a question and wait for its answer; meanwhile `answer` serves what the child asks in turn.

        `build_s` is granted beside `timeout_s` for what the child reports as building. Raises ChildTimeout (the child
        is then killed) or ChildEnded.
        """
        if not self.alive:
            raise ChildEnded(self.name)
        self._asked = future = self._family.loop.create_future()
        self._answer, self._unasked = answer, 0
        self._deadline = clock = Deadline(self._family.loop, timeout_s, build_s, self._late)
        try:
            await self._write(body, descriptors or [])
            return await future
        finally:
            clock.stop()
            self._deadline = None
            if self._asked is future:
                self._asked = None

    def _late(self, phase: str) -> None:
        self.end("timeout", phase)

    async def _write(self, body: dict[str, Any], descriptors: list[int]) -> None:
        data = pack(body, len(descriptors))
        try:
            sent = send_with(self._socket, data, descriptors)
            if sent < len(data):
                await self._family.loop.sock_sendall(self._socket, data[sent:])
        except (BrokenPipeError, ConnectionResetError):
            return
        except BlockingIOError:
            # the child does not read although it was asked nothing else: only a broken or hostile one does that
            self.end("breach", "it stopped reading its channel")

    def _readable(self) -> None:
        try:
            if not self._inbox.receive(self._socket):
                self._family.loop.remove_reader(self._socket)
                return
            self._deliver()
        except BlockingIOError:
            return
        except (PostError, OSError) as breach:
            self.end("breach", f"it wrote something unexpected on its channel ({breach})")

    def _deliver(self) -> None:
        while True:
            letter = self._inbox.take()
            if letter is None:
                return
            self._unasked += 1
            kind = letter.body.get("post")
            if self._unasked > _MOST_UNASKED:
                letter.close()
                raise PostError("too many messages")
            if kind == "answer" and self._asked is not None and not self._asked.done():
                self._asked.set_result(letter)
            elif kind == "note" and isinstance(letter.body.get("building"), bool):
                letter.close()
                if self._deadline is not None:
                    self._deadline.building(letter.body["building"])
            elif kind == "request" and self._answer is not None and self._asked is not None:
                task = self._family.loop.create_task(self._serve(letter, self._answer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                letter.close()
                raise PostError(f"a message of kind {str(kind)[:40]!r} that nobody waits for")

    async def _serve(self, letter: Letter, answer: Answer) -> None:
        try:
            body, descriptors = await answer(letter)
        except ChildEnded as ended:
            body, descriptors = {"refused": f"{ended} ended"}, []
        except (PostError, ValueError, KeyError, TypeError) as breach:
            self.end("breach", f"it asked for something impossible ({breach})")
            return
        finally:
            letter.close()
        if self.alive:
            await self._write(body, descriptors)

    def _log_readable(self) -> None:
        try:
            data = os.read(self._log, _LOG_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._family.loop.remove_reader(self._log)
            return
        self.tail += data
        if len(self.tail) > 2 * TAIL_BYTES:
            del self.tail[:-TAIL_BYTES]

    def end(self, cause: str, message: str = "") -> None:
        """Kill it at once, with all below it. `ended` resolves when the kernel has taken it away."""
        if self.ending is not None:
            return
        if self._cause is None:
            self._cause = (cause, message)
        kill_session(self.pid)

    async def ended(self) -> Ending:
        """Wait until it is gone."""
        return await asyncio.shield(self._ended)

    def gone(self, status: int) -> None:
        """Called once by the family, when the kernel has reported the end."""
        with contextlib.suppress(BlockingIOError, PostError, OSError):
            while self._inbox.receive(self._socket):
                self._deliver()
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self._log, _LOG_CHUNK):
                self.tail += data
        del self.tail[:-TAIL_BYTES]
        code = os.waitstatus_to_exitcode(status)
        cause, message = self._cause or (None, "")
        self.ending = Ending(
            exit_code=code if code >= 0 else None, signal=-code if code < 0 else None, cause=cause, message=message
        )
        self._family.loop.remove_reader(self._socket)
        self._family.loop.remove_reader(self._log)
        self._inbox.close()
        self._socket.close()
        os.close(self._log)
        if self._asked is not None and not self._asked.done():
            fault = ChildTimeout if cause == "timeout" else ChildEnded
            self._asked.set_exception(fault(self.name))
        if not self._ended.done():
            self._ended.set_result(self.ending)


class Family:
    """All children of this loop: forks them, notices their end, sweeps what they leave behind."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.children: dict[int, Child] = {}
        loop.add_signal_handler(signal.SIGCHLD, self.reap)

    def fork(self, name: str, main: Callable[[Post], None]) -> Child:
        """Fork a child that runs `main` with its end of the post and then exits. Its session is its own."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        log_read, log_write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            be_child(main, theirs, log_write, parent=me)
        theirs.close()
        os.close(log_write)
        ours.setblocking(False)
        os.set_blocking(log_read, False)
        child = Child(self, name, pid, ours, log_read)
        self.children[pid] = child
        return child

    def reap(self) -> None:
        """Take note of every child that has ended; strangers among them are orphans of some case."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is not None:
                child.gone(status)

    def sweep(self, child: Child) -> None:
        """Kill what a child left behind: its session, and orphans that no living child's session owns."""
        if child.pid not in self.children:
            kill_members(child.pid, own=os.getpid())
        self.sweep_orphans()

    def sweep_orphans(self) -> None:
        """Kill our children that we never forked, where their session is not a living child's."""
        me = os.getpid()
        for _round in range(50):
            processes = table()
            strays = {
                pid
                for pid, (parent, session) in processes.items()
                if parent == me and pid not in self.children and session not in self.children
            }
            if not strays:
                return
            for pid in strays | descendants(strays, processes):
                send(pid, signal.SIGKILL)
            self.reap()
            time.sleep(0)

    def end_all(self) -> None:
        """Kill everything, for the end of the loop."""
        for child in list(self.children.values()):
            child.end("cancelled", "the worker ended")
        end = time.monotonic() + _END_S
        while self.children and time.monotonic() < end:
            self.reap()
            time.sleep(0.005)
        self.sweep_orphans()
