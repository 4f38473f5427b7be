"""Owns rows as lines and cards of text, and as JSON values. Pure; numbers are worded by server.words.

A number of a card that is not at hand is struck out (or stands in ~tildes~): it is no evidence about this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from server.ledger.columns import Row
from server.ledger.compare import Comparison
from server.ledger.verify import Report
from server.words import duration, ratio

WORDS = {"correct": "right", "incorrect": "wrong", "compile_error": "does not compile", "error": "error"}
COLOURS = {"correct": "\x1b[32m", "incorrect": "\x1b[31m", "compile_error": "\x1b[33m", "error": "\x1b[35m"}
STRUCK, PLAIN = "\x1b[9m", "\x1b[0m"
MOST_WHY = 60


def elsewhere(row: Row, cards: frozenset[str]) -> bool:
    """True where the row has a number of a card that is not at hand."""
    return row.uuid is not None and row.uuid not in cards and (row.runtime_us is not None or row.speedup is not None)


def figures(row: Row, cards: frozenset[str], *, colour: bool) -> str:
    """'34.4 us 2.31x', struck out where it is of another card; '' where nothing was measured."""
    words = " ".join(
        part for part in (duration(row.runtime_us) if row.runtime_us else "", ratio(row.speedup) if row.speedup else "")
        if part
    )  # fmt: skip
    if not words or not elsewhere(row, cards):
        return words
    return f"{STRUCK}{words}{PLAIN}" if colour else f"~{words}~"


def line(row: Row, cards: frozenset[str], *, colour: bool = False) -> str:
    """One row in one line."""
    verdict = WORDS.get(row.status, row.status) + (f" ({row.reason})" if row.reason else "")
    if row.interpreted and row.status == "correct":
        verdict += " (interpreted)"
    shown = f"{COLOURS.get(row.status, '')}{verdict}{PLAIN}" if colour else verdict
    parts = [
        f"#{row.seq:<5} {row.at[:19].replace('T', ' ')}  {row.kernel:<20.40} {shown}",
        figures(row, cards, colour=colour),
    ]
    if elsewhere(row, cards):
        parts.append(f"on {row.card}")
    if row.foreign:
        parts.append("(not yours: evidence only)")
    if row.judge != "odyssey":
        parts.append(f"by {row.judge.removeprefix('evaluator/')}")
    parts.append(f"{row.author}{': ' + flat(row.intent, MOST_WHY) if row.intent else ''}")
    return "  ".join(part for part in parts if part)


def flat(text: str, most: int) -> str:
    """One line of at most `most` characters."""
    words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 1] + "…"


def as_json(row: Row, cards: frozenset[str]) -> dict[str, Any]:
    """Plain values of a row's columns."""
    names = ("seq", "at", "file", "kernel", "kernel_sha", "status", "reason", "error", "speedup", "runtime_us",
             "ref_runtime_us", "regime", "floor_us", "mode", "cause", "author", "intent", "judge", "card", "uuid",
             "driver", "torch", "triton", "python", "interpreted", "evaluator_sha", "evaluator_md5", "problem_id",
             "problem_sha", "format", "git_sha", "git_dirty", "foreign")  # fmt: skip
    return {
        **{name: getattr(row, name) for name in names},
        "parents": list(row.parents),
        "elsewhere": elsewhere(row, cards),
    }


def card(row: Row, cards: frozenset[str], *, burial: str | None, pinned: bool) -> str:
    """Everything about a row that a person asks for first."""
    body = row.plain
    facts = [
        ("verdict", WORDS.get(row.status, row.status) + (f" ({row.reason})" if row.reason else "")),
        ("time", figures(row, cards, colour=False)),
        ("reference", duration(row.ref_runtime_us) if row.ref_runtime_us else ""),
        ("regime", row.regime or ""),
        ("error", row.error or ""),
        ("file", f"{row.file}::{row.kernel}"),
        ("text", row.kernel_sha),
        ("parents", ", ".join(row.parents)),
        ("made by", row.author + (f": {row.intent}" if row.intent else "")),
        ("why", row.cause),
        ("buried", burial or ""),
        ("pinned", "baseline" if pinned else ""),
        ("judge", f"{row.judge}, {row.mode}, md5 {row.evaluator_md5}"),
        ("problem", f"{row.problem_id} ({row.format}), sha {row.problem_sha[:12]}"),
        ("card", f"{row.card or 'none'} {row.uuid or ''} driver {row.driver or '-'}"),
        ("versions", f"torch {row.torch or '-'}, triton {row.triton or '-'}, Python {row.python}"),
        ("git", f"{row.git_sha or '-'}{' + changes' if row.git_dirty else ''}"),
        ("seal", "not yours: evidence only" if row.foreign else "yours"),
        ("at", row.at),
    ]
    lines = [f"row {row.seq}"] + [f"  {name:<10} {value}" for name, value in facts if value]
    lines += [f"  {flag['code']}: {flag['message']}" for flag in body.get("flags", ())]
    return "\n".join([*lines, *_cases(body.get("cases") or ())]) + "\n"


def _cases(cases: Sequence[dict[str, Any]]) -> list[str]:
    rows = [("case", "verdict", "trials", "time", "reference", "max abs error")]
    for case in cases:
        rows.append((
            str(case["name"]), str(case["status"]), f"{case['trials_right']}/{case['trials']}",
            duration(case["runtime_us"]) if case.get("runtime_us") else "",
            duration(case["ref_runtime_us"]) if case.get("ref_runtime_us") else "",
            f"{case['max_abs_error']:.2g}" if isinstance(case.get("max_abs_error"), float) else "",
        ))  # fmt: skip
    return ["", *table(rows)] if cases else []


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns in step."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def report(found: Report, place: str) -> str:
    """What verify says."""
    words = {
        "intact": "intact: nothing was changed, nothing is missing",
        "empty": "empty",
        "foreign": "whole, but somebody else's: evidence to read, never a verdict",
        "damaged": "DAMAGED",
    }
    lines = [
        f"{place}",
        f"  {words[found.state]}",
        f"  {found.rows} rows, {found.entries} entries, {found.mine} sealed by you",
    ]
    if found.head:
        lines.append(f"  head of the chain: {found.head}")
    lines += [f"  {fault.where}: {fault.message}" for fault in found.faults]
    return "\n".join([*lines, *(f"  note: {note}" for note in found.notes)]) + "\n"


def comparison(made: Comparison) -> str:
    """Two rows beside each other, then the diff."""
    rows = [("", f"#{made.a.seq}", f"#{made.b.seq}", "")]
    for each in made.lines:
        if each.a is None and each.b is None:
            continue
        rows.append((each.what, _value(each.a), _value(each.b), ratio(each.ratio) if each.ratio else ""))
    lines = table(rows)
    lines += [f"  not comparable: {words}" for words in made.obstacles]
    return "\n".join(lines) + "\n" + (f"\n{made.diff}" if made.diff else "\nthe texts are the same\n")


def machine_code(sass: dict[str, Any]) -> str:
    """Instruction counts that differ, then the diff."""
    a, b = sass["instructions"]
    rows = [("instruction", "a", "b"), ("all", str(a), str(b))]
    rows += [(each["opcode"], str(each["a"]), str(each["b"])) for each in sass["changed"][:30]]
    diff = sass["diff"] if sass["diff"] is not None else "the listings are too long to be read side by side"
    return "\n".join([*table(rows), diff]) + "\n"


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else flat(str(value), 48)


def dumped(value: Any) -> str:
    """One JSON object, indented."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def best(rows: Iterable[Row]) -> list[Row]:
    """The fastest right row of each kernel on each card, fastest speedup first."""
    found: dict[tuple[str, str, str | None], Row] = {}
    for row in rows:
        if row.status != "correct" or row.runtime_us is None:
            continue
        key = (row.file, row.kernel, row.uuid)
        known = found.get(key)
        if known is None or row.runtime_us < (known.runtime_us or 0):
            found[key] = row
    return sorted(found.values(), key=lambda row: -(row.speedup or 0))
