"""Owns ledger rows, maps and comparisons as a panel shows them: finished words, with numbers only for sorting.

Never opens a ledger: it is called in the ledger's thread with what was read there. Rows are read as plain JSON, because
rebuilding the whole Measurement of each row of a page would take longer than the page may.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from evalcore.jobs import Reason
from evalcore.results import Status
from server import card, words
from server.ledger.columns import Row
from server.ledger.compare import Comparison
from server.ledger.lineage import Map, Node

UriOf = Callable[[str], str]


def row_plain(row: Row, *, uri_of: UriOf, buried: str | None = None) -> dict[str, Any]:
    """One row as `odyssey/ledgerRows` sends it."""
    body = light(row.body)
    opponent, speedup = _headline(row, body)
    interval = (body.get("timing") or {}).get("interval_us")
    return {
        "seq": row.seq,
        "at": row.at,
        "at_words": at_words(row.at),
        "file": row.file,
        "uri": uri_of(row.file),
        "kernel": row.kernel,
        "verdict": row.status,
        "verdict_words": verdict_words(row.status, row.reason, interpreted=row.interpreted),
        "reason": row.reason,
        "speedup": speedup,
        "speedup_words": words.ratio(speedup) if speedup is not None else "",
        "opponent": opponent,
        "device_us": row.runtime_us,
        "device_words": words.duration(row.runtime_us) if row.runtime_us is not None else "",
        "interval_words": words.interval(interval),
        "regime": row.regime,
        "card": row.card,
        "foreign": row.foreign,
        "cause": row.cause,
        "author": row.author,
        "sha": row.kernel_sha,
        "sha_short": row.kernel_sha[:8],
        "parents": list(row.parents),
        "mode": row.mode,
        "buried": buried,
        "detail_markdown": detail(row, body),
    }


def light(body: str) -> dict[str, Any]:
    """A row's body without its raw samples, which are most of its bytes and of the time to read it.

    In compact JSON these marks cannot stand inside a string: there a quote is escaped.
    """
    start = body.find(',"samples":[')
    end = body.find('],"kernels":', start) if start >= 0 else -1
    try:
        found = json.loads(body[:start] + body[end + 1 :] if end >= 0 else body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def detail(row: Row, body: dict[str, Any]) -> str:
    """A row's detail as Markdown, from its plain values."""
    title = f"**{card.plain(row.kernel)}** · {verdict_words(row.status, row.reason, interpreted=row.interpreted)}"
    parts = [f"{title} · {row.mode} · {card.plain(row.format)}"]
    if row.error:
        parts.append(card.block(row.error))
    cases = body.get("cases") or ()
    if cases:
        lines = ["| case | right | max abs error | time |", "|---|---|---|---|"]
        lines += [_case_line(case) for case in cases[:12]]
        parts.append("\n".join(lines))
    timing = body.get("timing") or {}
    times = [
        f"{label} {words.duration(float(timing[key]))}"
        for label, key in (("device", "device_us"), ("call", "call_us"), ("graph replay", "graph_us"))
        if isinstance(timing.get(key), (int, float))
    ]
    if times:
        n = f" (n = {timing['n']}, timer {card.plain(str(timing.get('timer', '')))})" if timing.get("n") else ""
        parts.append(" · ".join(times) + n)
    parts += [f"- {card.plain(str(flag.get('message', '')))}" for flag in (body.get("flags") or ())[:6]]
    where = [row.card or "no GPU", f"driver {row.driver}" if row.driver else "", f"torch {row.torch or 'none'}",
             f"triton {row.triton or 'none'}", f"Python {row.python}", f"text {row.kernel_sha[:8]}"]  # fmt: skip
    if row.foreign:
        where.append("written with another key: evidence to read, never a verdict")
    parts.append("*" + card.plain(" · ".join(each for each in where if each)) + "*")
    return "\n\n".join(parts)


def _case_line(case: dict[str, Any]) -> str:
    name = card.plain(str(case.get("name", "")))
    origin = case.get("origin")
    name += f" ({card.plain(str(origin))})" if origin not in (None, "given") else ""
    right = f"{case.get('trials_right', 0)}/{case['trials']}" if case.get("trials") else str(case.get("status", ""))
    error = case.get("max_abs_error")
    time_us = case.get("runtime_us")
    error_words = words.error_size(float(error)) if isinstance(error, (int, float)) else ""
    time_words = words.duration(float(time_us)) if isinstance(time_us, (int, float)) else ""
    return f"| {name} | {right} | {error_words} | {time_words} |"


def _headline(row: Row, body: dict[str, Any]) -> tuple[str | None, float | None]:
    """The strongest admissible opponent and the ratio against it, as `server.headline` decides for a Measurement."""
    if not row.runtime_us:
        return None, None
    best = ("eager", row.ref_runtime_us) if row.ref_runtime_us else None
    for each in body.get("opponents") or ():
        time_us = each.get("runtime_us")
        admissible = each.get("admissible") is True and isinstance(time_us, (int, float)) and time_us > 0
        if admissible and (best is None or time_us < best[1]):
            best = (str(each.get("name", "opponent")), float(time_us))
    return (None, None) if best is None else (best[0], best[1] / row.runtime_us)


def verdict_words(status: str, reason: str | None, *, interpreted: bool) -> str:
    """A row's verdict in a few words."""
    try:
        said = words.status_words(Status(status), Reason(reason) if reason else None)
    except ValueError:
        said = status
    return f"{said} {words.INTERPRETED}" if interpreted and status == "correct" else said


def at_words(at: str) -> str:
    """'2026-11-29 15:04:49' of an ISO time, UTC."""
    return at[:19].replace("T", " ")


def map_plain(found: Map) -> dict[str, Any]:
    """A map as `odyssey/map` sends it."""
    return {
        "nodes": [_node_plain(node) for node in found.nodes],
        "edges": [{"from": edge.parent, "to": edge.child, "kind": edge.kind} for edge in found.edges],
    }


def _node_plain(node: Node) -> dict[str, Any]:
    label = node_label(node)
    lines = [f"**{card.plain(label)}**", f"{card.plain(node.author)}, {at_words(node.at)}, text {node.sha[:8]}"]
    lines += [card.plain(node.intent)] if node.intent else []
    lines += [f"on {card.plain(node.card)}"] if node.card else []
    lines += [f"Buried: {card.plain(node.buried)}"] if node.buried else []
    return {
        "sha": node.sha,
        "seq": node.seq,
        "lane": node.lane,
        "row": node.row,
        "parents": list(node.parents),
        "author": node.author,
        "verdict": node.status,
        "label": label,
        "hover_markdown": "\n\n".join(lines),
        "buried": node.buried,
        "best": node.best,
        "at_words": at_words(node.at),
    }


def node_label(node: Node) -> str:
    """'#12 correct 34.4 us 2.31x'."""
    parts = [f"#{node.seq}", verdict_words(node.status, node.reason, interpreted=False)]
    parts += [words.duration(node.runtime_us)] if node.runtime_us else []
    parts += [words.ratio(node.speedup)] if node.speedup else []
    return " ".join(parts)


def comparison_plain(found: Comparison, a_text: str, b_text: str) -> dict[str, Any]:
    """Two candidates beside each other as `odyssey/compare` sends them."""
    lines = ["| | a | b | a / b |", "|---|---|---|---|"]
    for line in found.lines:
        ratio = words.ratio(line.ratio) if line.ratio is not None else ""
        lines.append(f"| {card.plain(line.what)} | {_cell(line.what, line.a)} | {_cell(line.what, line.b)} | {ratio} |")
    notes = [f"- times are not compared: {card.plain(obstacle)}" for obstacle in found.obstacles]
    return {
        "diff_title": f"#{found.a.seq} {found.a.kernel_sha[:8]} ↔ #{found.b.seq} {found.b.kernel_sha[:8]}",
        "a_text": a_text,
        "b_text": b_text,
        "table_markdown": "\n".join([*lines, "", *notes]),
    }


def _cell(what: str, value: Any) -> str:
    if value is None:
        return ""
    if what.endswith("_us") and isinstance(value, (int, float)):
        return words.duration(float(value))
    if what == "speedup" and isinstance(value, (int, float)):
        return words.ratio(float(value))
    return card.plain(str(value))


def history_markdown(kernel: str, rows: Sequence[Row]) -> str:
    """A kernel's rows as a Markdown document."""
    lines = [f"# {card.plain(kernel)}", "", "| row | when (UTC) | verdict | speedup | device time | card | text | by |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        opponent, speedup = _headline(row, light(row.body))
        faster = f"{words.ratio(speedup)} {card.plain(opponent or '')}" if speedup is not None else ""
        time = words.duration(row.runtime_us) if row.runtime_us is not None else ""
        said = verdict_words(row.status, row.reason, interpreted=row.interpreted)
        where = card.plain(row.card or "no GPU")
        lines.append(
            f"| {row.seq} | {at_words(row.at)} | {said} | {faster} | {time} | {where} | `{row.kernel_sha[:8]}` | "
            f"{card.plain(row.author)} |"
        )
    return "\n".join(lines) + "\n"
