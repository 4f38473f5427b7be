"""Owns what the kernel knows about processes: descendants, memory, prctl, killing. Never starts one.

A candidate may fork, leave its session and ignore signals. What it cannot leave is its place in the tree: orphans come
back to the nearest subreaper above them, and that is us.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> bool:
    prctl = getattr(_libc, "prctl", None)
    return prctl is not None and prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0


def die_with_parent(signal_number: int) -> bool:
    """Ask the kernel for `signal_number` when the thread that forked us ends. False where it cannot be asked."""
    return _prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent dies."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(dumpable: bool) -> bool:
    """Whether others of the same user may read our memory and environment."""
    return _prctl(_PR_SET_DUMPABLE, int(dumpable))


def table() -> dict[int, tuple[int, int]]:
    """pid -> (parent's pid, session id) of every process in sight; zombies left out. {} without /proc."""
    found: dict[int, tuple[int, int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                line = file.read()
        except OSError:
            continue
        # the command's name may hold spaces and brackets: count from the last one
        fields = line[line.rfind(b")") + 2 :].split()
        if len(fields) > 4 and fields[0] not in (b"Z", b"X"):
            found[int(name)] = (int(fields[1]), int(fields[3]))
    return found


def descendants(roots: Iterable[int], processes: dict[int, tuple[int, int]] | None = None) -> set[int]:
    """The pids below `roots`, without the roots themselves."""
    processes = table() if processes is None else processes
    children: dict[int, list[int]] = {}
    for pid, (parent, _session) in processes.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    pending = list(roots)
    while pending:
        for pid in children.get(pending.pop(), ()):
            if pid not in found:
                found.add(pid)
                pending.append(pid)
    return found


def send(pid: int, signal_number: int) -> None:
    """Signal one process; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal_number)


def kill_session(leader: int) -> None:
    """SIGKILL to a child that was not waited for yet, and to its process group. Its number cannot be anybody else's."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    send(leader, signal.SIGKILL)


def kill_members(session: int, *, own: int) -> None:
    """SIGKILL to all of a session whose leader is gone, again until none is left: a fork may race with one pass.

    Only below `own`, a subreaper: the leader's number may by now belong to a stranger, but not below us.
    """
    for _round in range(50):
        processes = table()
        doomed = {pid for pid in descendants([own], processes) if processes[pid][1] == session}
        if not doomed:
            return
        for pid in doomed:
            send(pid, signal.SIGKILL)
        time.sleep(0)
