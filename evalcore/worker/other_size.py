"""Owns one trial at another size than the one on the line: opened, stocked, loaded, run. Never decides what it means."""

from __future__ import annotations

from evalcore.facts import Trial
from evalcore.problem import Case
from evalcore.worker.desks import ReferenceFailed
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import CaseFailed, Exchange


async def trial_at(
    evaluation: Evaluation, exchange: Exchange, case: Case, *, kind: str = "correctness", run_s: float | None = None
) -> Trial | None:
    """Load the text at the sizes of `case` and run it once; the facts go into the evaluation.

    A run that ends badly is a Trial with a crash. None where the reference itself fails at that size.
    """
    try:
        opened = await evaluation.desk.open(case)
        (seed,) = evaluation.seeds(case, 1)
        stocked = await evaluation.desk.stock(case, seed)
    except ReferenceFailed:
        return None
    try:
        own = await exchange.load(evaluation.problem, case, opened)
        await exchange.make("inputs", stocked.specs)
        await exchange.share_state(case, opened, own)
        trial = await exchange.trial(case, seed, kind=kind, run_s=run_s)
    except CaseFailed as failed:
        trial = Trial(case=case.name, seed=seed, outputs=(), crash=failed.crash, kind=kind, origin=case.origin)
    evaluation.got.cases.append(case)
    evaluation.got.trials.append(trial)
    return trial
