"""Owns the calls after the trials: as many as timing would make where nothing is timed, and the other listed sizes.

A candidate that stops working after the trials, or that is right at one listed size only, is wrong. Never a warning:
what fails here decides.
"""

from __future__ import annotations

import contextlib

from evalcore.problem import Case
from evalcore.worker.desks import ReferenceFailed, Untransferable
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import CaseFailed, Exchange
from evalcore.worker.other_size import trial_at
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


def _others(evaluation: Evaluation) -> list[Case]:
    """The other sizes that the problem lists, smallest first: formats list the largest first.

    None on a save of an autotuned kernel on a card: another size is another key, and all configs are compiled for it.
    """
    tuned = "autotune" in evaluation.problem.candidate.text
    if tuned and evaluation.on_card and not evaluation.thorough:
        return []
    tried = {case.name for case in evaluation.got.cases}
    return [case for case in evaluation.problem.cases if case.name not in tried and case.origin == "given"][::-1]


async def listed_sizes(evaluation: Evaluation) -> None:
    """One trial at each of the other sizes that the problem lists, as far as they fit here and the mode allows."""
    if evaluation.second is not None and not evaluation.thorough:
        return
    begun = evaluation.station.loop.time()
    for index, case in enumerate(_others(evaluation)[: _LISTED[evaluation.job.mode.value]]):
        spent = evaluation.station.loop.time() - begun
        if index and spent > _SECONDS[evaluation.job.mode.value]:
            return
        with evaluation.stages.timed("listed"):
            if not await _listed(evaluation, evaluation.exchange, case):
                return


async def alongside(evaluation: Evaluation) -> None:
    """On a card: one other listed size in a second case, while the first one compiles. Only where a case is ready.

    The second case stays, for a comparison with the text before: it is the same text's, and it has a context open.
    """
    others = _others(evaluation)
    if not others and evaluation.job.compare_with is None:
        return
    spare = await evaluation.tools.spares.take_soon(evaluation.device, evaluation.problem)
    if spare is None:
        return
    evaluation.second = Exchange(evaluation.desk, spare, evaluation.job.limits)
    if others:
        with evaluation.stages.timed("listed"), contextlib.suppress(CaseFailed, ReferenceFailed, Untransferable):
            if await _listed(evaluation, evaluation.second, others[0]):
                await _ablated_there(evaluation, evaluation.second, others[0])


async def _ablated_there(evaluation: Evaluation, exchange: Exchange, case: Case) -> None:
    """The second case with its own kernels made to do nothing: a right answer proves a decoy at any size."""
    (seed,) = evaluation.seeds(case, 1, "ablated")
    trial = await exchange.trial(case, seed, kind="ablated", ablate=True)
    if trial.crash is None:
        evaluation.got.trials.append(trial)


async def _listed(evaluation: Evaluation, exchange: Exchange, case: Case) -> bool:
    """One listed size; False when the case's process can go no further."""
    try:
        choice = await choose(evaluation.desk, case, free_bytes=evaluation.free_bytes())
    except (ReferenceFailed, TooLarge):
        return evaluation.desk.alive
    if choice.case.name != case.name:
        return True
    trial = await trial_at(evaluation, exchange, case)
    if trial is None:
        return evaluation.desk.alive
    return exchange.spare.child.alive and trial.crash is None
