"""Every manipulation is found: 200 of them, by somebody who has the file and all tools, but not the key."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.ledger import schema
from server.ledger.anchor import Anchor
from server.ledger.chain import Entry, genesis, key_name, link
from server.ledger.columns import FORMS
from server.ledger.place import workspace_id
from server.ledger.verify import Report, verify_folder
from tests.support import measurements
from tests.support.ledgers import KEY, filled, judged, opened, plain

ROWS = 12


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole ledger with something in every table, checkpointed, closed."""
    folder = tmp_path_factory.mktemp("original")
    with filled(folder, ROWS) as ledger:
        for text in ("p", "q"):
            changes = {"problem_sha": text * 64}
            ledger.append(judged(text, **changes), text=text, problem=measurements.problem(text))
            ledger.add_foreign({
                "source": text, "source_format": "jsonl", "source_sha": "0", "file": "a", "kernel": "k",
                "kernel_sha": None, "status": "correct", "speedup": 1.5, "runtime_us": 1.0, "ref_runtime_us": 1.5,
                "card": "c", "body": "{}",
            })  # fmt: skip
            ledger.bury("0" * 64, text)
            ledger.pin(3)
        ledger.db.execute("pragma wal_checkpoint(truncate)")
    return folder


@pytest.fixture()
def copy(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "copy")
    return tmp_path / "copy"


def check(copy: Path, original: Path, key: bytes | None = KEY) -> Report:
    """As `odyssey ledger verify` does it, with the anchor of the original's place."""
    name = workspace_id(original / "workspace")
    return verify_folder(copy / "workspace" / ".odyssey", key, lambda known: Anchor.of(copy / "state", name, known))


def attacked(copy: Path) -> sqlite3.Connection:
    """The database in the hands of somebody who drops the triggers first."""
    db = plain(copy / "workspace" / ".odyssey" / "ledger.db")
    for (name,) in db.execute("select name from sqlite_master where type = 'trigger'").fetchall():
        db.execute(f"drop trigger {name}")
    return db


def put_back(db: sqlite3.Connection) -> None:
    """Hide the traces: the triggers stand again, exactly."""
    for sql in schema.triggers().values():
        db.execute(sql)
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()


def test_the_untouched_ledger_is_intact(copy: Path, original: Path) -> None:
    report = check(copy, original)
    assert (report.state, report.faults, report.rows, report.others) == ("intact", (), ROWS + 2, 0)
    put_back(attacked(copy))
    assert check(copy, original).ok, "the test's own tools leave no trace"


def values_of(db: sqlite3.Connection) -> list[tuple[str, str, Any, Any]]:
    """(table, column, key, value) of every stored value."""
    found = []
    for table, key in schema.KEYS.items():
        columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
        for row in db.execute(f"select {', '.join(columns)} from {table}"):
            named = dict(zip(columns, row, strict=True))
            found += [(table, name, named[key], value) for name, value in named.items()]
    return found


def flip(value: Any, rng: random.Random) -> Any:
    """The value with one byte changed, of the same type where it can be."""
    if value is None:
        return "x"
    if isinstance(value, int):
        return value ^ (1 << rng.randrange(4))
    if isinstance(value, float):
        return value * (1 + 2**-52) if rng.random() < 0.5 else value + 1
    raw = bytearray(value.encode() if isinstance(value, str) else value)
    if not raw:
        return "x"
    at = rng.randrange(len(raw))
    raw[at] ^= 1 << rng.randrange(7)
    if isinstance(value, bytes):
        return bytes(raw)
    return raw.decode("ascii", "replace") if rng.random() < 0.8 else bytes(raw)  # sometimes the type changes too


def change_one_value(db: sqlite3.Connection, rng: random.Random) -> str:
    table, column, key, value = rng.choice([v for v in values_of(db) if v[:2] != ("meta", "name")])
    db.execute(f"update {table} set {column} = ? where {schema.KEYS[table]} is ?", (flip(value, rng), key))
    return f"{table}.{column} of {key}"


def delete_a_row(db: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice([t for t in schema.KEYS if t != "meta"])
    key = rng.choice(db.execute(f"select {schema.KEYS[table]} from {table}").fetchall())[0]
    db.execute(f"delete from {table} where {schema.KEYS[table]} = ?", (key,))
    return f"{table} {key} deleted"


def delete_the_last_verdict(db: sqlite3.Connection, rng: random.Random) -> str:
    """With its links, as if it had never been: only the exports and the anchor know."""
    count = rng.randrange(1, 4)
    newest = db.execute("select position, kind, ref from chain order by position desc limit ?", (count,)).fetchall()
    for position, kind, ref in newest:
        db.execute("delete from chain where position = ?", (position,))
        db.execute(f"delete from {kind} where {schema.KEYS[kind]} = ?", (ref,))
    return f"the last {count} entries cut off"


def swap_two_rows(db: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(["rows", "texts", "chain", "burials", "pins"])
    key = schema.KEYS[table]
    one, two = rng.sample([row[0] for row in db.execute(f"select {key} from {table}")], 2)
    for old, new in ((one, -1), (two, one), (-1, two)):
        db.execute(f"update {table} set {key} = ? where {key} = ?", (new, old))
    return f"{table} {one} and {two} swapped"


def add_a_row(db: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(["rows", "texts", "burials", "pins", "problems", "foreign_rows"])
    columns = list(FORMS[2][table])
    row = list(db.execute(f"select {', '.join(columns)} from {table} limit 1").fetchone())
    row[0] = db.execute(f"select max({columns[0]}) + 1 from {table}").fetchone()[0]
    if "sha" in columns:
        row[columns.index("sha")] = "f" * 64
    db.execute(f"insert into {table} ({', '.join(columns)}) values ({', '.join('?' * len(row))})", row)
    return f"{table} {row[0]} added"


def renumber(db: sqlite3.Connection, rng: random.Random) -> str:
    """Take one entry out and close the gap."""
    position = rng.randrange(1, ROWS)
    db.execute("delete from chain where position = ?", (position,))
    db.execute("update chain set position = -position")
    db.execute("update chain set position = -position - (position < ?)", (-position,))
    return f"entry {position} taken out and the gap closed"


WAYS: list[Callable[[sqlite3.Connection, random.Random], str]] = [
    change_one_value, change_one_value, change_one_value, change_one_value, delete_a_row, delete_the_last_verdict,
    swap_two_rows, add_a_row, renumber,
]  # fmt: skip


@pytest.mark.parametrize("number", range(120))
def test_a_manipulation_of_the_database_is_found(number: int, copy: Path, original: Path) -> None:
    rng = random.Random(number)
    db = attacked(copy)
    told = WAYS[number % len(WAYS)](db, rng)
    put_back(db)
    report = check(copy, original)
    assert report.state == "damaged" and report.faults, told


@pytest.mark.parametrize("number", range(40))
def test_a_manipulation_of_an_export_is_found(number: int, copy: Path, original: Path) -> None:
    rng = random.Random(number)
    path = copy / "workspace" / ".odyssey" / ("benchmark.csv" if number % 2 else "solutions.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    if number % 8 < 4:
        raw = bytearray(path.read_bytes())
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(7)
        path.write_bytes(raw)
    elif number % 8 < 6:
        del lines[rng.randrange(len(lines))]
        path.write_bytes(b"".join(lines))
    else:
        one = rng.randrange(len(lines) - 1)
        lines[one], lines[one + 1] = lines[one + 1], lines[one]
        path.write_bytes(b"".join(lines))
    assert check(copy, original).state == "damaged"


@pytest.mark.parametrize("number", range(20))
def test_a_truncation_is_found(number: int, copy: Path, original: Path) -> None:
    rng = random.Random(number)
    folder = copy / "workspace" / ".odyssey"
    path = folder / ["ledger.db", "benchmark.csv", "solutions.jsonl"][number % 3]
    size = path.stat().st_size
    keep = rng.randrange(size) if number % 2 else size - rng.randrange(1, 120)
    if path.name == "ledger.db":
        keep -= keep % 4096 if number % 4 else 0
    with path.open("rb+") as file:
        file.truncate(keep)
    assert check(copy, original).state == "damaged"


@pytest.mark.parametrize("number", range(20))
def test_a_changed_byte_of_a_stored_value_in_the_raw_file_is_found(number: int, copy: Path, original: Path) -> None:
    """Not through SQLite: the byte is changed on the disk."""
    path = copy / "workspace" / ".odyssey" / "ledger.db"
    raw = bytearray(path.read_bytes())
    mark = f"    return {number % ROWS}\n".encode() if number % 2 else f"step {number % ROWS}".encode()
    at = raw.find(mark)
    assert at > 0
    raw[at + random.Random(number).randrange(len(mark))] ^= 0x04
    path.write_bytes(raw)
    assert check(copy, original).state == "damaged"


def rewrite_all(db: sqlite3.Connection, *, name: str | None) -> None:
    """Change a number and hash the whole chain again, as anybody can who reads this source; seals cannot be made."""
    db.execute("update rows set runtime_us = runtime_us / 2, speedup = speedup * 2")
    previous = genesis(db.execute("select name, value from meta"))
    entries = db.execute("select position, form, kind, ref from chain order by position").fetchall()
    for position, form, kind, ref in entries:
        columns = ", ".join(FORMS[form][kind])
        values = db.execute(f"select {columns} from {kind} where {schema.KEYS[kind]} = ?", (ref,)).fetchone()
        entry = Entry(position=position, form=form, kind=kind, ref=ref, key_name=name)
        previous = link(previous, entry, values)
        db.execute("update chain set hash = ?, key_name = ?, seal = ? where position = ?",
                   (previous, name, bytes(32) if name else None, position))  # fmt: skip


@pytest.mark.parametrize("name", [key_name(KEY), None, "0123456789abcdef"], ids=["our name", "unsealed", "a stranger"])
@pytest.mark.parametrize("anchored", [True, False])
def test_a_full_rewrite_without_the_key_is_found(
    name: str | None, anchored: bool, copy: Path, original: Path, tmp_path: Path
) -> None:
    """Exports written anew to fit. Without this machine's anchor it passes for a stranger's ledger, never for ours."""
    folder = copy / "workspace" / ".odyssey"
    db = attacked(copy)
    rewrite_all(db, name=name)
    put_back(db)
    for export in ("benchmark.csv", "solutions.jsonl"):
        (folder / export).unlink()
    shutil.copytree(copy, tmp_path / "thief")
    opened(tmp_path / "thief", key=bytes(32)).close()  # somebody else's Odyssey writes the exports
    for export in ("benchmark.csv", "solutions.jsonl"):
        shutil.copy(tmp_path / "thief" / "workspace" / ".odyssey" / export, folder / export)
    if not anchored:
        shutil.rmtree(copy / "state")
    report = check(copy, original)
    if anchored or name == key_name(KEY):
        assert report.state == "damaged", report
    else:
        assert report.state == "foreign" and report.mine == 0


def test_cutting_everything_back_together_is_found_by_the_anchor(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        folder = ledger.place.folder
        ledger.db.execute("pragma wal_checkpoint(truncate)")
        shutil.copytree(folder, tmp_path / "early")
        ledger.append(judged("slow"), text="slow")
        assert ledger.anchor is not None
        anchor = ledger.anchor
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "early", folder)
    assert verify_folder(folder, KEY, lambda _: None).ok, "from the workspace alone nobody could know"
    report = verify_folder(folder, KEY, lambda _: anchor)
    assert report.state == "damaged" and "seen entry 10" in report.faults[-1].message


def test_a_ledger_that_was_deleted_is_remembered(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        folder = ledger.place.folder
    shutil.rmtree(folder)
    with opened(tmp_path) as ledger:
        assert any("another ledger" in note for note in ledger.verify().notes)
        assert ledger.verify().state == "empty"


def test_a_writer_beside_verify_is_no_fault(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger, opened(tmp_path) as other:
        for number in range(5):
            other.append(judged(f"n{number}"), text=f"n{number}")
            assert ledger.verify().ok
