"""Owns the interleaved comparison with the text before, in a case of its own after the verdict. Never decides alone."""

from __future__ import annotations

from typing import Any

from evalcore.facts import Samples
from evalcore.fingerprint import sha256_text
from evalcore.stats import compare_pairs
from evalcore.worker import relay
from evalcore.worker.desks import ReferenceFailed, Untransferable
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import Asking, CaseFailed, Exchange
from evalcore.worker.spares import CannotWarm
from evalcore.worker.stages import Stages

_FAST_S, _THOROUGH_S = 0.6, 3.0
"""Time for the pairs: on a save the hint is to be there within 1.5 s."""


async def compared(evaluation: Evaluation, text: str) -> dict[str, Any] | None:
    """The `ab` of a Measurement: the candidate's text against an earlier one. None where that cannot be had."""
    tools, desk, station = evaluation.tools, evaluation.desk, evaluation.station
    problem, case = evaluation.problem, evaluation.line
    try:
        opened = await desk.open(case)
        if evaluation.second is None or not evaluation.second.spare.child.alive:
            spare = await tools.spares.take(desk.device, problem)
            evaluation.second = Exchange(desk, spare, evaluation.job.limits)
    except (CannotWarm, ReferenceFailed):
        return None
    exchange = evaluation.second
    try:
        before = {"text": text, "as": "previous"}
        for how in (before, {}):
            own = await exchange.load(problem, case, opened, how=how)
            await exchange.share_state(case, opened, own)
        question = {
            "ask": "time",
            "what": "ab",
            "case": case.name,
            "sizes": dict(case.sizes),
            "seconds": _THOROUGH_S if evaluation.thorough else _FAST_S,
            "inputs": "inputs",
        }
        stocked = await desk.stock(case, desk.next_seed)
        await exchange.make("inputs", stocked.specs)
        await exchange.fill(case, [{"name": "inputs", "what": "inputs", "seed": desk.next_seed}])
        asking = Asking(run_s=exchange.limits.run_s, build_s=exchange.limits.build_s)
        async with station.alone(desk.device, Stages(station.loop)):
            body = await exchange.ask_plain(question, asking)
        return _verdict(body, sha256_text(text), case.name)
    except (CaseFailed, ReferenceFailed, Untransferable, relay.Breach):
        return None


def _verdict(body: dict[str, Any], sha: str, case: str) -> dict[str, Any] | None:
    a, b = (_one(body.get(side), case) for side in ("a", "b"))
    try:
        found = compare_pairs(a.values_us, b.values_us)
    except ValueError:
        return None
    return {
        "against": sha,
        "verdict": found.verdict,
        "ratio": found.ratio,
        "interval": [found.low, found.high],
        "n": found.n,
        "timer": b.timer,
    }


def _one(value: Any, case: str) -> Samples:
    found = relay.samples([value], case=case, figures=("device",))
    return found[0]
