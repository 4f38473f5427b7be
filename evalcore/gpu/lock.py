"""Owns the machine-wide lock of one device: who times holds it alone, who opens a context holds it with others.

A plain flock on a file named by the device's uuid: it ends with its owner, however that one ends. Held only around the
timed part, so that two windows on one card take turns measuring and nothing else. Never waits by itself: the caller
polls, so that a loop stays able to listen.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile

_FOLDER_NAME = "odyssey-locks"


def _lock_folder() -> str:
    """A folder that all users of the machine share, sticky like /tmp. Falls back to a private one."""
    place = os.path.join(tempfile.gettempdir() if not os.path.isdir("/tmp") else "/tmp", _FOLDER_NAME)
    try:
        os.mkdir(place)
        os.chmod(place, 0o1777)
    except FileExistsError:
        pass
    except OSError:
        return tempfile.mkdtemp(prefix=_FOLDER_NAME)
    return place


class DeviceLock:
    """The lock of one device. Both modes may be asked for again and again; each `try_*` answers at once."""

    def __init__(self, uuid: str, *, folder: str | None = None) -> None:
        name = re.sub(r"[^A-Za-z0-9-]", "_", uuid) or "cpu"
        self.path = os.path.join(folder or _lock_folder(), f"{name}.lock")
        self._file = -1

    def _open(self) -> int:
        if self._file < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
            self._file = os.open(self.path, flags, 0o666)
        return self._file

    def try_alone(self) -> bool:
        """Take it for measuring; False where anybody holds it in either mode."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take it for opening or closing a context; False where somebody measures."""
        return self._try(fcntl.LOCK_SH)

    def _try(self, mode: int) -> bool:
        try:
            fcntl.flock(self._open(), mode | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        if mode == fcntl.LOCK_EX:
            self._sign()
        return True

    def _sign(self) -> None:
        """Leave our pid in the file, for the sentence that tells another window who measures."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, str(os.getpid()).encode(), 0)
        except OSError:
            return

    def holder(self) -> int | None:
        """The pid that measured last, which is the one that measures while the lock is held."""
        try:
            return int(os.pread(self._open(), 32, 0) or b"0") or None
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Let go; closing the file as well, so that no fork keeps it held."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = -1
