"""Owns benchmark.csv and solutions.jsonl: line by line in step with the chain, append-only, for people and for git.

Never reads a number from them. They are written after the commit; whatever a kill cut off is made up at the next open
or append, and only a torn last line that is the beginning of the right line is ever taken back.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from server.ledger.place import BENCHMARK, SOLUTIONS

CSV_COLUMNS = (
    "position", "seq", "at", "file", "kernel", "status", "reason", "speedup", "runtime_us", "ref_runtime_us", "regime",
    "mode", "author", "intent", "judge", "card", "uuid", "torch", "triton", "evaluator_md5", "git_sha", "text", "head",
)  # fmt: skip
HEADER = ",".join(CSV_COLUMNS) + "\n"
FORMULA = ("=", "+", "-", "@", "\t")
"""A text cell that begins so is run as a formula by spreadsheets; it gets a quote in front."""
SOLUTION_COLUMNS = {
    "burials": ("at", "sha", "reason"),
    "pins": ("at", "row_seq"),
    "foreign_rows": ("at", "source", "source_format", "file", "kernel", "status", "speedup", "runtime_us", "card"),
}
BLOCK_BYTES = 1 << 16
BATCH_LINES = 256
"""Lines in one write where many are missing: a ledger may hold gigabytes of texts."""


class Mirror:
    """One export file and what is known about its end. `lines` makes the lines after a position, from the database."""

    def __init__(self, path: Path, header: str, kinds: tuple[str, ...]) -> None:
        self.path = path
        self.header = header.encode()
        self.kinds = kinds
        self.seen_bytes = -1
        """Size after our last look; another size means that somebody else wrote."""
        self.position = 0
        """Chain position of the last line that agrees with the chain."""

    def lines(self, db: Database, after: int) -> Iterator[bytes]:
        """Right lines for all entries behind `after`, oldest first."""
        for position, kind, ref, hash_ in entries(db, after, self.kinds):
            yield line(db, position, kind, ref, hash_)

    def catch_up(self, db: Database) -> int:
        """Bring the file in step; the caller holds the lock. Returns the number of lines written."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        handle = os.open(self.path, flags, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(f"{self.path} is not a regular file")
            return self._catch_up(db, handle)
        finally:
            os.close(handle)

    def _catch_up(self, db: Database, handle: int) -> int:
        size = os.fstat(handle).st_size
        if size < len(self.header) and os.pread(handle, size, 0) == self.header[:size]:
            write_all(handle, self.header[size:])
            size = os.fstat(handle).st_size
        if size != self.seen_bytes:
            self.position = self._last_right_line(db, handle, size)
            size = os.fstat(handle).st_size
        written = 0
        lines = self.lines(db, self.position)
        while batch := list(itertools.islice(lines, BATCH_LINES)):
            write_all(handle, b"".join(batch))
            self.position = position_in(batch[-1])
            written += len(batch)
        self.seen_bytes = os.fstat(handle).st_size
        return written

    def _last_right_line(self, db: Database, handle: int, size: int) -> int:
        """Position of the last line that the chain agrees with; takes back a torn end, closes any other ragged end."""
        ragged = b""
        for number, text in enumerate(backwards(handle, size)):
            if number == 0 and not text.endswith(b"\n"):
                ragged = text
                continue
            position, head = position_in(text), head_in(text)
            if position and head and head == head_at(db, position):
                self._mend(db, handle, size, ragged, position)
                return position
        self._mend(db, handle, size, ragged, 0)
        return 0

    def _mend(self, db: Database, handle: int, size: int, ragged: bytes, position: int) -> None:
        if not ragged:
            return
        expected = next(self.lines(db, position), b"")
        if expected.startswith(ragged):
            os.ftruncate(handle, size - len(ragged))
        else:
            write_all(handle, b"\n")


@dataclass(slots=True)
class Exports:
    """Both files of a ledger's folder."""

    folder: Path
    mirrors: tuple[Mirror, ...] = field(default=())

    @classmethod
    def at(cls, folder: Path) -> Exports:
        """The files of `folder`; nothing is opened yet."""
        benchmark = Mirror(folder / BENCHMARK, HEADER, ("rows",))
        solutions = Mirror(folder / SOLUTIONS, "", ("texts", "burials", "pins", "problems", "foreign_rows"))
        return cls(folder, (benchmark, solutions))

    def catch_up(self, db: Database) -> int:
        """Bring both files in step; the caller holds the lock. Returns the number of lines written."""
        return sum(mirror.catch_up(db) for mirror in self.mirrors)


def entries(db: Database, after: int, kinds: tuple[str, ...]) -> list[tuple[int, str, int, bytes]]:
    """Chain entries behind `after` of these kinds, oldest first."""
    marks = ",".join("?" * len(kinds))
    found = db.execute(
        # the + keeps SQLite off the index by kind, which would read the whole ledger at each append
        f"select position, kind, ref, hash from chain where position > ? and +kind in ({marks}) order by position",
        (after, *kinds),
    )
    return [(int(position), str(kind), int(ref), bytes(hash_)) for position, kind, ref, hash_ in found]


def head_at(db: Database, position: int) -> str | None:
    """The chain's hash at a position, in hexadecimal."""
    row = db.execute("select hash from chain where position = ?", (position,)).fetchone()
    return bytes(row[0]).hex() if row is not None and isinstance(row[0], bytes) else None


def line(db: Database, position: int, kind: str, ref: int, hash_: bytes) -> bytes:
    """The one right line for an entry."""
    if kind == "rows":
        return csv_line(db, position, ref, hash_)
    value: dict[str, Any] = {"position": position, **solution(db, kind, ref), "head": hash_.hex()}
    return json.dumps(value, separators=(", ", ": ")).encode("ascii") + b"\n"


def csv_line(db: Database, position: int, seq: int, hash_: bytes) -> bytes:
    """A line of benchmark.csv for row `seq`."""
    columns = ", ".join("kernel_sha" if name == "text" else name for name in CSV_COLUMNS[1:-1])
    values = db.execute(f"select {columns} from rows where seq = ?", (seq,)).fetchone()
    out = io.StringIO()
    cells = [cell(value) for value in (position, *(values or (seq,)), hash_.hex())]
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode("utf-8", "surrogateescape")


def cell(value: Any) -> str:
    """A value as it stands in the file: one line, no formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    flat = " ".join(value.split())
    return "'" + flat if flat.startswith(FORMULA) else flat


def solution(db: Database, kind: str, ref: int) -> dict[str, Any]:
    """What solutions.jsonl says about an entry."""
    if kind == "texts":
        sha, text = db.execute("select sha, text from texts where id = ?", (ref,)).fetchone() or ("", "")
        first = db.execute(
            "select file, kernel, at, author, intent, parents from rows where kernel_sha = ? order by seq limit 1",
            (sha,),
        ).fetchone()
        about = dict(zip(("file", "kernel", "at", "author", "intent", "parents"), first or [None] * 6, strict=True))
        about["parents"] = _parsed(about["parents"] or "[]")
        return {"kind": "candidate", "sha": sha, **about, "text": text if isinstance(text, str) else text.hex()}
    if kind == "problems":
        sha, body = db.execute("select sha, body from problems where id = ?", (ref,)).fetchone() or ("", "null")
        return {"kind": "problem", "sha": sha, "problem": _parsed(body)}
    columns = SOLUTION_COLUMNS[kind]
    found = db.execute(f"select {', '.join(columns)} from {kind} where id = ?", (ref,)).fetchone()
    return {"kind": kind.rstrip("s").replace("_row", ""), **dict(zip(columns, found or [None] * 9, strict=False))}


def _parsed(body: str) -> Any:
    """JSON where it is JSON: a damaged value must not stop verify."""
    try:
        return json.loads(body)
    except ValueError:
        return body


def position_in(text: bytes) -> int:
    """The chain position that a line speaks of, 0 where it is no line of ours."""
    if text.startswith(b'{"position": '):
        digits = text[13:].split(b",", 1)[0]
    else:
        digits = text.split(b",", 1)[0]
    return int(digits) if digits.isdigit() and len(digits) < 19 else 0


def head_in(text: bytes) -> str | None:
    """The head of the chain at the end of a line."""
    tail = text.rstrip(b"\n")
    tail = tail.removesuffix(b'"}')[-64:]
    return tail.decode("ascii", "replace") if len(tail) == 64 else None


def backwards(handle: int, size: int) -> Iterator[bytes]:
    """Lines of a file from its end, each with its newline (the first without one where the file ends ragged)."""
    rest, at = b"", size
    while at > 0:
        step = min(BLOCK_BYTES, at)
        at -= step
        rest = os.pread(handle, step, at) + rest
        cut = rest.rfind(b"\n", 0, len(rest) - 1)
        while cut >= 0:
            yield rest[cut + 1 :]
            rest = rest[: cut + 1]
            cut = rest.rfind(b"\n", 0, len(rest) - 1)
    if rest:
        yield rest


def write_all(handle: int, data: bytes) -> None:
    """Write to the end, in as few system calls as the kernel allows."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
