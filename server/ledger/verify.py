"""Owns the check of a whole ledger: chain, seals, tables, texts, exports, anchor. Never repairs and never writes.

What it can find and what it cannot is written down in docs/ledger.md (threat model).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from evalcore.fingerprint import sha256_text
from server.ledger import schema
from server.ledger.anchor import Anchor
from server.ledger.chain import Entry, genesis, key_name, link, sealed_by
from server.ledger.columns import FORMS
from server.ledger.exports import Exports, Mirror, line, position_in
from server.ledger.place import DATABASE, link_in_the_way

MOST_FINDINGS = 200
"""A full rewrite would list every row; the first ones say enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is not as it was written."""

    where: str
    """'row 12', 'entry 40', 'benchmark.csv line 7', ..."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What verify found."""

    state: str
    """'intact' | 'damaged' | 'foreign' (whole, but not one entry sealed by this user's key) | 'empty'."""
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    entries: int
    rows: int
    mine: int
    """Entries sealed by this user's key."""
    others: int
    """Entries of other keys, or unsealed: evidence only."""
    head: str | None

    @property
    def ok(self) -> bool:
        """True where nothing is wrong."""
        return not self.faults


def verify(db: Database, folder: Path, key: bytes | None, anchor: Anchor | None = None) -> Report:
    """Check everything; reads only. Damaged UTF-8 and a damaged file are findings, not exceptions."""
    before = db.conn.text_factory
    db.conn.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        return _Check(db, folder, key, anchor).run()
    finally:
        db.conn.text_factory = before


def verify_folder(folder: Path, key: bytes | None, anchor_of: Callable[[str], Anchor | None]) -> Report:
    """Check the ledger in `folder` without changing a byte: opened read-only, nothing is migrated or made up for.

    `anchor_of` gives the anchor for a ledger's id. A file that cannot be opened is a report, not an exception.
    """
    path = folder / DATABASE
    obstacle = link_in_the_way(folder)
    try:
        if obstacle is not None:
            raise OSError(f"{obstacle} is a symbolic link (or no regular file) and is not followed")
        path.stat()
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30.0)
    except (OSError, sqlite3.Error) as problem:
        return unreadable(str(problem))
    try:
        db = Database(connection, recursive_triggers=True, execute_plugins=False)
        schema.harden(db)
        schema.version(db)
        found = db.execute("select value from meta where name = 'ledger_id'").fetchone()
        return verify(db, folder, key, anchor_of(str(found[0]) if found else ""))
    except (sqlite3.Error, schema.SchemaRefused) as problem:
        return unreadable(str(problem))
    finally:
        connection.close()


def unreadable(why: str) -> Report:
    """The report on a file that cannot be opened."""
    fault = Fault(where=DATABASE, message=why)
    return Report(state="damaged", faults=(fault,), notes=(), entries=0, rows=0, mine=0, others=0, head=None)


class _Check:
    """One run over one ledger."""

    def __init__(self, db: Database, folder: Path, key: bytes | None, anchor: Anchor | None) -> None:
        self.db, self.folder, self.key, self.anchor = db, folder, key, anchor
        self.faults: list[Fault] = []
        self.notes: list[str] = []
        self.own_name = key_name(key) if key else None
        self.seen = anchor.read() if anchor else None
        self.seen_hash: str | None = None
        self.entries = self.rows = self.mine = self.others = 0
        self.head: bytes | None = None

    def fault(self, where: str, message: str) -> None:
        self.faults.append(Fault(where=where, message=message))

    def run(self) -> Report:
        snapshot = "begin"  # one read snapshot, so that a writer beside us is no fault
        try:
            self.db.conn.execute(snapshot)
            try:
                self._file()
                self._chain()
                self._tables()
                self._texts()
                for mirror in Exports.at(self.folder).mirrors:
                    self._mirror(mirror)
                self._anchor()
            finally:
                if self.db.conn.in_transaction:
                    self.db.conn.execute("rollback")
        except (sqlite3.Error, schema.SchemaRefused) as problem:
            self.fault("ledger.db", f"cannot be read to the end: {problem}")
        return self._report()

    def _report(self) -> Report:
        state = "damaged" if self.faults else "empty" if not self.entries else "intact" if self.mine else "foreign"
        if state == "foreign":
            self.notes.append("no entry is sealed by this user's key: evidence to read, nothing here is a verdict")
        elif self.others:
            self.notes.append(
                f"{self.others} of {self.entries} entries are not sealed by this user's key: evidence only"
            )
        faults = self.faults[:MOST_FINDINGS]
        if len(self.faults) > len(faults):
            self.notes.append(f"{len(self.faults)} faults, the first {len(faults)} are listed")
        return Report(
            state=state, faults=tuple(faults), notes=tuple(self.notes), entries=self.entries, rows=self.rows,
            mine=self.mine, others=self.others, head=self.head.hex() if self.head else None,
        )  # fmt: skip

    def _file(self) -> None:
        for (words,) in self.db.execute("pragma integrity_check(20)"):
            if words != "ok":
                self.fault("ledger.db", str(words))
        try:
            schema.assert_guarded(self.db)
        except schema.SchemaRefused as problem:
            self.fault("ledger.db", str(problem))

    def _chain(self) -> None:
        meta = self.db.execute("select name, value from meta").fetchall()
        previous = genesis(pair for pair in meta if all(isinstance(item, str) for item in pair))
        for position, form, kind, ref, hash_, given, name in self.db.execute(
            "select position, form, kind, ref, hash, seal, key_name from chain order by position"
        ):
            self.entries += 1
            where = f"entry {position}"
            if position != self.entries:
                self.fault(where, f"entries {self.entries} to {position - 1} are missing" if position > self.entries
                           else "stands at a wrong place")  # fmt: skip
                self.entries = position
            right = self._right_hash(previous, position, form, kind, ref, name)
            if right is None or right != hash_:
                self.fault(where, f"{kind} {ref}: the stored values are not those that were written")
            self._seal(where, hash_, given, name)
            previous = self.head = hash_ if isinstance(hash_, bytes) else b""
            if self.seen is not None and position == self.seen.position:
                self.seen_hash = previous.hex()

    def _right_hash(self, previous: bytes, *stored: Any) -> bytes | None:
        position, form, kind, ref, name = stored
        columns = FORMS.get(form, {}).get(kind)
        if columns is None:
            return None
        values = self.db.execute(
            f"select {', '.join(columns)} from {kind} where {schema.KEYS[kind]} = ?", (ref,)
        ).fetchone()
        if values is None:
            return None
        return link(previous, Entry(position=position, form=form, kind=kind, ref=ref, key_name=name), values)

    def _seal(self, where: str, hash_: Any, given: Any, name: Any) -> None:
        if self.key is not None and isinstance(hash_, bytes) and isinstance(given, bytes):
            if sealed_by(self.key, hash_, given):
                self.mine += 1
                return
            if name == self.own_name:
                self.fault(where, "names this user's key, but the seal is not this key's")
        self.others += 1

    def _tables(self) -> None:
        """Every row of every table is spoken of by exactly one entry, in order, without a gap."""
        for table, key in schema.KEYS.items():
            if table in ("meta", "chain"):
                continue
            stored = int(self.db.execute(f"select count(*) from {table}").fetchone()[0])
            if table == "rows":
                self.rows = stored
            expected = 0
            for (ref,) in self.db.execute("select ref from chain where kind = ? order by position", (table,)):
                expected += 1
                if ref != expected:
                    self.fault(f"{table} {ref}", f"out of order: {table} {expected} was to come")
                    expected = ref if isinstance(ref, int) else expected
            if stored != expected:
                extra = self.db.execute(
                    f"select {key} from {table} where not exists"
                    f" (select 1 from chain where kind = ? and ref = {table}.{key}) limit 5", (table,)
                ).fetchall()  # fmt: skip
                named = ", ".join(str(row[0]) for row in extra)
                self.fault(
                    table,
                    f"{stored} stored, {expected} in the chain" + (f"; not in the chain: {named}" if named else ""),
                )

    def _texts(self) -> None:
        for number, sha, text in self.db.execute("select id, sha, text from texts"):
            shown = text if isinstance(text, str) else bytes(text).decode("utf-8", "surrogatepass")
            if sha256_text(shown) != sha:
                self.notes.append(f"text {number} was filed under a sha that is not its own")

    def _mirror(self, mirror: Mirror) -> None:
        name = mirror.path.name
        wanted = {position for (position,) in self._positions(mirror.kinds)}
        last = 0
        for number, raw in _numbered(mirror.path):
            where = f"{name} line {number}"
            if number == 1 and mirror.header:
                if raw != mirror.header:
                    self.fault(where, "the header is not ours")
                continue
            position = position_in(raw)
            if position == 0:
                self.fault(where, "is no line of ours")
                continue
            found = self.db.execute("select kind, ref, hash from chain where position = ?", (position,)).fetchone()
            if found is None or found[0] not in mirror.kinds:
                self.fault(where, f"entry {position} stands here but not in the ledger")
            elif raw != line(self.db, position, found[0], found[1], found[2]):
                self.fault(where, f"is not what the ledger says about entry {position}")
            if position <= last:
                self.fault(where, f"entry {position} after entry {last}")
            last = max(last, position)
            wanted.discard(position)
        if wanted:
            self.fault(name, f"{len(wanted)} entries are not in it, the first is {min(wanted)}")

    def _positions(self, kinds: tuple[str, ...]) -> Iterator[tuple[int]]:
        marks = ",".join("?" * len(kinds))
        return iter(self.db.execute(f"select position from chain where kind in ({marks})", kinds))

    def _anchor(self) -> None:
        for path in self.anchor.predecessors() if self.anchor else ():
            earlier = Anchor(path).read()
            words = f"up to entry {earlier.position}" if earlier else "unreadable"
            self.notes.append(
                f"this machine has seen another ledger at this place ({words}); it was deleted or replaced"
            )
        if self.seen is None:
            return
        if self.seen_hash is None:
            words = f"this machine has seen entry {self.seen.position}; the ledger ends at {self.entries}"
            self.fault("ledger.db", words)
        elif self.seen_hash != self.seen.hash:
            words = "is another one than this machine wrote there: the ledger was rewritten"
            self.fault(f"entry {self.seen.position}", words)


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers from 1; nothing where there is no file."""
    try:
        with path.open("rb") as lines:
            yield from enumerate(lines, start=1)
    except FileNotFoundError:
        return
