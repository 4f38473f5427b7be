"""Owns the last line of defence: a tiny process above the loop that outlives it only to sweep up. Never runs a job.

If the loop itself is killed with SIGKILL, its cases die with it by the kernel's hand, but what they forked does not.
Those orphans come back to the warden, the next subreaper above, and it ends them before it ends itself. If the warden is
killed instead, the loop is told by a signal and ends in order. The loop leads a session of its own, so that a signal to
the warden's whole process group does not take both at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NoReturn

from evalcore.worker.processes import adopt_orphans, descendants, die_with_parent, send, set_dumpable, table

PARENT_DIED = signal.SIGUSR2
"""Sent by the kernel to the loop when the warden died; apart from SIGTERM, which a person may send."""


def stand_guard() -> None:
    """Fork: the child returns and becomes the loop, the parent stays as its warden and never returns."""
    adopt_orphans()
    warden = os.getpid()
    child = os.fork()
    if child:
        _watch(child)
    os.setsid()
    signal.signal(PARENT_DIED, lambda *_: os._exit(1))
    die_with_parent(PARENT_DIED)
    if os.getppid() != warden:
        os._exit(1)


def _watch(child: int) -> NoReturn:
    set_dumpable(False)
    # the pipes to the server belong to the loop alone, or its end would not be seen
    with contextlib.suppress(OSError):
        limit = os.sysconf("SC_OPEN_MAX")
        os.closerange(3, min(limit, 4096))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: send(child, signal.SIGTERM))
    status = 0
    while True:
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        except InterruptedError:
            continue
        if pid == child:
            status = ended
            break
    _sweep()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _sweep() -> None:
    """End everything below us, again until nothing is left."""
    while True:
        below = descendants([os.getpid()], table())
        for pid in below:
            send(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0 if below else os.WNOHANG)
        except ChildProcessError:
            return
