"""Owns the tables, the numbered migrations, the append-only triggers and the views. Never changes a stored value.

A migration only adds: tables, columns, indexes. Values of old rows stay as they were hashed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from sqlite_utils import Database

from server.ledger.columns import FORMS

APPLICATION_ID = 0x4F445953
"""'ODYS' in the file's header: tells our file from any other SQLite file."""

KEYS = {
    "meta": "name", "texts": "id", "rows": "seq", "chain": "position", "burials": "id", "pins": "id",
    "problems": "id", "foreign_rows": "id",
}  # fmt: skip
"""Append-only tables and their integer keys (meta: a name)."""


class SchemaRefused(Exception):
    """The file is not a ledger of ours, or of a newer Odyssey. The message says which, and what to do."""


def _first(db: Database) -> None:
    db.execute("create table meta (name text primary key not null, value text not null)")
    db.execute("create table texts (id integer primary key, sha text not null unique, text not null)")
    db.execute("""create table rows (
        seq integer primary key, at text not null, file text not null, kernel text not null, kernel_sha text not null,
        problem_id text not null, problem_sha text not null, format text not null, mode text not null,
        cause text not null, author text not null, intent text not null, parents text not null, status text not null,
        reason text, error text, speedup real, runtime_us real, ref_runtime_us real, regime text, floor_us real,
        card text, uuid text, driver text, torch text, triton text, python text not null, interpreted integer not null,
        evaluator_sha text not null, evaluator_md5 text not null, isolation text not null, flags text not null,
        git_sha text, git_dirty integer, seed integer, body text not null)""")
    db.execute("create index rows_by_kernel on rows (file, kernel, seq)")
    db.execute("create index rows_by_text on rows (kernel_sha, seq)")
    db.execute("""create table chain (
        position integer primary key, form integer not null, kind text not null, ref integer not null,
        hash blob not null, key_name text, seal blob)""")
    db.execute("create index chain_by_ref on chain (kind, ref)")
    db.execute(
        "create table burials (id integer primary key, at text not null, sha text not null, reason text not null)"
    )
    db.execute("create table pins (id integer primary key, at text not null, row_seq integer not null)")


def _second(db: Database) -> None:
    for column in ("judge text", "host text", "seeds text", "sm_clock_min_mhz integer", "sm_clock_max_mhz integer",
                   "warnings text"):  # fmt: skip
        db.execute(f"alter table rows add column {column}")
    db.execute("create table problems (id integer primary key, sha text not null unique, body text not null)")
    db.execute("""create table foreign_rows (
        id integer primary key, at text not null, source text not null, source_format text not null,
        source_sha text not null, file text not null, kernel text not null, kernel_sha text, status text not null,
        speedup real, runtime_us real, ref_runtime_us real, card text, body text not null)""")
    db.execute("create index burials_by_sha on burials (sha)")
    db.execute("create index foreign_rows_by_source on foreign_rows (source_sha)")


MIGRATIONS: tuple[tuple[int, Callable[[Database], None]], ...] = ((1, _first), (2, _second))
"""In order; a number is never used twice and its function never edited once released."""

NEWEST = MIGRATIONS[-1][0]

VIEWS = {
    "history": """select seq, at, file, kernel, status, round(speedup, 3) as speedup,
        round(runtime_us, 2) as runtime_us,
        round(ref_runtime_us, 2) as ref_runtime_us, regime, mode, author, intent, coalesce(judge, 'odyssey') as judge,
        card, substr(kernel_sha, 1, 12) as text from rows order by seq desc""",
    "best": """select file, kernel, card, kernel_sha, seq, max(speedup) as speedup, runtime_us from rows
        where status = 'correct' and speedup is not null group by file, kernel, card""",
    "samples": """select rows.seq, rows.file, rows.kernel, json_extract(s.value, '$.subject') as subject,
        json_extract(s.value, '$.figure') as figure, json_extract(s.value, '$.timer') as timer,
        json_extract(s.value, '$.case') as "case", v.key as n, v.value as value_us
        from rows, json_each(rows.body, '$.samples') as s, json_each(s.value, '$.values_us') as v""",
    "cases": """select rows.seq, rows.file, rows.kernel, json_extract(c.value, '$.name') as "case",
        json_extract(c.value, '$.status') as status, json_extract(c.value, '$.trials_right') as trials_right,
        json_extract(c.value, '$.trials') as trials, json_extract(c.value, '$.max_abs_error') as max_abs_error,
        json_extract(c.value, '$.runtime_us') as runtime_us, json_extract(c.value, '$.ref_runtime_us') as ref_runtime_us
        from rows, json_each(rows.body, '$.cases') as c""",
    "edges": """select rows.kernel_sha as child, p.value as parent, min(rows.seq) as seq, rows.author, rows.intent
        from rows, json_each(rows.parents) as p group by rows.kernel_sha, p.value""",
    "graves": "select sha, reason, at from burials order by id",
}
"""Ready queries for datasette or plain sqlite3; they hold no data of their own."""


def triggers() -> dict[str, str]:
    """Name -> SQL of every trigger. They refuse update, delete, and insert over a row that exists (so REPLACE too)."""
    made: dict[str, str] = {}
    for table, key in KEYS.items():
        refuse = f"begin select raise(abort, 'the ledger is append-only: {table}'); end"
        made[f"{table}_no_update"] = f"create trigger {table}_no_update before update on {table} {refuse}"
        made[f"{table}_no_delete"] = f"create trigger {table}_no_delete before delete on {table} {refuse}"
        taken = f"exists (select 1 from {table} where {key} = new.{key})"
        made[f"{table}_no_replace"] = (
            f"create trigger {table}_no_replace before insert on {table} when {taken} {refuse}"
        )
        if table in ("texts", "problems"):
            taken = f"exists (select 1 from {table} where sha = new.sha)"
            made[f"{table}_one_sha"] = f"create trigger {table}_one_sha before insert on {table} when {taken} {refuse}"
    return made


def _table_of(trigger: str) -> str:
    return trigger.removesuffix("_one_sha").rsplit("_no_", 1)[0]


def harden(db: Database) -> None:
    """Settings of a connection, before any table is read: what a stranger's file may hold must not run."""
    db.execute("pragma trusted_schema = off")
    db.execute("pragma recursive_triggers = on")
    db.execute("pragma cell_size_check = on")
    db.execute("pragma mmap_size = 0")
    db.execute("pragma foreign_keys = off")
    defensive = getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE", None)  # Python 3.12+
    if defensive is not None:
        getattr(db.conn, "setconfig")(defensive, True)  # noqa: B009 - typeshed of 3.11 does not know it


def version(db: Database) -> int:
    """0 for an empty file, else the number of the last migration. Raises SchemaRefused for a file that is not ours."""
    number = int(db.execute("pragma user_version").fetchone()[0])
    tables = int(db.execute("select count(*) from sqlite_master").fetchone()[0])
    if tables == 0:
        return 0
    if int(db.execute("pragma application_id").fetchone()[0]) != APPLICATION_ID or number < 1:
        raise SchemaRefused("the file is a database, but not a ledger of Odyssey; move it away")
    if number > NEWEST:
        raise SchemaRefused(f"the file is of a newer Odyssey (form {number}, this one knows {NEWEST}); update Odyssey")
    return number


def migrate(db: Database, *, newest: int = NEWEST) -> bool:
    """Bring the file to `newest`, inside the caller's transaction. True where anything was done."""
    done = version(db)
    if done >= newest:
        return False
    for number, step in MIGRATIONS:
        if done < number <= newest:
            step(db)
    db.execute(f"pragma application_id = {APPLICATION_ID}")
    db.execute(f"pragma user_version = {newest}")
    return True


def guard(db: Database) -> bool:
    """Put our triggers and views in place, exactly. True where something had to be made.

    Migrations and other tools drop triggers silently (sqlite-utils' transform does), hence at every open.
    """
    tables = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
    have = dict(db.execute("select name, sql from sqlite_master where type = 'trigger'"))
    want = {name: sql for name, sql in triggers().items() if _table_of(name) in tables}
    changed = False
    for name in have.keys() - want.keys():
        raise SchemaRefused(f"the file holds a trigger that is not ours ({name!r}); move it away")
    for name, sql in want.items():
        if have.get(name) != _as_stored(sql):
            db.execute(f"drop trigger if exists {name}")
            db.execute(sql)
            changed = True
    if "foreign_rows" in tables:
        views = dict(db.execute("select name, sql from sqlite_master where type = 'view'"))
        for name, body in VIEWS.items():
            sql = f"create view {name} as {body}"
            if views.get(name) != _as_stored(sql):
                db.execute(f"drop view if exists {name}")
                db.execute(sql)
                changed = True
    return changed


def _as_stored(sql: str) -> str:
    """SQLite keeps the text of a CREATE statement as given, with the first two words in capitals."""
    words = sql.split(" ", 2)
    return f"{words[0].upper()} {words[1].upper()} {words[2]}"


def assert_guarded(db: Database) -> None:
    """Raise SchemaRefused unless every trigger stands as written and every table of the file's form has its columns."""
    form = version(db)
    if form == 0:
        raise SchemaRefused("the file is empty")
    tables = {"meta", "chain", *FORMS[form]}
    have = dict(db.execute("select name, sql from sqlite_master where type = 'trigger'"))
    if have != {name: _as_stored(sql) for name, sql in triggers().items() if _table_of(name) in tables}:
        raise SchemaRefused("the append-only triggers are not in place")
    for table, columns in FORMS[form].items():
        found = {row[1] for row in db.execute(f"pragma table_info({table})")}
        if not found >= set(columns):
            raise SchemaRefused(f"table {table} lacks {', '.join(sorted(set(columns) - found))}")
