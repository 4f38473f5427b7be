"""Owns time, ids, randomness, the environment and the directories of this process. Never decides anything.

Everything else in the server receives a `Host`; nothing else may read the clock, the environment or the current
directory (lint keeps that), so that a test can fix all of them.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


class Host:
    """This process's surroundings. Tests subclass it."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ: dict[str, str] = dict(os.environ if environ is None else environ)

    @property
    def environ(self) -> dict[str, str]:
        """A copy of the environment that this process was started with."""
        return dict(self._environ)

    @property
    def home(self) -> Path:
        """The person's home folder."""
        return Path(self._environ.get("HOME") or os.path.expanduser("~"))

    @property
    def python(self) -> str:
        """The interpreter that runs this server."""
        return sys.executable

    @property
    def package_root(self) -> Path:
        """The folder that holds the four packages, ours or site-packages."""
        return Path(__file__).resolve().parent.parent

    def cwd(self) -> Path:
        """The current directory; the home folder where it was deleted under us."""
        try:
            return Path(os.getcwd())
        except OSError:
            return self.home

    def now_utc(self) -> str:
        """This moment as ISO 8601 in UTC, milliseconds."""
        return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def new_id(self) -> str:
        """A fresh name for a job, run or progress token."""
        return secrets.token_hex(8)

    def which(self, command: str) -> str | None:
        """The absolute path of a command on PATH."""
        return shutil.which(command, path=self._environ.get("PATH"))

    def state_dir(self) -> Path:
        """Where this user's own state lies (logs, key, caches); made when missing, private to the user."""
        wanted = self._environ.get("XDG_STATE_HOME")
        place = Path(wanted) / "odyssey" if wanted else self.home / ".local" / "state" / "odyssey"
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            if os.access(place, os.W_OK):
                return place
        except OSError:
            pass  # a home that cannot be written: containers, read-only mounts
        return self._private_folder(Path(tempfile.gettempdir()) / f"odyssey-{os.getuid()}")

    def scratch_dir(self) -> Path:
        """A new private folder for one worker loop, on shared memory where there is some."""
        place = Path(tempfile.mkdtemp(prefix=f"odyssey-{os.getpid()}-", dir=self._shared_memory()))
        with contextlib.suppress(OSError):  # measured roofs outlive the loop; without that they are measured again
            (place / "ceilings").symlink_to(self.ceilings_dir())
        return place

    def ceilings_dir(self) -> Path:
        """Where the measured roofs of this user's cards are kept."""
        place = self.state_dir() / "ceilings"
        with contextlib.suppress(OSError):
            place.mkdir(exist_ok=True, mode=0o700)
        return place

    def sweep_scratch(self) -> None:
        """Remove the scratch folders of servers of this user that are dead: a SIGKILL leaves them behind."""
        parent = self._shared_memory() or Path(tempfile.gettempdir())
        for place in parent.glob("odyssey-*-*"):
            owner = place.name.split("-")[1]
            try:
                ours = place.lstat().st_uid == os.getuid() and stat.S_ISDIR(place.lstat().st_mode)
            except OSError:
                continue
            if ours and owner.isdigit() and not Path(f"/proc/{owner}").exists():
                shutil.rmtree(place, ignore_errors=True)

    def has_nvidia(self) -> bool:
        """Whether a driver seems to be there; no library is loaded to find out."""
        return any(Path(place).exists() for place in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"))

    @staticmethod
    def _shared_memory() -> Path | None:
        shm = Path("/dev/shm")
        return shm if os.access(shm, os.W_OK | os.X_OK) else None

    @staticmethod
    def _private_folder(place: Path) -> Path:
        place.mkdir(mode=0o700, exist_ok=True)
        facts = place.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
            return Path(tempfile.mkdtemp(prefix="odyssey-state-"))
        return place
