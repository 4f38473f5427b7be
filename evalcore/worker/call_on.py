"""Owns the calls after the trials: as many as timing would make where nothing is timed, and the other listed sizes.

A candidate that stops working after the trials, or that is right at one listed size only, is wrong. Never a warning:
what fails here decides.
"""

from __future__ import annotations

from evalcore.facts import Trial
from evalcore.problem import Case
from evalcore.worker.desks import ReferenceFailed
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import CaseFailed
from evalcore.worker.sizes import TooLarge, choose

_CALLS = 10
_CALLS_OF_COUNTERS = 40
"""For a text in which something counts its calls."""
_LEAST_CALLS = 4
_SECONDS = {"fast": 0.5, "thorough": 3.0}
"""Past this, no further call or size is begun; the least number is made all the same."""
_LISTED = {"fast": 1, "thorough": 16}
"""Other listed sizes that are tried, smallest first."""


async def call_on(evaluation: Evaluation) -> None:
    """Calls of kind 'timed' on fresh inputs, each compared. Stops at the first crash, which the trial then holds."""
    counts = any(hit.rule == "call-counter" for hit in evaluation.screen or ())
    most = _CALLS_OF_COUNTERS if counts else _CALLS
    begun = evaluation.station.loop.time()
    with evaluation.stages.timed("calls"):
        for index, seed in enumerate(evaluation.seeds(evaluation.line, most, "calls")):
            spent = evaluation.station.loop.time() - begun
            if index >= _LEAST_CALLS and spent > _SECONDS[evaluation.job.mode.value]:
                return
            trial = await evaluation.exchange.trial(evaluation.line, seed, kind="timed")
            evaluation.got.trials.append(trial)
            if trial.crash is not None:
                return


async def listed_sizes(evaluation: Evaluation) -> None:
    """One trial at each of the other sizes that the problem lists, as far as they fit here and the mode allows."""
    others = [case for case in evaluation.problem.cases if case.name != evaluation.line.name and case.origin == "given"]
    sized = [(await evaluation.desk.size(case), case) for case in others]
    sized.sort(key=lambda each: each[0][0] if each[0][0] is not None else 1 << 62)
    begun = evaluation.station.loop.time()
    for index, (_size, case) in enumerate(sized[: _LISTED[evaluation.job.mode.value]]):
        spent = evaluation.station.loop.time() - begun
        if index and spent > _SECONDS[evaluation.job.mode.value]:
            return
        with evaluation.stages.timed("listed"):
            if not await _listed(evaluation, case):
                return


async def _listed(evaluation: Evaluation, case: Case) -> bool:
    """One listed size; False when the case's process can go no further."""
    try:
        choice = await choose(evaluation.desk, case, free_bytes=evaluation.free_bytes())
        if choice.case.name != case.name:
            return True
        opened = await evaluation.desk.open(case)
        (seed,) = evaluation.seeds(case, 1)
        stocked = await evaluation.desk.stock(case, seed)
    except (ReferenceFailed, TooLarge):
        return evaluation.desk.alive
    evaluation.cases_used.append(case.name)
    exchange = evaluation.exchange
    try:
        own = await exchange.load(evaluation.problem, case, opened)
        await exchange.make("inputs", stocked.specs)
        await exchange.share_state(case, opened, own)
        trial = await exchange.trial(case, seed)
    except CaseFailed as failed:
        trial = Trial(case=case.name, seed=seed, outputs=(), crash=failed.crash, origin=case.origin)
    evaluation.got.cases.append(case)
    evaluation.got.trials.append(trial)
    return exchange.spare.child.alive and trial.crash is None
