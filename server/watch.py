"""Owns watchdog: which folders are watched, and turning what it sees into events. Never judges, never reads LSP.

Only folders of interest are watched (those of open files and their helpers, .git for checkouts, .odyssey for rows of
other processes, the fixed part of the person's globs): a recursive watch of a whole workspace would take in its
environments and model weights.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

COALESCE_S = 0.2
LEDGER_S = 0.03
MOST_FOLDERS = 400

log = logging.getLogger("odyssey.watch")


class Watcher:
    """A watchdog observer in its own thread; `on_files` and `on_ledger` are called on the event loop."""

    def __init__(self, on_files: Callable[[set[str], bool], None], on_ledger: Callable[[Path], None]) -> None:
        self._on_files = on_files
        self._on_ledger = on_ledger
        self._observer: Any = None
        self._folders: dict[str, bool] = {}
        self._pending: set[str] = set()
        self._checkout = False
        self._git_lock: Path | None = None
        self._ledgers: dict[Path, asyncio.TimerHandle] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def folder(self, folder: Path, *, recursive: bool = False) -> bool:
        """Watch a folder, with all below it where asked; whether it is newly watched. A missing one is left out."""
        name = str(folder)
        if self._folders.get(name, False) or (name in self._folders and not recursive):
            return False
        if len(self._folders) >= MOST_FOLDERS or not folder.is_dir():
            return False
        self._folders[name] = recursive
        self._schedule(name, recursive)
        return True

    def project(self, root: Path) -> None:
        """Watch what tells about a whole project: its git state and its ledger."""
        for name in (".git", ".odyssey"):
            self.folder(root / name)

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._observer is not None:
            self._observer.stop()

    def _schedule(self, folder: str, recursive: bool) -> None:
        if self._observer is None:
            self._observer = _observer()
            self._observer.start()
        try:
            self._observer.schedule(_Handler(self._seen), folder, recursive=recursive)
        except OSError as problem:  # no more inotify watches: the editor's own events still come
            log.warning("%s cannot be watched: %s", folder, problem)

    def _seen(self, path: str) -> None:
        """In watchdog's thread: hand over and return."""
        try:
            self._loop.call_soon_threadsafe(self._note, path)
        except RuntimeError:
            return  # the loop is closed: the server is ending

    def _note(self, path: str) -> None:
        place = PurePath(path)
        if place.name == ".odyssey":
            self.folder(Path(path))
            self._ring(Path(place.parent))
            return
        if place.parent.name == ".odyssey":
            self._ring(Path(place.parent.parent))
            return
        if place.parent.name == ".git":
            # A commit writes neither of these; a checkout, a pull, a merge and a hard reset write one at least.
            self._checkout |= place.name in ("HEAD", "ORIG_HEAD", "MERGE_HEAD")
            if place.name == "index.lock":
                self._git_lock = Path(path)
        else:
            self._pending.add(path)
        if self._timer is None:
            self._timer = self._loop.call_later(COALESCE_S, self._flush)

    def _ring(self, root: Path) -> None:
        """Look at a ledger when its files have rested for a moment: what is written before the commit tells nothing."""
        timer = self._ledgers.pop(root, None)
        if timer is not None:
            timer.cancel()
        self._ledgers[root] = self._loop.call_later(LEDGER_S, self._look, root)

    def _look(self, root: Path) -> None:
        self._ledgers.pop(root, None)
        self._on_ledger(root)

    def _flush(self) -> None:
        self._timer = None
        if self._git_lock is not None:
            if self._git_lock.exists():  # git is still writing files: whether it is a checkout shows at its end
                self._timer = self._loop.call_later(COALESCE_S, self._flush)
                return
            self._git_lock = None
        pending, self._pending = self._pending, set()
        checkout, self._checkout = self._checkout, False
        if pending:
            self._on_files(pending, checkout)


def _observer() -> Any:
    from watchdog.observers import Observer

    observer = Observer()
    observer.daemon = True
    return observer


class _Handler:
    """watchdog's interface: anything but a pure read counts, and an editor's save by renaming too."""

    def __init__(self, seen: Callable[[str], None]) -> None:
        self._seen = seen

    def dispatch(self, event: Any) -> None:
        """Called by watchdog for each event."""
        if event.event_type in ("opened", "closed_no_write"):
            return
        if event.is_directory and event.event_type != "created":
            return
        for path in (event.src_path, getattr(event, "dest_path", "")):
            if path:
                self._seen(path if isinstance(path, str) else path.decode("utf-8", "surrogateescape"))
