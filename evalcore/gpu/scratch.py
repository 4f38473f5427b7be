"""Owns folders of a worker on disk: one per loop, one per child, swept when its owner is gone. Never follows a link.

What lies in a child's folder was written by a candidate. It is deleted, or read through a descriptor that refuses links;
it is never executed or unpickled by anybody else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

_SUBFOLDERS = ("home/.cache", "home/.config", "tmp", "triton", "inductor", "extensions", "nv", "numba")
_QUICK_ENTRIES = 400


def make_loop_folder(parent: str) -> str:
    """A fresh folder for this loop below `parent`, readable by nobody else; folders of loops that are gone are swept."""
    os.makedirs(parent, mode=0o700, exist_ok=True)
    for name in os.listdir(parent):
        pid = name.removeprefix("loop-")
        if pid != name and pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    place = os.path.join(os.path.abspath(parent), f"loop-{os.getpid()}")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place, mode=0o700)
    return place


def make_child_folder(loop_folder: str, name: str) -> str:
    """A fresh folder with the subfolders that `environment.case_environment` names. Returns its path."""
    place = os.path.join(loop_folder, name)
    os.mkdir(place, mode=0o700)
    for each in _SUBFOLDERS:
        os.makedirs(os.path.join(place, each))
    return place


def sweep(place: str) -> bool:
    """Delete a folder. False, with nothing done, where it holds so much that deleting it should not hold up the caller."""
    count = 0
    for _root, folders, files in os.walk(place):
        count += len(folders) + len(files)
        if count > _QUICK_ENTRIES:
            return False
    shutil.rmtree(place, ignore_errors=True)
    return True


def sweep_slowly(place: str) -> None:
    """Delete a folder of any size; for a process that has nothing else to do."""
    shutil.rmtree(place, ignore_errors=True)


def seed(source: str, target: str) -> None:
    """Copy a tree of plain files; a copy, so that what the target's owner writes can never reach the source."""
    with contextlib.suppress(OSError):
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, copy_function=shutil.copyfile)


def read_inside(folder: str, name: str, *, most_bytes: int) -> bytes | None:
    """The bytes of one plain file of a child's folder; None for a link, anything but a file, or a larger one."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
    if name != os.path.basename(name) or name in ("", ".", ".."):
        return None
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        file = os.open(name, flags, dir_fd=place)
    except OSError:
        return None
    finally:
        os.close(place)
    with os.fdopen(file, "rb") as stream:
        facts = os.fstat(stream.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > most_bytes:
            return None
        return stream.read(most_bytes)


def write_large(folder: str, name: str, data: bytes) -> str:
    """A file for the server in the loop's own folder. Returns its path."""
    place = Path(folder) / name
    place.write_bytes(data)
    return str(place)
