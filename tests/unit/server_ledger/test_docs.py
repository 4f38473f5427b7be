"""docs/ledger.md documents every column, and its queries run with plain sqlite3."""

from __future__ import annotations

import re
from pathlib import Path

from server.ledger import schema
from server.ledger.exports import CSV_COLUMNS
from tests.support.ledgers import filled, plain

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")


def documented(heading: str) -> set[str]:
    """Names in the first column of the tables below a heading."""
    section = TEXT.split(f"### {heading}", 1)[1].split("\n### ", 1)[0].split("\n## ", 1)[0]
    cells = [
        line.split("|")[1] for line in section.splitlines() if line.startswith("| ") and not line.startswith("| column")
    ]
    return {name.strip() for cell in cells for name in cell.split(",")}


def test_every_column_is_documented(tmp_path: Path) -> None:
    with filled(tmp_path, 1) as ledger:
        columns = {table: {row[1] for row in ledger.db.execute(f"pragma table_info({table})")} for table in schema.KEYS}
    assert documented("rows") == columns["rows"]
    assert documented("foreign_rows") == columns["foreign_rows"]
    assert documented("chain") == columns["chain"]
    pairs = {f"{table}.{name}" for table in ("texts", "problems") for name in columns[table]}
    assert documented("texts, problems") == pairs
    pairs = {f"{table}.{name}" for table in ("burials", "pins") for name in columns[table]}
    assert documented("burials, pins") == pairs


def test_every_view_and_csv_column_is_named() -> None:
    assert all(f"`{name}`" in TEXT for name in schema.VIEWS)
    assert all(re.search(rf"\b{name}\b", TEXT.split("`benchmark.csv` is for people")[1]) for name in CSV_COLUMNS)


def test_its_queries_run_with_plain_sqlite(tmp_path: Path) -> None:
    with filled(tmp_path, 12) as ledger:
        path = ledger.place.database
    queries = TEXT.split("```sql\n", 1)[1].split("```", 1)[0].replace("softmax_kernel", "k").strip().split(";\n")
    db = plain(path)
    assert len(queries) == 8
    empty = [query for query in queries if not db.execute(query.rstrip(";")).fetchall()]
    assert [query for query in empty if "from cases" not in query] == [], (
        "these rows have no cases, but samples and edges"
    )
    db.close()
