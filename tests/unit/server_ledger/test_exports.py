"""benchmark.csv and solutions.jsonl stay in step, whatever was cut off."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from server.ledger.exports import backwards
from server.ledger.verify import verify_folder
from tests.support import measurements
from tests.support.ledgers import KEY, filled, judged, opened, sha_of


def files(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "benchmark.csv").read_bytes(), (folder / "solutions.jsonl").read_bytes()


def test_a_person_can_read_them(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        intent = 'two\nlines, and a "quote"'
        ledger.append(judged("p"), text="p", problem=measurements.problem("p"), intent=intent)
        folder, head = ledger.place.folder, ledger.head()
    with (folder / "benchmark.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["seq"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[-1]["intent"] == 'two lines, and a "quote"' and rows[-1]["speedup"] == "2.0"
    assert head is not None and rows[-1]["head"] == head.hash, "the head of the chain stands beside the newest row"
    kinds = [json.loads(text) for text in (folder / "solutions.jsonl").read_text().splitlines()]
    assert [value["kind"] for value in kinds] == ["candidate", "candidate", "candidate", "burial", "pin", "candidate",
                                                  "problem"]  # fmt: skip
    assert kinds[1]["text"] == "def k():\n    return 1\n"
    assert kinds[1]["parents"] == [sha_of("def k():\n    return 0\n")]
    assert kinds[-1]["problem"]["format"] == "comment"


def test_a_cell_is_never_a_formula(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("a"), text="a", intent='=HYPERLINK("http://x")')
        text = (ledger.place.folder / "benchmark.csv").read_text()
    assert "\"'=HYPERLINK" in text


@pytest.mark.parametrize("cut", [1, 3, 40, 200, 400])
@pytest.mark.parametrize("name", ["benchmark.csv", "solutions.jsonl"])
def test_a_torn_end_is_made_whole(name: str, cut: int, tmp_path: Path) -> None:
    with filled(tmp_path, 5) as ledger:
        folder = ledger.place.folder
    whole = files(folder)
    with (folder / name).open("rb+") as file:
        file.truncate((folder / name).stat().st_size - cut)
    opened(tmp_path).close()
    assert files(folder) == whole


def test_a_torn_header_is_made_whole(tmp_path: Path) -> None:
    with filled(tmp_path, 5) as ledger:
        folder = ledger.place.folder
    whole = files(folder)
    (folder / "benchmark.csv").write_bytes(whole[0][:20])
    opened(tmp_path).close()
    assert files(folder) == whole


@pytest.mark.parametrize("names", [("benchmark.csv",), ("solutions.jsonl",), ("benchmark.csv", "solutions.jsonl")])
def test_deleted_files_are_written_again_while_open(names: tuple[str, ...], tmp_path: Path) -> None:
    with filled(tmp_path, 5) as ledger:
        folder = ledger.place.folder
        for name in names:
            (folder / name).unlink()
        ledger.append(judged("new"), text="new")
        assert ledger.verify().ok
    assert len(files(folder)[0].splitlines()) == 7


def test_a_strange_line_at_the_end_is_kept_and_reported(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        folder = ledger.place.folder
        with (folder / "benchmark.csv").open("ab") as file:
            file.write(b"a person wrote this")
        ledger.append(judged("new"), text="new")
        assert b"a person wrote this\n" in files(folder)[0], "what somebody else wrote is never taken back"
        assert [fault.where for fault in ledger.verify().faults] == ["benchmark.csv line 5"]
    with (folder / "benchmark.csv").open("rb") as lines:
        assert lines.read().splitlines()[-1].startswith(b"10,4,")


def test_files_ahead_of_a_ledger_that_was_cut_back_keep_their_lines(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        folder = ledger.place.folder
        ledger.db.execute("pragma wal_checkpoint(truncate)")
    early = (folder / "ledger.db").read_bytes()
    with opened(tmp_path) as ledger:
        ledger.append(judged("lost"), text="lost")
    (folder / "ledger.db").write_bytes(early)
    with opened(tmp_path) as ledger:
        report = ledger.verify()
        assert not report.ok
        ledger.append(judged("new"), text="new")
        lines = files(folder)[0].splitlines()
        assert len(lines) == 6 and sha_of("lost").encode() in lines[-2] and sha_of("new").encode() in lines[-1]
        assert not ledger.verify().ok, "a lost row stays visible for ever"


def test_verify_without_opening_changes_nothing(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        folder = ledger.place.folder
    with (folder / "benchmark.csv").open("rb+") as file:
        file.truncate((folder / "benchmark.csv").stat().st_size - 30)
    before = files(folder)
    report = verify_folder(folder, KEY, lambda _: None)
    assert {fault.where.split(" line")[0] for fault in report.faults} == {"benchmark.csv"}
    assert files(folder) == before


@pytest.mark.parametrize("size", [0, 1, 10, 65535, 65536, 65537, 200_000])
def test_lines_from_the_end(size: int, tmp_path: Path) -> None:
    lines = [b"x" * size + b"\n", b"\n", b"short\n", b"y" * size + b"\n", b"torn"]
    path = tmp_path / "lines"
    path.write_bytes(b"".join(lines))
    with path.open("rb") as file:
        assert list(backwards(file.fileno(), path.stat().st_size)) == lines[::-1]
