"""Makes ledgers, rows and old files for tests. An old file is written from frozen SQL, never from today's schema."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalcore import wire
from evalcore.facts import Samples
from evalcore.jobs import Measurement
from evalcore.results import EvalResult, correct
from server.ledger.chain import Entry, genesis, key_name, link, seal
from server.ledger.store import Ledger
from tests.support.measurements import measurement

KEY = bytes(range(32))


def sha_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def judged(text: str, result: EvalResult | None = None, **changes: Any) -> Measurement:
    """A verdict on `text`, timed, with raw samples."""
    samples = Samples(
        subject="candidate", figure="device", timer="proton-cupti", values_us=tuple(30.0 + i / 8 for i in range(10)),
        case="as given", sm_clock_mhz=(1980, 1965),
    )  # fmt: skip
    given: dict[str, Any] = {
        "kernel_sha": sha_of(text), "samples": (samples,), "measured_at": "2026-11-29T12:00:00.000Z",
        "git_sha": "abc", "git_dirty": True, "seed": 7, **changes,
    }  # fmt: skip
    return measurement(result or correct(runtime_us=30.0, ref_runtime_us=60.0), **given)


def in_environment(row: Measurement, **changes: Any) -> Measurement:
    return replace(row, environment=replace(row.environment, **changes))


def opened(folder: Path, *, key: bytes | None = KEY) -> Ledger:
    """The ledger of `folder`/workspace with its state in `folder`/state."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return Ledger.open(workspace, state_dir=folder / "state", key=key)


def filled(folder: Path, rows: int, *, key: bytes | None = KEY) -> Ledger:
    """A ledger with `rows` verdicts on as many texts, one burial and one pin."""
    ledger = opened(folder, key=key)
    for number in range(rows):
        text = f"def k():\n    return {number}\n"
        ledger.append(judged(text), text=text, intent=f"step {number}")
    if rows > 2:
        ledger.bury(sha_of("def k():\n    return 1\n"), "slower than its parent")
        ledger.pin(2)
    return ledger


def plain(path: Path) -> sqlite3.Connection:
    """The file as any other program opens it."""
    return sqlite3.connect(path, isolation_level=None)


FIRST_FORM = """
create table meta (name text primary key not null, value text not null);
create table texts (id integer primary key, sha text not null unique, text not null);
create table rows (
        seq integer primary key, at text not null, file text not null, kernel text not null, kernel_sha text not null,
        problem_id text not null, problem_sha text not null, format text not null, mode text not null,
        cause text not null, author text not null, intent text not null, parents text not null, status text not null,
        reason text, error text, speedup real, runtime_us real, ref_runtime_us real, regime text, floor_us real,
        card text, uuid text, driver text, torch text, triton text, python text not null, interpreted integer not null,
        evaluator_sha text not null, evaluator_md5 text not null, isolation text not null, flags text not null,
        git_sha text, git_dirty integer, seed integer, body text not null);
create index rows_by_kernel on rows (file, kernel, seq);
create index rows_by_text on rows (kernel_sha, seq);
create table chain (
        position integer primary key, form integer not null, kind text not null, ref integer not null,
        hash blob not null, key_name text, seal blob);
create index chain_by_ref on chain (kind, ref);
create table burials (id integer primary key, at text not null, sha text not null, reason text not null);
create table pins (id integer primary key, at text not null, row_seq integer not null);
pragma application_id = 1329879379;
pragma user_version = 1;
pragma journal_mode = wal;
"""

FIRST_COLUMNS = (
    "seq", "at", "file", "kernel", "kernel_sha", "problem_id", "problem_sha", "format", "mode", "cause", "author",
    "intent", "parents", "status", "reason", "error", "speedup", "runtime_us", "ref_runtime_us", "regime", "floor_us",
    "card", "uuid", "driver", "torch", "triton", "python", "interpreted", "evaluator_sha", "evaluator_md5",
    "isolation", "flags", "git_sha", "git_dirty", "seed", "body",
)  # fmt: skip


def write_first_form(folder: Path, rows: int, *, key: bytes = KEY) -> Path:
    """An .odyssey folder as the first release left it: form 1, its triggers, `rows` verdicts on as many texts."""
    folder.mkdir(parents=True)
    path = folder / "ledger.db"
    db = plain(path)
    db.executescript(FIRST_FORM)
    for table in ("meta", "texts", "rows", "chain", "burials", "pins"):
        words = f"'the ledger is append-only: {table}'"
        db.execute(f"create trigger {table}_no_update before update on {table} begin select raise(abort, {words}); end")
        db.execute(f"create trigger {table}_no_delete before delete on {table} begin select raise(abort, {words}); end")
    db.execute("insert into meta values ('ledger_id', ?), ('made_at', '2026-09-01T00:00:00.000Z')", ("f" * 32,))
    previous, position = genesis(db.execute("select * from meta")), 0
    for seq in range(1, rows + 1):
        text = f"old {seq}\n"
        for kind, values in (("texts", [seq, sha_of(text), text]), ("rows", first_values(seq, text))):
            db.execute(f"insert into {kind} values ({', '.join('?' * len(values))})", values)
            position += 1
            entry = Entry(position=position, form=1, kind=kind, ref=seq, key_name=key_name(key))
            previous = link(previous, entry, values)
            sealed = seal(key, previous)
            db.execute("insert into chain values (?, 1, ?, ?, ?, ?, ?)",
                       (position, kind, seq, previous, key_name(key), sealed))  # fmt: skip
    db.close()
    return path


def first_values(seq: int, text: str) -> list[Any]:
    row = judged(text)
    where = row.environment
    return [
        seq, row.measured_at, row.file, row.kernel, row.kernel_sha, row.problem_id, row.problem_sha, row.format,
        row.mode.value, row.cause.value, row.author, "", "[]", row.result.status.value, None, None, row.result.speedup,
        row.result.runtime_us, row.result.ref_runtime_us, None, None, where.card, where.uuid, where.driver, where.torch,
        where.triton, where.python, int(where.interpreted), where.evaluator_sha, where.evaluator_md5, "[]", "{}",
        row.git_sha, 1, row.seed, json.dumps(wire.encode(row)),
    ]  # fmt: skip
