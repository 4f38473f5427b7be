"""Owns what other programs do to files and ledgers while the server runs: watching, reading, posting. Never judges."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

from server.events import FileChanged, LedgerGrew
from server.ledger.store import LedgerUnusable
from server.project import glob_folders, read_text
from server.session import Session
from server.watch import Watcher

MOST_NEW_FILES = 200

log = logging.getLogger("odyssey.outside")


class Outside:
    """The watcher, and what follows from what it sees."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._watcher: Watcher | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        """Begin to watch; called on the event loop, once the workspace folders are known."""
        self._watcher = Watcher(
            lambda paths, checkout: self._run(self.files_changed(paths, checkout)),
            lambda root: self._run(self.ledger_changed(root)),
        )
        for folder in self._session.state.project.folders:
            self._watcher.project(Path(folder))
        self.settings_changed()  # what lies there already is not new

    def opened(self, path: str) -> None:
        """A file was opened: see it, its project's git state and its ledger."""
        if self._watcher is None or not path.startswith("/"):
            return
        self._watcher.folder(Path(path).parent)
        self._watcher.project(self._session.state.project.root_of(path))

    def depends_on(self, paths: tuple[str, ...]) -> None:
        """A verdict depends on these files."""
        if self._watcher is not None:
            for path in paths:
                self._watcher.folder(Path(path).parent)

    def settings_changed(self) -> set[str]:
        """The person's globs, or the folders that they name, may be new; the files of folders that are new."""
        if self._watcher is None:
            return set()
        found: set[str] = set()
        for folder in self._session.state.project.folders:
            for place in glob_folders(Path(folder), self._session.state.settings.watch):
                if not place.is_dir():
                    self._watcher.folder(nearest_folder(place))
                elif self._watcher.folder(place, recursive=True):
                    found |= _files_below(place)
        return found

    async def files_changed(self, paths: set[str], checkout: bool) -> None:
        """Read what changed, off the event loop, and post it."""
        if self._session.state.settings.watch:
            paths = paths | self.settings_changed()
        for path in sorted(paths):
            found = await asyncio.to_thread(read_text, path)
            text = found.text if found is not None else None
            self._session.apply(FileChanged(path=path, text=text, checkout=checkout))

    async def ledger_changed(self, root: Path) -> None:
        """Another process may have appended: ring the bell if it did."""
        try:
            seq = await self._session.state.recorder_at(root).grown()
        except (LedgerUnusable, OSError, sqlite3.Error) as problem:
            log.warning("the ledger of %s cannot be read: %s", root, problem)
            return
        if seq is not None:
            self._session.apply(LedgerGrew(seq=seq))

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.close()
        for task in self._tasks:
            task.cancel()

    def _run(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def nearest_folder(place: Path) -> Path:
    """The nearest folder above a place that is there: it shows when the place is made."""
    return next((parent for parent in place.parents if parent.is_dir()), Path("/"))


def _files_below(folder: Path) -> set[str]:
    """The files of a folder that came after us; a bounded number, for it may be a whole checkout."""
    found: set[str] = set()
    for place in folder.rglob("*"):
        if len(found) >= MOST_NEW_FILES:
            break
        if place.is_file() and not place.is_symlink():
            found.add(str(place))
    return found
