"""Owns the panel's questions: rows, texts, the map, plots, comparisons, pins. Never formats a number."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from handlers import to_lsp
from handlers.from_lsp import path_of
from server import plot_data, rows
from server.ledger.compare import compare as set_beside
from server.ledger.compare import find
from server.ledger.store import Ledger, LedgerUnusable
from server.lsp.ext import CandidateParams, CompareParams, LedgerRowsParams, ScopeParams, SeqParams
from server.lsp.language_server import OdysseyServer, RequestFailed
from server.recorder import Recorder

T = TypeVar("T")

PAGE = 200
MOST_ROWS = 2000
MOST_PLOTTED = 1000


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows: of one workspace folder, one file, one kernel."""

    recorder: Recorder
    file: str | None
    kernel: str | None


async def ledger_rows(ls: OdysseyServer, params: LedgerRowsParams) -> dict[str, Any]:
    """A page of rows, newest first; with `after`, oldest first, so that a follower misses none."""
    scope = _scope(ls, params.uri, params.kernel)
    limit = min(max(params.limit or PAGE, 1), MOST_ROWS)

    def read(ledger: Ledger) -> dict[str, Any]:
        found = ledger.rows(file=scope.file, kernel=scope.kernel, after=params.after, before=params.before, limit=limit)
        return {
            "rows": [rows.row_plain(row, uri_of=to_lsp.uri_of, buried=ledger.burial(row.kernel_sha)) for row in found],
            "last_seq": ledger.last_seq(),
            "total": ledger.count(file=scope.file, kernel=scope.kernel),
            "places": {"ledger": str(ledger.place.database)},
        }

    empty = {"rows": [], "last_seq": 0, "total": 0, "places": {"ledger": ""}}
    return await _read(scope.recorder, read, empty)


async def candidate(ls: OdysseyServer, params: CandidateParams) -> dict[str, Any]:
    """A judged text by its sha."""

    def read(ledger: Ledger) -> dict[str, Any] | None:
        text = ledger.text(params.sha)
        found = ledger.of_text(params.sha)
        return None if text is None else {"text": text, "path": found[0].file if found else ""}

    for recorder in ls.session.state.all_recorders():
        answer = await _read(recorder, read, None)
        if answer is not None:
            return answer
    raise RequestFailed(f"The ledger has no text {params.sha[:12]}.")


async def candidate_map(ls: OdysseyServer, params: ScopeParams) -> dict[str, Any]:
    """The candidates as a DAG with stable lanes."""
    scope = _scope(ls, params.uri, params.kernel)
    empty: dict[str, Any] = {"nodes": [], "edges": []}
    return await _read(scope.recorder, lambda ledger: rows.map_plain(ledger.map(scope.file, scope.kernel)), empty)


async def plots(ls: OdysseyServer, params: ScopeParams) -> dict[str, Any]:
    """Roofline and history of a kernel on the card of its newest row."""
    scope = _scope(ls, params.uri, params.kernel)
    folders = ls.session.ceilings_folders()

    def read(ledger: Ledger) -> dict[str, Any]:
        return _plots(ledger, scope, folders)

    empty = {"roofline": None, "history": {"points": [], "y_label": ""}, "note": "Nothing was judged here yet."}
    return await _read(scope.recorder, read, empty)


def _plots(ledger: Ledger, scope: Scope, folders: tuple[Path, ...]) -> dict[str, Any]:
    found = ledger.rows(file=scope.file, kernel=scope.kernel, limit=MOST_PLOTTED)
    past = plot_data.history(found)
    ceilings = plot_data.known_ceilings(folders)
    uuid = next((row.uuid for row in found if row.uuid and row.runtime_us), None)
    roof = plot_data.roofline(found, ceilings[uuid]) if uuid in ceilings else None
    notes = [past.note, roof.note if roof is not None else None]
    if roof is None:
        notes.append("No measured ceilings of a card are known, so there is no roofline.")
    return {
        "roofline": None if roof is None else {
            "card": roof.card,
            "axes": {"x_label": roof.x_label, "y_label": roof.y_label},
            "ceilings": [{"label": each.label, "points": [list(xy) for xy in each.points]} for each in roof.roofs],
            "points": [_point(each) for each in roof.points],
        },
        "history": {"points": [_moment(each) for each in past.points], "y_label": past.y_label},
        "note": "; ".join(note for note in notes if note) or None,
    }  # fmt: skip


def _point(point: plot_data.Point) -> dict[str, Any]:
    return {"seq": point.seq, "x": point.x, "y": point.y, "label": point.label, "verdict": point.verdict}


def _moment(point: plot_data.Point) -> dict[str, Any]:
    return {"seq": point.seq, "at": point.at, "y": point.y, "label": point.label, "verdict": point.verdict}


async def compare(ls: OdysseyServer, params: CompareParams) -> dict[str, Any]:
    """Two texts and their newest rows beside each other."""

    def read(ledger: Ledger) -> dict[str, Any] | None:
        try:
            found = set_beside(ledger, find(ledger, params.a), find(ledger, params.b))
        except KeyError:
            return None
        texts = [ledger.text(row.kernel_sha) or "" for row in (found.a, found.b)]
        return rows.comparison_plain(found, texts[0], texts[1])

    for recorder in ls.session.state.all_recorders():
        answer = await _read(recorder, read, None)
        if answer is not None:
            return answer
    raise RequestFailed(f"The ledger does not have both {params.a[:12]} and {params.b[:12]}.")


async def pin(ls: OdysseyServer, params: SeqParams) -> dict[str, Any]:
    """Make a row the baseline of its kernel."""
    for recorder in ls.session.state.all_recorders():
        try:
            if await recorder.exists():
                await recorder.call(lambda ledger: ledger.pin(params.seq))
                return {"ok": True}
        except KeyError:
            continue
    raise RequestFailed(f"The ledger has no row {params.seq}.")


def _scope(ls: OdysseyServer, uri: str | None, kernel: str | None) -> Scope:
    state = ls.session.state
    if uri is not None:
        path = path_of(uri)
        return Scope(state.recorder(path), path, kernel)
    recorders = state.all_recorders()
    if not recorders:
        raise RequestFailed("No folder is open, so there is no ledger. Open a folder or a kernel file.")
    return Scope(recorders[0], None, kernel)


async def _read(recorder: Recorder, work: Callable[[Ledger], T], empty: T) -> T:
    """Ask a ledger that is there; asking must not make one."""
    try:
        return await recorder.call(work) if await recorder.exists() else empty
    except (LedgerUnusable, OSError, sqlite3.Error) as problem:
        raise RequestFailed(f"The ledger cannot be read: {problem}") from None
