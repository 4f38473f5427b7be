"""Append, read, page, reuse: what the server relies on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcore.fingerprint import sha256_text
from evalcore.jobs import Mode
from evalcore.results import compile_error, error, incorrect
from server.ledger import compare, drawing, listing
from server.ledger.reuse import ReuseKey
from server.ledger.store import Ledger
from tests.support import measurements
from tests.support.ledgers import KEY, filled, in_environment, judged, opened, plain, sha_of


def test_a_row_comes_back_as_it_was_written(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        written = judged("text é 漢 😀\n", seed=2**70)
        seq = ledger.append(written, text="text é 漢 😀\n", intent="half the tile")
        row = ledger.row(seq)
        assert row.measurement == written
        assert ledger.text(written.kernel_sha) == "text é 漢 😀\n"
        assert (row.intent, row.judge, row.foreign, row.git_dirty) == ("half the tile", "odyssey", False, True)
        clocks = ledger.db.execute("select sm_clock_min_mhz, sm_clock_max_mhz, seeds from rows").fetchone()
        assert clocks[:2] == (1965, 1980) and clocks[2] == f"[{2**70}]"


def test_a_text_that_is_not_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        text = b"caf\xe9 \xff\n".decode("utf-8", "surrogateescape") + "\ud800"
        sha = sha256_text(text)
        ledger.append(judged("", kernel_sha=sha, result=compile_error("bad byte \udce9")), text=text)
        assert ledger.text(sha) == text
        assert ledger.verify().ok and ledger.verify().notes == ()


def test_pages_of_history(tmp_path: Path) -> None:
    with filled(tmp_path, 25) as ledger:
        newest = ledger.rows(limit=10)
        assert [row.seq for row in newest] == list(range(25, 15, -1))
        assert [row.seq for row in ledger.rows(before=16, limit=10)] == list(range(15, 5, -1))
        assert [row.seq for row in ledger.rows(after=20, limit=3)] == [21, 22, 23], "a follower misses none"
        assert ledger.rows(kernel="other") == []
        latest = ledger.latest("/p/kernel.py", "k")
        assert latest is not None and latest.seq == 25 == ledger.last_seq() == ledger.count(kernel="k")
        with pytest.raises(KeyError):
            ledger.row(26)


def test_a_texts_rows_are_found_by_the_beginning_of_its_sha(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        sha = sha_of("def k():\n    return 1\n")
        assert [row.seq for row in ledger.of_text(sha[:8])] == [2]
        assert ledger.of_text(sha[:8], kernel="other") == []


def test_a_persons_saves_follow_each_other(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        for text in ("a", "b", "a", "c"):
            ledger.append(judged(text), text=text)
        ledger.append(judged("m", author="model", parents=(sha_of("b"),)), text="m")
        ledger.append(judged("t", author="tuner"), text="t")
        parents = [row.parents for row in ledger.rows(after=0)]
    assert parents == [(), (sha_of("a"),), (), (sha_of("a"),), (sha_of("b"),), ()]


def test_burials_and_pins(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        sha = sha_of("def k():\n    return 1\n")
        assert ledger.burial(sha) == "slower than its parent"
        ledger.bury(sha, "spills at every tile size")
        assert ledger.burial(sha) == "spills at every tile size" and ledger.burial("0" * 64) is None
        pinned = ledger.pinned("/p/kernel.py", "k")
        assert pinned is not None and pinned.seq == 2
        ledger.pin(3)
        pinned = ledger.pinned("/p/kernel.py", "k")
        assert pinned is not None and pinned.seq == 3
        assert ledger.pinned("/p/kernel.py", "other") is None
        with pytest.raises(KeyError):
            ledger.pin(99)


def test_a_problem_is_kept_once_and_comes_back(tmp_path: Path) -> None:
    given = measurements.problem("text")
    with opened(tmp_path) as ledger:
        for text in ("a", "b"):
            ledger.append(judged(text), text=text, problem=given)
        assert ledger.problem(judged("a").problem_sha) == given
        assert ledger.problem("9" * 64) is None
        assert ledger.db.execute("select count(*) from problems").fetchone()[0] == 1


def test_another_process_is_noticed(tmp_path: Path) -> None:
    with filled(tmp_path, 1) as ledger, opened(tmp_path) as other:
        before = ledger.data_version()
        assert ledger.data_version() == before
        ledger.append(judged("own"), text="own")
        assert ledger.data_version() == before, "our own writes are no news"
        other.append(judged("theirs"), text="theirs")
        assert ledger.data_version() != before
        assert [row.seq for row in ledger.rows(after=2)] == [3]


def test_reopening_finds_everything(tmp_path: Path) -> None:
    filled(tmp_path, 4).close()
    with opened(tmp_path) as ledger:
        assert ledger.last_seq() == 4 and ledger.verify().state == "intact" and ledger.notes == ()


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with Ledger.open(tmp_path / "workspace", state_dir=tmp_path / "state") as ledger:
        first = ledger.key
    with Ledger.open(tmp_path / "workspace", state_dir=tmp_path / "state") as ledger:
        assert ledger.key == first and first is not None and len(first) == 32
    assert (tmp_path / "state" / "ledger.key").stat().st_mode & 0o777 == 0o600


# reuse


def wanted(**changes: Any) -> ReuseKey:
    row = judged("text")
    where = row.environment
    given: dict[str, Any] = {
        "kernel": row.kernel, "kernel_sha": row.kernel_sha, "problem_sha": row.problem_sha,
        "evaluator_sha": where.evaluator_sha, "uuid": where.uuid, "driver": where.driver, "torch": where.torch,
        "triton": where.triton, "interpreted": False, "mode": Mode.FAST, "sha_of": {"/p/blocks.py": "s"}.get,
    }  # fmt: skip
    return ReuseKey(**{**given, **changes})


def with_modules() -> Any:
    return judged("text", dependencies=(("/p/blocks.py", "s"),), timing={"case": "4096"})


def test_a_verdict_is_reused_when_all_is_the_same(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        assert ledger.reusable(wanted()) is None
        seq = ledger.append(with_modules(), text="text")
        found = ledger.reusable(wanted(python="3.11", case="4096"))
        assert found is not None and found.seq == seq


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "other"}, {"kernel_sha": "0" * 64}, {"problem_sha": "0" * 64}, {"evaluator_sha": "0" * 64},
        {"uuid": "GPU-other"}, {"uuid": None}, {"driver": "2"}, {"torch": "2.1"}, {"triton": None},
        {"interpreted": True}, {"mode": Mode.THOROUGH}, {"sha_of": {"/p/blocks.py": "edited"}.get},
        {"sha_of": {}.get}, {"case": "8192"}, {"python": "3.12"},
    ],
    ids=lambda change: "-".join(change),
)  # fmt: skip
def test_a_verdict_is_not_reused_when_anything_differs(change: dict[str, Any], tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(with_modules(), text="text")
        assert ledger.reusable(wanted()) is not None
        assert ledger.reusable(wanted(**change)) is None


def test_a_thorough_verdict_serves_a_fast_request(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(replace(with_modules(), mode=Mode.THOROUGH), text="text")
        assert ledger.reusable(wanted()) is not None and ledger.reusable(wanted(mode=Mode.THOROUGH)) is not None


def test_errors_are_never_reused_but_wrong_answers_are(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("text", error("the machine went away")), text="text")
        assert ledger.reusable(wanted()) is None
        ledger.append(judged("text", incorrect("max abs error 1")), text="text")
        assert ledger.reusable(wanted()) is not None


def test_the_wildcard_of_an_unknown_card_is_no_wildcard(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(in_environment(judged("text"), uuid=None, card=None, interpreted=True), text="text")
        assert ledger.reusable(wanted()) is None
        assert ledger.reusable(wanted(uuid=None, interpreted=True)) is not None


def test_a_strangers_ledger_is_evidence_and_no_verdict(tmp_path: Path) -> None:
    with opened(tmp_path, key=bytes(32)) as theirs:
        theirs.append(with_modules(), text="text")
    with opened(tmp_path) as ledger:
        assert ledger.reusable(wanted()) is None
        assert ledger.rows()[0].foreign and ledger.rows()[0].measurement.result.correct
        seq = ledger.append(with_modules(), text="text")
        found = ledger.reusable(wanted())
        assert found is not None and found.seq == seq and not found.foreign
        report = ledger.verify()
        assert report.state == "intact" and (report.mine, report.others) == (1, 2)


def test_a_row_that_was_changed_under_its_seal_is_not_reused(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("text", incorrect("max abs error 1"), dependencies=(("/p/blocks.py", "s"),)), text="text")
        path = ledger.place.database
    attacker = plain(path)
    attacker.execute("drop trigger rows_no_update")
    attacker.execute("update rows set status = 'correct', speedup = 9.0")
    attacker.close()
    with opened(tmp_path) as ledger:
        assert ledger.reusable(wanted()) is None
        assert ledger.verify().state == "damaged"


def test_without_a_key_nothing_is_reused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    with opened(tmp_path, key=None) as ledger:
        ledger.append(with_modules(), text="text")
        assert ledger.reusable(wanted()) is None and ledger.rows()[0].foreign
        assert ledger.verify().state == "foreign"


def test_the_key_itself_is_known_only_to_the_state_folder(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        folder = ledger.place.folder
    for path in folder.iterdir():
        assert KEY not in path.read_bytes() and KEY.hex().encode() not in path.read_bytes()


def test_a_strangers_nonsense_stops_no_list(tmp_path: Path) -> None:
    """A cloned repository's ledger may hold anything that SQLite can store."""
    with opened(tmp_path, key=bytes(32)) as theirs:
        for text in ("a", "b", "c"):
            theirs.append(judged(text), text=text)
        path = theirs.place.database
    db = plain(path)
    db.execute("drop trigger rows_no_update")
    db.execute("update rows set speedup = 'fast', runtime_us = x'00', body = '{', parents = 'x', status = 'great',"
               " author = cast(x'ff' as text), card = 7, git_dirty = 'no' where seq = 1")  # fmt: skip
    db.execute("update rows set body = '[]', parents = '{}', interpreted = 'x', at = 12 where seq = 2")
    db.close()
    with opened(tmp_path) as ledger:
        rows = ledger.rows()
        assert [row.seq for row in rows] == [3, 2, 1]
        bad = rows[-1]
        assert (bad.speedup, bad.runtime_us, bad.parents, bad.plain, bad.card) == (None, None, (), {}, "7")
        assert drawing.as_text(ledger.map()) and drawing.as_svg(ledger.map())
        assert all(listing.line(row, frozenset()) and listing.as_json(row, frozenset()) for row in rows)
        assert all(listing.card(row, frozenset(), burial=None, pinned=False) for row in rows)
        compare.compare(ledger, rows[0], bad)
        assert ledger.verify().state == "damaged"
        assert ledger.append(judged("mine"), text="mine") == 4
