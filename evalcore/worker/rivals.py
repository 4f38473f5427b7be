"""Owns measuring opponents: torch's own attempts at a problem, each in a fresh case. Never compares a time itself.

Every opponent is held to the tolerance that a candidate is held to: its timed outputs go to the referee like anybody's.
"""

from __future__ import annotations

from typing import Any

from evalcore.gpu.opponents import MODES
from evalcore.jobs import Limits
from evalcore.problem import Problem
from evalcore.worker import relay
from evalcore.worker.desks import Desk, ReferenceFailed, Untransferable
from evalcore.worker.evaluation import Tools
from evalcore.worker.exchange import Asking, CaseFailed, Exchange
from evalcore.worker.sizes import choose
from evalcore.worker.spares import CannotWarm
from evalcore.worker.stages import Stages

_LIMITS = Limits(build_s=300.0, run_s=300.0)


async def measure_rivals(tools: Tools, problem: Problem, sha: str, device: str) -> list[dict[str, Any]]:
    """One row per opponent; one that could not be measured says why and counts for nothing."""
    desk = tools.desks.get(problem, sha, device)
    desk.in_use += 1
    try:
        rows = []
        for name in MODES:
            row = await _measure(tools, desk, name)
            rows.append(row)
        return rows
    finally:
        desk.in_use -= 1


def _void(name: str, reason: str) -> dict[str, Any]:
    return {"name": name, "admissible": False, "runtime_us": None, "error": None, "reason": reason}


async def _measure(tools: Tools, desk: Desk, name: str) -> dict[str, Any]:
    station, problem = tools.station, desk.problem
    card = station.card(desk.device)
    free = int(card["memory_bytes"] * 0.8) if card is not None else None
    try:
        case = (await choose(desk, problem.cases[0], free_bytes=free)).case
        opened = await desk.open(case)
        spare = await tools.spares.take(desk.device, problem)
    except (CannotWarm, ReferenceFailed) as reason:
        return _void(name, str(reason))
    exchange = Exchange(desk, spare, _LIMITS)
    try:
        await exchange.load(problem, case, opened, how={"side": "reference"})
        question = {
            "ask": "time",
            "what": "opponent",
            "name": name,
            "case": case.name,
            "sizes": dict(case.sizes),
            "seed": desk.model_seed,
            "tolerance": None,
        }
        async with station.alone(desk.device, Stages(station.loop)):
            body = await exchange.ask_plain(question, Asking(run_s=_LIMITS.run_s, build_s=_LIMITS.build_s))
        row = body.get("row")
        return row if isinstance(row, dict) else _void(name, "its process sent no row")
    except (CaseFailed, ReferenceFailed, Untransferable, relay.Breach) as reason:
        return _void(name, str(reason))
    finally:
        exchange.leave()
