"""Old files open, keep their hashes and go on; files of the future and of strangers are left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from server.ledger import schema
from server.ledger.store import LedgerUnusable
from server.ledger.verify import verify_folder
from tests.support.ledgers import KEY, judged, opened, plain, sha_of, write_first_form


@pytest.fixture()
def old(tmp_path: Path) -> Path:
    return write_first_form(tmp_path / "workspace" / ".odyssey", 5)


def test_a_file_of_the_first_form_opens_and_goes_on(old: Path, tmp_path: Path) -> None:
    before = plain(old).execute("select * from rows").fetchall()
    with opened(tmp_path) as ledger:
        assert ledger.notes == () and ledger.place.database == old
        assert [row.seq for row in ledger.rows()] == [5, 4, 3, 2, 1]
        assert ledger.rows()[0].judge == "odyssey" and not ledger.rows()[0].foreign
        assert ledger.append(judged("new"), text="new") == 6
        report = ledger.verify()
        assert (report.state, report.entries, report.mine) == ("intact", 12, 12)
        assert ledger.text(sha_of("old 3\n")) == "old 3\n"
    after = plain(old).execute("select * from rows where seq < 6").fetchall()
    assert [row[: len(before[0])] for row in after] == before, "a migration never changes a stored value"
    assert plain(old).execute("pragma user_version").fetchone()[0] == schema.NEWEST
    assert {row[0] for row in plain(old).execute("select form from chain")} == {1, 2}


def test_exports_of_an_old_file_are_made_whole(old: Path, tmp_path: Path) -> None:
    opened(tmp_path).close()
    assert len((old.parent / "benchmark.csv").read_text().splitlines()) == 6
    assert len((old.parent / "solutions.jsonl").read_text().splitlines()) == 5


def test_verify_reads_an_old_file_without_changing_it(old: Path) -> None:
    report = verify_folder(old.parent, KEY, lambda _: None)
    assert plain(old).execute("pragma user_version").fetchone()[0] == 1
    missing = [fault for fault in report.faults if "no_replace" not in fault.message]
    assert [fault.message for fault in missing if fault.where == "ledger.db"], "the first form had fewer triggers: said"


def test_a_changed_byte_in_an_old_row_is_found_after_the_migration(old: Path, tmp_path: Path) -> None:
    opened(tmp_path).close()
    db = plain(old)
    db.execute("drop trigger rows_no_update")
    db.execute("update rows set runtime_us = 29.0 where seq = 2")
    db.close()
    with opened(tmp_path) as ledger:
        assert [fault.where for fault in ledger.verify().faults if fault.where.startswith("entry")] == ["entry 4"]


def test_a_column_of_the_new_form_counts_for_new_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("a"), text="a")
        path = ledger.place.database
    db = plain(path)
    db.execute("drop trigger rows_no_update")
    db.execute("update rows set sm_clock_max_mhz = 1981")
    db.close()
    with opened(tmp_path) as ledger:
        assert not ledger.verify().ok


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("pragma user_version = 99", "newer Odyssey"),
        ("pragma application_id = 7", "not a ledger"),
    ],
)
def test_a_file_that_is_not_for_us_is_left_alone(spoil: str, words: str, old: Path, tmp_path: Path) -> None:
    db = plain(old)
    db.execute(spoil)
    db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    before = old.read_bytes()
    with opened(tmp_path) as ledger:
        assert words in ledger.notes[0] and str(old) in ledger.notes[0]
        assert ledger.append(judged("a"), text="a") == 1
    assert old.read_bytes() == before


def test_any_other_sqlite_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "workspace" / ".odyssey" / "ledger.db"
    path.parent.mkdir(parents=True)
    db = plain(path)
    db.execute("create table rows (a)")
    db.close()
    before = path.read_bytes()
    with opened(tmp_path) as ledger:
        assert "not a ledger" in ledger.notes[0]
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "workspace" / ".odyssey" / "ledger.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database " * 500)
    with opened(tmp_path) as ledger:
        assert ledger.place.folder != path.parent and ledger.append(judged("a"), text="a") == 1
    assert path.read_bytes() == b"not a database " * 500


def test_a_migration_that_fails_leaves_the_old_file(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(db: object) -> None:
        schema._second(db)  # type: ignore[arg-type]
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(schema, "MIGRATIONS", (schema.MIGRATIONS[0], (2, broken)))
    with pytest.raises(LedgerUnusable, match="disk full"):
        opened(tmp_path)
    assert plain(old).execute("pragma user_version").fetchone()[0] == 1
    monkeypatch.undo()
    with opened(tmp_path) as ledger:
        assert ledger.place.database == old and ledger.verify().state == "intact"
