"""Owns how a write is fenced: a transaction that has the database from its start, a lock for the files beside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sqlite_utils import Database

from server.ledger.place import LOCK

LOCK_WAIT_S = 10.0
LOCK_LOOK_S = 0.0005


@contextlib.contextmanager
def immediate(db: Database) -> Iterator[None]:
    """A write transaction that has the file from its first statement on: two writers never read the same head."""
    db.conn.execute("begin immediate")
    try:
        yield
    except BaseException:
        if db.conn.in_transaction:
            db.conn.execute("rollback")
        raise
    db.conn.execute("commit")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The lock of a ledger's folder, for what lies beside the database. Freed by the kernel when a process dies.

    Raises TimeoutError (an OSError) where another process holds it for LOCK_WAIT_S: it was stopped, not busy.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(folder / LOCK, flags, 0o644)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    started = time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() - started > LOCK_WAIT_S:
                raise TimeoutError("another process has held the ledger's lock for too long") from None
            time.sleep(LOCK_LOOK_S)
