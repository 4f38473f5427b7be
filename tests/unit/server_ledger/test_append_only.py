"""Nothing that was written can be changed, by us, by sqlite-utils or by plain sqlite3."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlite_utils import Database

from server.ledger import schema
from tests.support import measurements
from tests.support.ledgers import filled, judged, opened, plain, sha_of

TABLES = sorted(schema.KEYS)


@pytest.fixture()
def file(tmp_path: Path) -> Path:
    with filled(tmp_path, 3) as ledger:
        ledger.append(judged("p"), text="p", problem=measurements.problem("p"))
        ledger.add_foreign({
            "source": "x", "source_format": "jsonl", "source_sha": "0", "file": "a", "kernel": "k", "kernel_sha": None,
            "status": "correct", "speedup": 1.0, "runtime_us": 1.0, "ref_runtime_us": 1.0, "card": "c", "body": "{}",
        })  # fmt: skip
        return ledger.place.database


def contents(path: Path, table: str) -> list[tuple[object, ...]]:
    db = plain(path)
    try:
        return db.execute(f"select * from {table} order by 1").fetchall()
    finally:
        db.close()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("how", ["update", "delete", "replace", "replace with recursive triggers", "upsert"])
def test_plain_sqlite_cannot_change_a_row(table: str, how: str, file: Path) -> None:
    before = contents(file, table)
    assert before, f"{table} must hold something, or this proves nothing"
    db = plain(file)
    key = schema.KEYS[table]
    columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
    other = next(name for name in columns if name != key)
    row = db.execute(f"select {', '.join(columns)} from {table} limit 1").fetchone()
    marks = ", ".join("?" * len(columns))
    if how == "replace with recursive triggers":
        db.execute("pragma recursive_triggers = on")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        if how == "update":
            db.execute(f"update {table} set {other} = {other}")
        elif how == "delete":
            db.execute(f"delete from {table} where {key} = ?", (row[columns.index(key)],))
        elif how == "upsert":
            db.execute(
                f"insert into {table} ({', '.join(columns)}) values ({marks})"
                f" on conflict ({key}) do update set {other} = {other}", row
            )  # fmt: skip
        else:
            db.execute(f"replace into {table} ({', '.join(columns)}) values ({marks})", row)
    db.close()
    assert contents(file, table) == before


@pytest.mark.parametrize("table", ["texts", "problems"])
def test_a_second_text_under_the_same_sha_is_refused(table: str, file: Path) -> None:
    db = plain(file)
    sha, body = db.execute(f"select sha, {'text' if table == 'texts' else 'body'} from {table} limit 1").fetchone()
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(f"replace into {table} values (99, ?, ?)", (sha, body + " "))
    db.close()


@pytest.mark.parametrize("how", ["update", "delete", "upsert", "insert replace"])
def test_sqlite_utils_cannot_change_a_row(how: str, file: Path) -> None:
    before = contents(file, "texts")
    db = Database(str(file))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        table = db.table("texts", pk="id")
        row = {"id": 1, "sha": before[0][1], "text": "changed"}
        if how == "update":
            table.update(1, {"text": "changed"})
        elif how == "delete":
            table.delete(1)
        elif how == "upsert":
            table.upsert(row)
        else:
            table.insert(row, replace=True)
    db.close()
    assert contents(file, "texts") == before


def test_triggers_that_were_dropped_stand_again_at_the_next_open(file: Path, tmp_path: Path) -> None:
    db = Database(str(file))
    db.table("burials").transform(rename={})  # P19: drops the triggers silently
    db.execute("drop trigger rows_no_update")
    db.close()
    with opened(tmp_path) as ledger:
        schema.assert_guarded(ledger.db)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            ledger.db.execute("update burials set reason = ''")


def test_a_weakened_trigger_is_written_anew(file: Path, tmp_path: Path) -> None:
    db = plain(file)
    db.execute("drop trigger rows_no_update")
    db.execute("create trigger rows_no_update before update on rows begin select 1; end")
    db.close()
    with opened(tmp_path) as ledger, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        ledger.db.execute("update rows set status = 'correct'")


def test_a_file_with_a_strangers_trigger_is_not_written_to(file: Path, tmp_path: Path) -> None:
    db = plain(file)
    db.execute("create trigger mine after insert on chain begin insert into pins values (99, '', 1); end")
    db.close()
    with opened(tmp_path) as ledger:
        assert ledger.place.folder.is_relative_to(tmp_path / "state")
        assert "not ours" in ledger.notes[0]
        ledger.append(judged("new"), text="new")
        assert ledger.last_seq() == 1
    assert contents(file, "pins") == [(1, contents(file, "pins")[0][1], 2)]


def test_two_writers_never_take_the_same_number(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as two:
        seqs = [ledger.append(judged(text), text=text) for text in "abcd" for ledger in (one, two)]
        assert seqs == list(range(1, 9)) and one.verify().ok
        assert one.text(sha_of("d")) == "d"
