"""Owns which folder a file belongs to, which files may hold kernels, and reading them. Never parses.

Parsing and binding happen in a reader child; this module only keeps the questions and answers in order.
"""

from __future__ import annotations

import fnmatch
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

MOST_PARENTS = 24

MARKERS = (".odyssey", "odyssey.toml", ".git", "pyproject.toml")

LANGUAGES = {".py": "python", ".cu": "cuda", ".cuh": "cuda"}

MAX_FILE_BYTES = 4 << 20
"""A file on the disk beyond this is not read: kernels are not that long, and generated files would only cost."""


@dataclass(frozen=True, slots=True)
class DiskText:
    """A file's text as an editor would show it."""

    text: str
    valid: bool
    """False where bytes that are no UTF-8 had to be replaced."""


def language_of(path: str, language_id: str = "") -> str | None:
    """'python' or 'cuda' for a file that may hold kernels, else None. The editor's language id helps for new texts."""
    known = LANGUAGES.get(PurePath(path).suffix.lower())
    if known is not None:
        return known
    return {"python": "python", "cuda": "cuda", "cuda-cpp": "cuda", "cudacpp": "cuda"}.get(language_id)


def read_text(path: str) -> DiskText | None:
    """A regular file's text, BOM taken off, ends of lines kept; None where it is gone, too long, or no file."""
    place = Path(path)
    try:
        if not place.is_file() or place.stat().st_size > MAX_FILE_BYTES:
            return None
        raw = place.read_bytes()
    except OSError:
        return None
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return DiskText(raw.decode("utf-8"), True)
    except UnicodeDecodeError:
        return DiskText(raw.decode("utf-8", "replace"), False)


class Project:
    """The workspace folders, and what belongs to which."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        self.folders: tuple[str, ...] = tuple(folders)

    def root_of(self, path: str) -> Path:
        """The folder of a file's ledger: its workspace folder, else the nearest project, else its own."""
        around = [folder for folder in self.folders if PurePath(path).is_relative_to(folder)]
        if around:
            return Path(max(around, key=len))
        return nearest_root(path)

    def watched(self, path: str, globs: Iterable[str]) -> bool:
        """Whether a never opened file matches one of the person's globs, relative to its workspace folder."""
        try:
            relative = PurePath(path).relative_to(self.root_of(path)).as_posix()
        except ValueError:
            return False
        return any(_matches(relative, glob) for glob in globs)


def nearest_root(path: str) -> Path:
    """The nearest folder above a file that looks like a project, else the file's own folder.

    The search ends at a folder that anybody may write to, as /tmp: a stranger could leave a project's mark there.
    """
    folder = Path(path).parent
    for count, parent in enumerate((folder, *folder.parents)):
        if count > MOST_PARENTS or _anybody_may_write(parent):
            break
        if any((parent / marker).exists() for marker in MARKERS):
            return parent
    return folder


def _anybody_may_write(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def glob_folders(root: Path, globs: Iterable[str]) -> tuple[Path, ...]:
    """The folders that have to be watched, with all below them, so that no match of the globs is missed."""
    found: list[Path] = []
    for glob in globs:
        fixed: list[str] = []
        for part in PurePath(glob).parts[:-1]:
            if any(mark in part for mark in "*?["):
                break
            fixed.append(part)
        found.append(root.joinpath(*fixed))
    return tuple(dict.fromkeys(found))


def _matches(relative: str, glob: str) -> bool:
    pattern = glob.removeprefix("./")
    if fnmatch.fnmatchcase(relative, pattern):
        return True
    return pattern.startswith("**/") and fnmatch.fnmatchcase(relative, pattern[3:])
