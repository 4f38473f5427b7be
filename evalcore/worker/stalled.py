"""Owns where warps wait: PC sampling in a case of its own, in thorough mode, after the time was taken. Never times."""

from __future__ import annotations

from evalcore.facts import RawProfile
from evalcore.gpu.kernel_profile import merge
from evalcore.worker import relay
from evalcore.worker.desks import ReferenceFailed, Untransferable
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import Asking, CaseFailed, Exchange
from evalcore.worker.spares import CannotWarm
from evalcore.worker.station import roots_of
from evalcore.worker.timed_part import Serving, make_ring

_CALLS = 50


async def sample_stalls(evaluation: Evaluation) -> None:
    """Add stall shares to the profile that timing left; where they cannot be had, the profile says why."""
    if evaluation.got.profile is None:
        return
    with evaluation.stages.timed("stalls"):
        found = await _sample(evaluation)
    evaluation.got.profile = merge(evaluation.got.profile, found)


async def _sample(evaluation: Evaluation) -> RawProfile:
    station, desk, line = evaluation.station, evaluation.desk, evaluation.line
    try:
        spare = await evaluation.tools.spares.fork(evaluation.device, roots_of(evaluation.problem), clock=False)
    except CannotWarm as reason:
        return _none(str(reason))
    exchange = Exchange(desk, spare, evaluation.job.limits)
    try:
        opened = await desk.open(line)
        own = await exchange.load(evaluation.problem, line, opened)
        await exchange.share_state(line, opened, own)
        slots = await make_ring(exchange, evaluation.specs)
        serving = Serving(evaluation, exchange, slots, offers=0)
        question = {"ask": "time", "what": "stalls", "case": line.name, "slots": slots, "n": _CALLS}
        asking = Asking(run_s=exchange.limits.run_s, build_s=exchange.limits.build_s)
        async with station.alone(evaluation.device, evaluation.stages):
            body = await exchange.ask_plain(question, asking, serving.answer)
        if "unavailable" in body:
            return _none(relay.text(body["unavailable"], 300))
        return relay.profile(body.get("profile"))
    except (CaseFailed, ReferenceFailed, Untransferable, relay.Breach) as reason:
        return _none(str(reason))
    finally:
        exchange.leave()


def _none(reason: str) -> RawProfile:
    return RawProfile(profiler="no stalls", metrics={"stalls_unavailable": reason})
