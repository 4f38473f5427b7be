"""Owns the first and the last steps of a forked child. Never returns into the code of the loop that forked it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from evalcore.worker.post import Post
from evalcore.worker.processes import die_with_parent

FAULT_STATUS = 70
"""Exit status of a child whose own main raised."""


def be_child(main: Callable[[Post], None], sock: socket.socket, log: int, *, parent: int) -> NoReturn:
    """What a fork does first and last: own session, no inherited handlers or descriptors, `main`, the end."""
    status = FAULT_STATUS
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        asyncio._set_running_loop(None)
        os.setsid()
        die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _close_others(sock.fileno())
        main(Post(sock))
        status = 0
    except BaseException:  # noqa: BLE001 - a child's main is one of the fences: nothing may travel back into the loop
        with contextlib.suppress(Exception):
            traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _close_others(kept: int) -> None:
    """Close every descriptor of the loop but the child's own three and its post."""
    try:
        found = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        found = list(range(3, 1024))
    for descriptor in found:
        if descriptor > 2 and descriptor != kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
