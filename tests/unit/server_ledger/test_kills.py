"""SIGKILL at random moments of appends, exports and opens: no shown row is lost, no file becomes unreadable."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from server.ledger import transfer
from server.ledger.verify import verify_folder
from tests.support.ledgers import KEY, judged, opened, plain, sha_of

LARGE = "# " + "x" * 300_000 + "\n"
"""A text whose line in solutions.jsonl spans many pages: a write of it can be cut in the middle."""


def fork(work: Callable[[int], None]) -> tuple[int, int]:
    """A child that runs `work` with the writing end of a pipe; (pid, reading end)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            work(writer)
        finally:
            os._exit(0)
    os.close(writer)
    return pid, reader


def killed(pid: int, reader: int, lines: int, after_s: float) -> bytes:
    """Kill the child `after_s` after its line number `lines`; everything it has said."""
    said = b""
    while said.count(b"\n") < lines:
        block = os.read(reader, 1 << 16)
        assert block, "the child ended by itself"
        said += block
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while block := os.read(reader, 1 << 16):
        said += block
    os.close(reader)
    return said


def appender(folder: Path, seed: int) -> Callable[[int], None]:
    """Opens the ledger and appends until it is killed; says each seq once it may be shown."""

    def work(writer: int) -> None:
        rng = random.Random(seed)
        os.write(writer, b"0\n")  # from here on a kill may hit the open as well
        with opened(folder) as ledger:
            while True:
                text = f"{seed} {rng.random()}\n" + (LARGE if rng.random() < 0.15 else "")
                seq = ledger.append(judged(text), text=text)
                os.write(writer, b"%d\n" % seq)
                if rng.random() < 0.1:
                    ledger.bury(sha_of(text), "dead end")

    return work


def kill_appends(folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    shown: set[int] = set()
    for number in range(kills):
        child = fork(appender(folder, seed * 10_000 + number))
        said = killed(*child, rng.randrange(1, 8), rng.uniform(0.0, 0.006))
        shown |= {int(word) for word in said.split(b"\n")[:-1]} - {0}
        database = folder / "workspace" / ".odyssey" / "ledger.db"
        if not database.exists():
            continue
        db = plain(database)
        assert db.execute("pragma quick_check").fetchone()[0] == "ok"
        stored = {row[0] for row in db.execute("select seq from rows")} if shown else shown
        db.close()
        assert shown <= stored, f"kill {number}: rows {sorted(shown - stored)} were shown and are lost"
        if number % 10 == 9 or number == kills - 1:
            with opened(folder) as ledger:
                assert ledger.notes == () and ledger.verify().faults == ()
                assert len((ledger.place.folder / "benchmark.csv").read_bytes().splitlines()) == ledger.last_seq() + 1
    assert len(shown) > kills / 4, "the kills must hit appends, or this proves nothing"


def test_60_kills_lose_no_shown_row(tmp_path: Path) -> None:
    kill_appends(tmp_path, 60, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 14))
def test_720_more_kills_lose_no_shown_row(seed: int, tmp_path: Path) -> None:
    kill_appends(tmp_path, 60, seed=seed)


def kill_exports(folder: Path, kills: int, seed: int) -> None:
    """Two appenders' rows stand; `odyssey ledger export` is killed again and again over the same target."""
    target = folder / "out.jsonl"
    with opened(folder) as ledger:
        for number in range(120):
            ledger.append(judged(f"{number}"), text=f"{number}")
        transfer.export(ledger, "jsonl", target)
    whole = target.read_bytes()

    def work(writer: int) -> None:
        with opened(folder) as ledger:
            os.write(writer, b"0\n")
            while True:
                transfer.export(ledger, "jsonl", target)

    rng = random.Random(seed)
    for _ in range(kills):
        killed(*fork(work), 1, rng.uniform(0.0, 0.03))
        assert target.read_bytes() == whole, "the old export stands until the new one is whole"
    folder_of_ledger = folder / "workspace" / ".odyssey"
    assert verify_folder(folder_of_ledger, KEY, lambda _: None).ok


def test_40_kills_during_exports(tmp_path: Path) -> None:
    kill_exports(tmp_path, 40, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_180_more_kills_during_exports(tmp_path: Path) -> None:
    kill_exports(tmp_path, 180, seed=2)


def test_eight_processes_append_at_once_and_lose_nothing(tmp_path: Path) -> None:
    each = 40
    opened(tmp_path).close()

    def work(number: int) -> Callable[[int], None]:
        def run(writer: int) -> None:
            with opened(tmp_path) as ledger:
                for step in range(each):
                    text = f"{number}-{step}"
                    os.write(writer, b"%d\n" % ledger.append(judged(text), text=text))

        return run

    children = [fork(work(number)) for number in range(8)]
    seqs: list[int] = []
    for pid, reader in children:
        said = b""
        while block := os.read(reader, 1 << 16):
            said += block
        os.close(reader)
        assert os.waitpid(pid, 0)[1] == 0
        seqs += [int(word) for word in said.split()]
    assert sorted(seqs) == list(range(1, 8 * each + 1)), "every number once, none missing"
    with opened(tmp_path) as ledger:
        assert ledger.verify().faults == ()
        assert {ledger.text(sha_of(f"{n}-{s}")) for n in range(8) for s in range(each)} == {
            f"{n}-{s}" for n in range(8) for s in range(each)
        }
