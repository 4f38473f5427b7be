"""Owns taking rows out of a ledger into files of other forms: one literal table of formats, one way to write a file.

Never changes the ledger. A target is written beside itself and renamed when whole, so a kill leaves the old one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from server.ledger import exports, nvbench, traces
from server.ledger.columns import FORMS, Row
from server.ledger.schema import KEYS
from server.ledger.store import Ledger

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows. Nothing given: all."""

    file: str | None = None
    kernel: str | None = None
    seqs: tuple[int, ...] = ()

    @property
    def everything(self) -> bool:
        """True where nothing was narrowed."""
        return self == Selection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote."""

    path: Path
    rows: int
    left_out: int = 0
    note: str | None = None
    """Why rows were left out."""


class CannotExport(Exception):
    """The format is unknown or a package is missing; the message has the remedy."""


def selected(ledger: Ledger, selection: Selection) -> Iterator[Row]:
    """Rows of a selection, oldest first, a page at a time."""
    if selection.seqs:
        for seq in sorted(selection.seqs):
            yield ledger.row(seq)
        return
    after = 0
    while page := ledger.rows(file=selection.file, kernel=selection.kernel, after=after, limit=PAGE):
        yield from page
        after = page[-1].seq


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes the target's place when the block ends well. The target is never seen half-written."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def export(ledger: Ledger, form: str, target: Path, selection: Selection = Selection()) -> Exported:
    """Write `selection` to `target`. Raises CannotExport, OSError, KeyError (a seq that is not there)."""
    writer = FORMATS.get(form)
    if writer is None:
        raise CannotExport(f"unknown format {form!r}; one of {', '.join(FORMATS)}")
    return writer(ledger, target, selection)


def _jsonl(ledger: Ledger, target: Path, selection: Selection) -> Exported:
    """Every entry with all stored values, hashes and seals' names: another ledger can check and read it."""
    wanted = None if selection.everything else _refs(ledger, selection)
    rows = 0
    with replacing(target) as out:
        head = ledger.head()
        top = {"odyssey_ledger": 1, "ledger": ledger.id, "head": head.hash if head else None, "whole": wanted is None}
        out.write(json.dumps(top).encode() + b"\n")
        query = "select position, form, kind, ref, hash, key_name from chain order by position"
        for position, form, kind, ref, hash_, name in ledger.db.execute(query):
            if wanted is not None and (kind, ref) not in wanted:
                continue
            columns = FORMS[form][kind]
            found = ledger.db.execute(
                f"select {', '.join(columns)} from {kind} where {KEYS[kind]} = ?", (ref,)
            ).fetchone()
            values = {column: _plain(value) for column, value in zip(columns, found, strict=True)}
            entry = {
                "position": position,
                "form": form,
                "kind": kind,
                "hash": hash_.hex(),
                "key": name,
                "values": values,
            }
            out.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
            rows += kind == "rows"
    return Exported(path=target, rows=rows)


def _plain(value: Any) -> Any:
    return {"$bytes": value.hex()} if isinstance(value, bytes) else value


def _refs(ledger: Ledger, selection: Selection) -> set[tuple[str, int]]:
    """(kind, ref) of the selected rows, their texts and their problems."""
    refs: set[tuple[str, int]] = set()
    for row in selected(ledger, selection):
        refs.add(("rows", row.seq))
        for kind, sha in (("texts", row.kernel_sha), ("problems", row.problem_sha)):
            found = ledger.db.execute(f"select id from {kind} where sha = ?", (sha,)).fetchone()
            if found:
                refs.add((kind, int(found[0])))
    return refs


def _csv(ledger: Ledger, target: Path, selection: Selection) -> Exported:
    rows = 0
    with replacing(target) as out:
        out.write(exports.HEADER.encode())
        for row in selected(ledger, selection):
            query = "select position, hash from chain where kind = 'rows' and ref = ?"
            position, hash_ = ledger.db.execute(query, (row.seq,)).fetchone()
            out.write(exports.csv_line(ledger.db, position, row.seq, hash_))
            rows += 1
    return Exported(path=target, rows=rows)


def _flashinfer(ledger: Ledger, target: Path, selection: Selection) -> Exported:
    rows = left_out = 0
    with replacing(target) as out:
        for row in selected(ledger, selection):
            problem = ledger.problem(row.problem_sha)
            made = traces.traces(row, problem.inputs.names if problem else ())
            rows, left_out = rows + bool(made), left_out + (not made)
            for trace in made:
                out.write(json.dumps(trace, separators=(",", ":")).encode() + b"\n")
    note = "the format has no place for a right answer that was not timed" if left_out else None
    return Exported(path=target, rows=rows, left_out=left_out, note=note)


def _nvbench(ledger: Ledger, target: Path, selection: Selection) -> Exported:
    """The newest timed row of each kernel (or the rows asked for), with raw samples in a folder beside."""
    newest: dict[tuple[str, str], Row] = {}
    left_out = 0
    for row in selected(ledger, selection):
        if nvbench.is_timed(row):
            newest[(row.file, row.kernel)] = row
        else:
            left_out += 1
    folder = target.with_name(target.name + "-bin")
    root, files = nvbench.document(list(newest.values()), folder.name)
    if files:
        folder.mkdir(exist_ok=True)
    for name, data in files.items():
        with replacing(folder / name) as out:
            out.write(data)
    with replacing(target) as out:
        out.write(json.dumps(root, indent=1).encode() + b"\n")
    note = "rows without a time have no place in nvbench's format" if left_out else None
    return Exported(path=target, rows=len(newest), left_out=left_out, note=note)


def _parquet(ledger: Ledger, target: Path, selection: Selection) -> Exported:
    from server.ledger import parquet

    try:
        with replacing(target) as out:
            rows = parquet.write(out, selected(ledger, selection), ledger.text)
    except ImportError as problem:
        raise CannotExport(f"Parquet needs pyarrow: pip install 'odyssey-lsp[parquet]' ({problem})") from problem
    return Exported(path=target, rows=rows)


FORMATS: dict[str, Callable[[Ledger, Path, Selection], Exported]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "flashinfer": _flashinfer,
    "nvbench": _nvbench,
}
"""Name -> writer. `odyssey ledger export --help` lists these."""
