"""Owns starting a child, its log, and ending it with everything that it started. Never reads a frame's meaning."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.children.channel import READ_LIMIT_BYTES, Channel

LOG_LIMIT_BYTES = 4 << 20
"""A child's log file starts again beyond this: a kernel that prints megabytes must not fill the disk."""

BACK_OFF_S = (0.1, 0.5, 2.0, 8.0, 30.0)
"""Waits before the first, second, ... restart of a child that keeps dying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a child is started."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    log: Path | None = None
    cwd: str | None = None
    limit_bytes: int = READ_LIMIT_BYTES


class Child:
    """One running child: its channel, its last words, its end."""

    def __init__(self, process: asyncio.subprocess.Process, launch: Launch) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._process = process
        self.channel = Channel(process.stdout, process.stdin, limit_bytes=launch.limit_bytes)
        self.last_words: deque[str] = deque(maxlen=40)
        self._log = asyncio.ensure_future(_keep_log(process.stderr, launch.log, self.last_words))

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet, as far as we were told."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for its end; negative for a signal, as in subprocess."""
        code = await self._process.wait()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._log), 1.0)
        return code

    def kill(self) -> None:
        """End it and its process group at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self, grace_s: float = 2.0) -> int:
        """Close its stdin, give it time to leave, then kill what is left of its group."""
        self.channel.close()
        try:
            return await asyncio.wait_for(self.wait(), grace_s)
        except asyncio.TimeoutError:
            return await self._process.wait() if not self.alive else await self._killed()
        finally:
            self.kill()  # grandchildren that outlived it

    async def _killed(self) -> int:
        self.kill()
        return await self.wait()


async def start(launch: Launch) -> Child:
    """Start a child in a group of its own. Raises OSError where the program cannot be started."""
    process = await asyncio.create_subprocess_exec(
        *launch.argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(launch.environ),
        cwd=launch.cwd,
        limit=launch.limit_bytes + 1,
        start_new_session=True,
    )
    return Child(process, launch)


def back_off_s(failures: int) -> float:
    """How long to wait before the next start after `failures` deaths in a row."""
    return 0.0 if failures <= 0 else BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1]


def words_of_end(code: int) -> str:
    """An exit code in words: 'killed by SIGSEGV', 'exit code 3'."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


async def _keep_log(stderr: asyncio.StreamReader, path: Path | None, last_words: deque[str]) -> None:
    """Drain stderr to a bounded file for as long as anybody holds its other end."""
    written_bytes = 0
    with contextlib.ExitStack() as stack:
        sink = None
        while chunk := await stderr.read(65536):
            last_words.extend(chunk.decode("utf-8", "replace").splitlines()[-40:])
            if path is None:
                continue
            try:
                if sink is None or written_bytes > LOG_LIMIT_BYTES:
                    sink = stack.enter_context(path.open("wb"))
                    written_bytes = 0
                sink.write(chunk)
                sink.flush()
            except OSError:
                path = None  # a full disk must not stop the child: from here on only the last words are kept
            written_bytes += len(chunk)
