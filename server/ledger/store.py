"""Owns the ledger: append, read, reuse. Nothing is ever changed or deleted here; corrections are new rows.

A Ledger is bound to the thread that opened it. It never judges and never words a number for a person.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from evalcore import wire
from evalcore.jobs import Measurement
from evalcore.problem import Problem
from server.host import Host
from server.ledger import place as places
from server.ledger import schema
from server.ledger.anchor import Anchor, Head
from server.ledger.chain import Entry, Value, genesis, key_name, link, seal, sealed_by
from server.ledger.columns import FORM, READ_COLUMNS, Row, dump, ordered, read_row, row_values, storable
from server.ledger.exports import Exports
from server.ledger.key import user_key
from server.ledger.lineage import Map, MapMaker
from server.ledger.reuse import ReuseKey, find_reusable
from server.ledger.verify import Report, verify
from server.ledger.writing import immediate, locked

WAIT_S = 30.0
"""How long a writer waits for another one. Each holds the file for a millisecond or two (P20: at least 5 s)."""

SELECT_ROW = f"select {', '.join('rows.' + name for name in READ_COLUMNS)}, chain.hash, chain.seal from rows"
JOIN_CHAIN = "left join chain on chain.kind = 'rows' and chain.ref = rows.seq"


class LedgerUnusable(Exception):
    """No place for a ledger could be opened. The message names both places and why."""


class Ledger:
    """One workspace's ledger, open. Made by `Ledger.open`."""

    def __init__(self, db: Database, place: places.Place, key: bytes | None, clock: Callable[[], str]) -> None:
        self.db = db
        self.place = place
        self.key = key
        self.key_name = key_name(key) if key else None
        self.clock = clock
        self.exports = Exports.at(place.folder)
        self.notes: tuple[str, ...] = (place.note,) if place.note else ()
        """What a person should know: why the ledger lies elsewhere, what was made up for."""
        self.id = self._meta("ledger_id")
        self.genesis = genesis(db.execute("select name, value from meta"))
        self.anchor: Anchor | None = None
        self._maps = MapMaker()

    @classmethod
    def open(
        cls,
        workspace: Path,
        *,
        state_dir: Path,
        key: bytes | None = None,
        clock: Callable[[], str] | None = None,
    ) -> Ledger:
        """Open (or make) the ledger of `workspace`. `key` None: the user's key in `state_dir`, made on first use.

        Where the workspace's own folder cannot be used (link, network file system, read-only, a stranger's database)
        the ledger lies in `state_dir` and `.notes` says so. Raises LedgerUnusable where neither place works.
        """
        key = key if key is not None else user_key(state_dir)
        clock = clock or Host().now_utc
        chosen = places.choose(workspace, state_dir)
        try:
            ledger = cls._at(chosen, key, clock)
        except (schema.SchemaRefused, sqlite3.Error, OSError) as problem:
            spare = places.state_place(workspace, state_dir, f"{chosen.database} cannot be used: {problem}")
            if spare.folder == chosen.folder:
                raise LedgerUnusable(str(problem)) from problem
            try:
                ledger = cls._at(spare, key, clock)
            except (schema.SchemaRefused, sqlite3.Error, OSError) as again:
                raise LedgerUnusable(f"{spare.note}; and there: {again}") from again
        ledger.anchor = Anchor.of(state_dir, places.workspace_id(workspace), ledger.id)
        ledger._settle()
        return ledger

    @classmethod
    def _at(cls, place: places.Place, key: bytes | None, clock: Callable[[], str]) -> Ledger:
        place.folder.mkdir(parents=True, exist_ok=True)
        obstacle = places.link_in_the_way(place.folder)
        if obstacle is not None:
            raise OSError(f"{obstacle} is not a regular file")
        places.leave_gitignore(place.folder)
        connection = sqlite3.connect(place.database, timeout=WAIT_S)
        try:
            db = Database(connection, recursive_triggers=True, execute_plugins=False)
            schema.harden(db)
            schema.version(db)  # before the first write: a stranger's file keeps every byte
            mode = db.execute("pragma journal_mode = wal").fetchone()[0]
            if str(mode).lower() != "wal":
                raise OSError(f"SQLite's write-ahead log does not work there (journal mode {mode})")
            db.execute("pragma synchronous = full")
            with immediate(db):
                schema.migrate(db)
                schema.guard(db)
                if db.execute("select 1 from meta where name = 'ledger_id'").fetchone() is None:
                    identity = [("ledger_id", secrets.token_hex(16)), ("made_at", clock())]
                    db.conn.executemany("insert into meta (name, value) values (?, ?)", identity)
            schema.assert_guarded(db)
            return cls(db, place, key, clock)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the file. A closed ledger refuses everything."""
        self.db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # writing

    def append(
        self,
        measurement: Measurement,
        *,
        text: str,
        intent: str = "",
        problem: Problem | None = None,
        after: str | None = None,
    ) -> int:
        """Record a verdict and the text it is about; returns its seq. Durable when this returns: then it may be shown.

        `problem` is kept once per sha so that others can run the row again. `after` is the sha of the judged text that
        stood there before, where the caller knows it.
        """
        values = row_values(measurement, intent=intent)
        with immediate(self.db):
            self._keep_text(measurement.kernel_sha, text)
            if problem is not None:
                self._keep_problem(measurement.problem_sha, problem)
            seq = self.last_seq() + 1
            parents = measurement.parents or self._implied_parents(measurement, after)
            self._put("rows", {**values, "seq": seq, "parents": dump(parents)}, seq)
        self._settle()
        return seq

    def bury(self, sha: str, reason: str) -> None:
        """Record why the branch of this text ends here. Nothing is deleted; a later burial adds a reason."""
        self._event("burials", {"at": self.clock(), "sha": sha, "reason": reason})

    def pin(self, seq: int) -> None:
        """Make row `seq` the baseline of its file and kernel. Raises KeyError where there is no such row."""
        self.row(seq)
        self._event("pins", {"at": self.clock(), "row_seq": seq})

    def add_foreign(self, values: dict[str, Value]) -> int:
        """Record somebody else's result (server.ledger.foreign makes the values). It is never a verdict of ours."""
        return self._event("foreign_rows", {"at": self.clock(), **values})

    def _event(self, table: str, values: dict[str, Any]) -> int:
        with immediate(self.db):
            number = self._next(table)
            given = {"id": number, **{name: storable(name, value) for name, value in values.items()}}
            self._put(table, given, number)
        self._settle()
        return number

    def _next(self, table: str) -> int:
        return int(self.db.execute(f"select coalesce(max(id), 0) + 1 from {table}").fetchone()[0])

    def _keep_text(self, sha: str, text: str) -> None:
        if self.db.execute("select 1 from texts where sha = ?", (sha,)).fetchone() is None:
            try:
                stored: str | bytes = text.encode("utf-8").decode("utf-8")
            except UnicodeEncodeError:
                stored = text.encode("utf-8", "surrogatepass")
            number = self._next("texts")
            self._put("texts", {"id": number, "sha": sha, "text": stored}, number)

    def _keep_problem(self, sha: str, problem: Problem) -> None:
        if self.db.execute("select 1 from problems where sha = ?", (sha,)).fetchone() is None:
            number = self._next("problems")
            self._put("problems", {"id": number, "sha": sha, "body": dump(problem)}, number)

    def _implied_parents(self, measurement: Measurement, after: str | None) -> tuple[str, ...]:
        """A person's text that was never judged before follows `after`, else the person's text judged before it.

        A search's candidates are not in that line: one of them is only where it was accepted, and then it is `after`.
        """
        if measurement.author != "person":
            return ()
        where = (measurement.file, measurement.kernel)
        seen = "select 1 from rows where kernel_sha = ? and file = ? and kernel = ?"
        if self.db.execute(seen, (measurement.kernel_sha, *where)).fetchone() is not None:
            return ()
        if after is not None and after != measurement.kernel_sha:
            return (after,)
        latest = (
            "select kernel_sha from rows where file = ? and kernel = ? and cause <> 'search' order by seq desc limit 1"
        )
        found = self.db.execute(latest, where).fetchone()
        return (str(found[0]),) if found else ()

    def _put(self, table: str, values: dict[str, Value], ref: int) -> None:
        """Insert a row and its link, inside the caller's transaction."""
        row = ordered(FORM, table, values)
        names = schema.FORMS[FORM][table]
        self.db.execute(f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})", row)
        head = self.db.execute("select position, hash from chain order by position desc limit 1").fetchone()
        position, previous = (int(head[0]) + 1, bytes(head[1])) if head else (1, self.genesis)
        entry = Entry(position=position, form=FORM, kind=table, ref=ref, key_name=self.key_name)
        hash_ = link(previous, entry, row)
        sealed = seal(self.key, hash_) if self.key else None
        self.db.execute(
            "insert into chain (position, form, kind, ref, hash, key_name, seal) values (?, ?, ?, ?, ?, ?, ?)",
            (position, FORM, table, ref, hash_, self.key_name, sealed),
        )

    def _settle(self) -> None:
        """After a commit: exports in step, then the anchor. A fault here loses nothing; the next makes up for it."""
        try:
            with locked(self.place.folder):
                self.exports.catch_up(self.db)
                head = self.head()
                if head is not None and self.anchor is not None:
                    self.anchor.write(head)
        except OSError as problem:
            self._note(f"benchmark.csv and solutions.jsonl are not in step: {problem}")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes = (*self.notes, text)

    # reading

    def rows(
        self,
        *,
        file: str | None = None,
        kernel: str | None = None,
        after: int | None = None,
        before: int | None = None,
        limit: int = 200,
    ) -> list[Row]:
        """Rows, newest first; with `after`, oldest first, so that a follower that pages on misses none."""
        given = (("file = ?", file), ("kernel = ?", kernel), ("seq > ?", after), ("seq < ?", before))
        tests = [test for test, value in given if value is not None]
        where = f"where {' and '.join('rows.' + test for test in tests)}" if tests else ""
        order = "asc" if after is not None else "desc"
        query = f"{SELECT_ROW} {JOIN_CHAIN} {where} order by rows.seq {order} limit ?"
        found = self._fetch(query, (*(value for _, value in given if value is not None), limit))
        return [self._row(values) for values in found]

    def _fetch(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows. A byte that is no UTF-8 stops no list: from the first one on, text is read leniently."""
        try:
            return self.db.execute(query, values).fetchall()
        except sqlite3.OperationalError:
            self.db.conn.text_factory = lambda raw: raw.decode("utf-8", "replace")
            return self.db.execute(query, values).fetchall()

    def row(self, seq: int) -> Row:
        """One row. Raises KeyError where there is none."""
        found = self._fetch(f"{SELECT_ROW} {JOIN_CHAIN} where rows.seq = ?", (seq,))
        if not found:
            raise KeyError(f"the ledger has no row {seq}")
        return self._row(found[0])

    def _row(self, values: tuple[Any, ...]) -> Row:
        hash_, given = values[-2:]
        mine = self.key is not None and isinstance(hash_, bytes) and sealed_by(self.key, hash_, given)
        return read_row(values[:-2], foreign=not mine)

    def latest(self, file: str, kernel: str) -> Row | None:
        """The newest row of a kernel."""
        found = self.rows(file=file, kernel=kernel, limit=1)
        return found[0] if found else None

    def of_text(self, sha: str, *, kernel: str | None = None) -> list[Row]:
        """All rows about a text, newest first. `sha` may be cut short to any length that a person would type."""
        test, values = "rows.kernel_sha >= ? and rows.kernel_sha < ?", [sha, sha + "g"]
        if kernel is not None:
            test, values = f"{test} and rows.kernel = ?", [*values, kernel]
        found = self._fetch(f"{SELECT_ROW} {JOIN_CHAIN} where {test} order by rows.seq desc", values)
        return [self._row(row) for row in found]

    def count(self, *, file: str | None = None, kernel: str | None = None) -> int:
        """Number of rows."""
        given = (("file = ?", file), ("kernel = ?", kernel))
        tests = [test for test, value in given if value is not None]
        where = f"where {' and '.join(tests)}" if tests else ""
        values = [value for _, value in given if value is not None]
        return int(self.db.execute(f"select count(*) from rows {where}", values).fetchone()[0])

    def text(self, sha: str) -> str | None:
        """The text of that sha, exactly as it was judged; None where it was never judged here."""
        found = self.db.execute("select text from texts where sha = ?", (sha,)).fetchone()
        if found is None:
            return None
        return found[0] if isinstance(found[0], str) else bytes(found[0]).decode("utf-8", "surrogatepass")

    def problem(self, sha: str) -> Problem | None:
        """The problem of that sha, None where it was not kept."""
        found = self.db.execute("select body from problems where sha = ?", (sha,)).fetchone()
        return wire.decode(Problem, json.loads(found[0])) if found else None

    def burial(self, sha: str) -> str | None:
        """The newest reason why this text's branch ended, or None."""
        found = self.db.execute("select reason from burials where sha = ? order by id desc limit 1", (sha,)).fetchone()
        return str(found[0]) if found else None

    def pinned(self, file: str, kernel: str) -> Row | None:
        """The pinned baseline of a kernel: the newest pin of one of its rows."""
        found = self.db.execute(
            "select rows.seq from pins join rows on rows.seq = pins.row_seq where rows.file = ? and rows.kernel = ?"
            " order by pins.id desc limit 1",
            (file, kernel),
        ).fetchone()
        return self.row(int(found[0])) if found else None

    def reusable(self, key: ReuseKey) -> Row | None:
        """A row of this user's whose verdict still holds for `key`, or None. See server.ledger.reuse."""
        seq = find_reusable(self.db, key, self.key, self.genesis)
        return self.row(seq) if seq is not None else None

    def last_seq(self) -> int:
        """The newest row's seq, 0 in an empty ledger."""
        return int(self.db.execute("select coalesce(max(seq), 0) from rows").fetchone()[0])

    def head(self) -> Head | None:
        """Position and hash of the newest entry."""
        found = self.db.execute("select position, hash from chain order by position desc limit 1").fetchone()
        return Head(position=int(found[0]), hash=bytes(found[1]).hex()) if found else None

    def data_version(self) -> int:
        """SQLite's counter: it differs from the last call's when another process wrote since. Cheap; poll it."""
        return int(self.db.execute("pragma data_version").fetchone()[0])

    def verify(self) -> Report:
        """Check everything that is stored against the chain, the exports and the anchor."""
        return verify(self.db, self.place.folder, self.key, self.anchor)

    def map(self, file: str | None = None, kernel: str | None = None) -> Map:
        """The candidates of a kernel (or of all) as a DAG with stable lanes."""
        try:
            return self._maps.make(self.db, file, kernel)
        except sqlite3.OperationalError:  # a byte that is no UTF-8, see _fetch
            self.db.conn.text_factory = lambda raw: raw.decode("utf-8", "replace")
            return self._maps.make(self.db, file, kernel)

    def _meta(self, name: str) -> str:
        return str(self.db.execute("select value from meta where name = ?", (name,)).fetchone()[0])
