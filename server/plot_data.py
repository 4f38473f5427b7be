"""Owns what a plot shows, as plain numbers: roofline and history. Pure; draws nothing and imports no drawing library.

Roofs are measured ones of one card; a point of another card, or one without counted work, is left out and said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalcore.facts import Ceilings
from evalcore.wire import WireError, decode
from server.ledger.columns import Row
from server.words import duration, ratio

SPAN = 4.0
"""The picture reaches this factor beyond its outermost point or corner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One measured ceiling as a line of two points (log-log)."""

    label: str
    points: tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One judged text."""

    seq: int
    x: float
    y: float
    label: str
    verdict: str
    at: str = ""
    sha: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Arithmetic intensity against achieved rate, on one card."""

    card: str
    x_label: str
    y_label: str
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Times of one kernel on one card, in order; x is the seq."""

    card: str | None
    y_label: str
    points: tuple[Point, ...]
    note: str | None


def known_ceilings(folders: Iterable[Path]) -> dict[str, Ceilings]:
    """Measured ceilings by card UUID, as the worker has left them (ceilings-*.json); the newest file wins."""
    found: dict[str, Ceilings] = {}
    files = [path for folder in folders if folder.is_dir() for path in folder.rglob("ceilings-*.json")]
    for path in sorted(files, key=lambda path: path.stat().st_mtime):
        try:
            ceilings = decode(Ceilings, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, WireError):
            continue  # a file of another form or half-deleted: the card is then simply not known
        found[ceilings.uuid] = ceilings
    return found


def roofline(rows: Sequence[Row], ceilings: Ceilings) -> Roofline:
    """Each timed, right row of the ceilings' card whose work was counted."""
    points, other_card, uncounted = [], 0, 0
    for row in rows:
        if row.status != "correct" or not row.runtime_us:
            continue
        if row.uuid != ceilings.uuid:
            other_card += 1
            continue
        work = _work(row)
        if work is None:
            uncounted += 1
            continue
        flops, moved = work
        label = f"#{row.seq} {row.kernel} {duration(row.runtime_us)}"
        points.append(Point(seq=row.seq, x=flops / moved, y=flops / row.runtime_us / 1e6, label=label,
                            verdict=row.status, at=row.at, sha=row.kernel_sha))  # fmt: skip
    notes = []
    if other_card:
        notes.append(f"{other_card} of other cards left out")
    if uncounted:
        notes.append(f"{uncounted} without counted work left out")
    return Roofline(
        card=ceilings.card,
        x_label="FLOP per byte",
        y_label="TFLOP/s",
        roofs=_roofs(ceilings, points),
        points=tuple(points),
        note="; ".join(notes) or None,
    )


def _work(row: Row) -> tuple[float, float] | None:
    """(FLOPs, bytes) of the case on the line, None where not counted or nothing to divide."""
    metrics = ((row.plain.get("result") or {}).get("profile") or {}).get("raw_metrics") or {}
    flops, read, written = (metrics.get(name) for name in ("flops", "bytes_read", "bytes_written"))
    moved = (read or 0) + (written or 0)
    return (float(flops), float(moved)) if flops and moved else None


def _roofs(ceilings: Ceilings, points: Sequence[Point]) -> tuple[Roof, ...]:
    """Slanted: bytes per second. Level: FLOPs per second of each lane."""
    rates = [(lane, tflops) for lane, tflops in ceilings.tflops if tflops > 0]
    slope = (ceilings.copy_gb_per_s or 0) / 1000  # TB/s; times FLOP per byte gives TFLOP/s
    if not slope or not rates:
        return ()
    top = max(tflops for _, tflops in rates)
    corners = [tflops / slope for _, tflops in rates]
    left = min([*corners, *(point.x for point in points)]) / SPAN
    right = max([*corners, *(point.x for point in points)]) * SPAN
    made = [Roof(label=f"copy {ceilings.copy_gb_per_s:.0f} GB/s", points=((left, left * slope), (top / slope, top)))]
    for (lane, tflops), corner in zip(rates, corners, strict=True):
        made.append(Roof(label=f"{lane} {tflops:.3g} TFLOP/s", points=((corner, tflops), (right, tflops))))
    return tuple(made)


def history(rows: Sequence[Row], uuid: str | None = None) -> History:
    """Times of right rows in order of their seq; `uuid` None takes the card of the newest one."""
    timed = sorted((row for row in rows if row.status == "correct" and row.runtime_us), key=lambda row: row.seq)
    if uuid is None and timed:
        uuid = timed[-1].uuid
    shown = [row for row in timed if row.uuid == uuid]
    points = [
        Point(seq=row.seq, x=row.seq, y=row.runtime_us or 0.0, label=_label(row), verdict=row.status, at=row.at,
              sha=row.kernel_sha)
        for row in shown
    ]  # fmt: skip
    left_out = len(timed) - len(shown)
    return History(
        card=shown[-1].card if shown else None,
        y_label="device time, us",
        points=tuple(points),
        note=f"{left_out} of other cards left out" if left_out else None,
    )


def _label(row: Row) -> str:
    faster = f", {ratio(row.speedup)}" if row.speedup else ""
    why = f": {row.intent}" if row.intent else ""
    return f"#{row.seq} {duration(row.runtime_us or 0.0)}{faster} ({row.author}{why})"
