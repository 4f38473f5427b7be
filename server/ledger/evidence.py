"""Owns reading somebody else's ledger: copied aside, opened there, never written. Nothing read so is a verdict here."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from server.ledger import schema
from server.ledger.place import DATABASE, Place, link_in_the_way
from server.ledger.store import Ledger


class NoEvidence(Exception):
    """There is no ledger that can be read; the message says why."""


@contextlib.contextmanager
def evidence(folder: Path) -> Iterator[Ledger]:
    """The ledger in `folder` (an .odyssey folder) as it is now; all its rows are foreign. Raises NoEvidence."""
    obstacle = link_in_the_way(folder)
    path = folder / DATABASE
    if obstacle is not None or not path.is_file():
        raise NoEvidence(f"no ledger to read in {folder}")
    with tempfile.TemporaryDirectory(prefix="odyssey-evidence-") as aside:
        try:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30.0)
            target = sqlite3.connect(Path(aside) / DATABASE)
            with contextlib.closing(source), contextlib.closing(target):
                source.execute("pragma trusted_schema = off")
                source.backup(target)
            ledger = Ledger._at(Place(folder=Path(aside)), None, lambda: "")
        except (sqlite3.Error, schema.SchemaRefused, OSError) as problem:
            raise NoEvidence(f"{path} cannot be read: {problem}") from problem
        with ledger:
            yield ledger
