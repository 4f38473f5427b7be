"""Owns the reference's time: in a case of its own, by the same clock, once per problem, device and size. Never judges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalcore.facts import Samples
from evalcore.jobs import Limits
from evalcore.problem import Case
from evalcore.wire import WireError, decode
from evalcore.worker.desks import Desk, ReferenceFailed, Untransferable
from evalcore.worker.evaluation import Tools
from evalcore.worker.exchange import Asking, CaseFailed, Exchange
from evalcore.worker.spares import CannotWarm
from evalcore.worker.stages import Stages

FIGURES = ("device", "call")


async def reference_samples(tools: Tools, desk: Desk, case: Case, stop: dict[str, Any]) -> tuple[Samples, ...]:
    """Times of the reference at a case: remembered, or taken now. () where the reference cannot be timed."""
    known = tools.remembered.reference(desk.sha, desk.device, case.name, at_least=stop["least"])
    if known is not None:
        return known
    try:
        samples = await _measure(tools, desk, case, stop)
    except (CaseFailed, CannotWarm, ReferenceFailed, Untransferable, WireError):
        return ()
    tools.remembered.keep_reference(desk.sha, desk.device, case.name, samples)
    return samples


async def _measure(tools: Tools, desk: Desk, case: Case, stop: dict[str, Any]) -> tuple[Samples, ...]:
    station = tools.station
    opened = await desk.open(case)
    spare = await tools.spares.take(desk.device, desk.problem)
    exchange = Exchange(desk, spare, Limits())
    try:
        await exchange.load(desk.problem, case, opened, how={"side": "reference"})
        question = {
            "ask": "time",
            "what": "reference",
            "case": case.name,
            "sizes": dict(case.sizes),
            "seed": desk.model_seed,
            "figures": list(FIGURES),
            "n": stop["most"],
            "stop": stop,
        }
        asking = Asking(run_s=exchange.limits.run_s, build_s=exchange.limits.build_s)
        async with station.alone(desk.device, Stages(station.loop)):
            body = await exchange.ask_plain(question, asking)
        found = decode(tuple[Samples, ...], body["samples"])  # type: ignore[type-var]
        return tuple(replace(each, subject="reference", case=case.name) for each in found)
    finally:
        exchange.leave()
