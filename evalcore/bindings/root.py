"""Owns finding the folder that a person's Python would import from. Lists no folder; asks `read` for marker files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from evalcore.bindings.binding import Reader

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git/HEAD", ".git", "odyssey.toml")
_MOST_PARENTS = 24


def project_root(path: str, read: Reader) -> str:
    """The folder for sys.path: above the outermost package, else the nearest with a project file, else the file's own.

    A script's own folder is on sys.path as well when it is run; that one is the loader's business.
    """
    folder = PurePath(path).parent
    if read(str(folder / "__init__.py")) is not None:
        for parent in ancestors(folder):
            if read(str(parent / "__init__.py")) is None:
                return str(parent)
    for parent in ancestors(folder):
        if any(read(str(parent / marker)) is not None for marker in _MARKERS):
            return str(parent)
    return str(folder)


def ancestors(folder: PurePath) -> Iterator[PurePath]:
    """The folder itself and those above it, nearest first, a bounded number."""
    for count, parent in enumerate((folder, *folder.parents)):
        if count >= _MOST_PARENTS:
            return
        yield parent
