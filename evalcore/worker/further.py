"""Owns the look further once a text is right: decoys, other sizes, other values, repeats. Never the verdict's own trials.

A process that dies here leaves a remark at most: the trials that decide were right before.
"""

from __future__ import annotations

from dataclasses import replace

from evalcore.facts import Trial
from evalcore.problem import Case
from evalcore.shapes import neighbours
from evalcore.worker.call_on import listed_sizes
from evalcore.worker.desks import ReferenceFailed, Untransferable
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import CaseFailed
from evalcore.worker.other_size import trial_at

_QUICK_S = 0.05
"""Where one trial takes less than this under the interpreter, neighbours are tried on a save as well."""
_MOST_CONFIGS = {"fast": 2, "thorough": 24}
_MOST_NEIGHBOURS = {"fast": 2, "thorough": 8}
_RUN_S = 10.0
TWISTS = ("scaled by 100", "scaled by 0.01", "shifted by 10", "with NaN", "with infinities")
"""What is done to floating inputs in trials of kind 'range'."""


async def look_further(evaluation: Evaluation) -> None:
    """Trials beyond the deciding ones, as far as the mode and the time allow. Never raises for a case's sake."""
    try:
        await _ablated(evaluation)
        if evaluation.thorough:
            await _repeated(evaluation)
            await _twisted(evaluation)
        await _configs(evaluation)
        await listed_sizes(evaluation)
        await _neighbours(evaluation)
    except (CaseFailed, ReferenceFailed, Untransferable):
        return


async def _ablated(evaluation: Evaluation) -> None:
    """Once with its own kernels made to do nothing: a right answer then proves a decoy."""
    learned = evaluation.got.learned
    if learned is None or not any(kernel.launches for kernel in learned.kernels):
        return
    if any(trial.kind == "ablated" for trial in evaluation.got.trials):
        return
    (seed,) = evaluation.seeds(evaluation.line, 1, "ablated")
    with evaluation.stages.timed("ablated"):
        trial = await evaluation.exchange.trial(evaluation.line, seed, kind="ablated", run_s=_RUN_S, ablate=True)
    if trial.crash is None:
        evaluation.got.trials.append(trial)


async def _configs(evaluation: Evaluation) -> None:
    """Each config of an autotuned kernel by itself: all in thorough mode, on a save those that are new.

    A config that does not compile or needs too much is none that a tuner would take: no fault of the answer.
    """
    learned = evaluation.got.learned
    if learned is None:
        return
    for kernel, configs in learned.configs:
        known = evaluation.tools.remembered.configs(evaluation.sha, kernel)
        fresh = [config for config in configs if evaluation.thorough or (known and config not in known)]
        chosen = learned.winners.get(kernel)
        wanted = [config for config in fresh if config != chosen or evaluation.thorough]
        most = _MOST_CONFIGS[evaluation.job.mode.value]
        for config, seed in zip(wanted[:most], evaluation.seeds(evaluation.line, most, kernel), strict=False):
            with evaluation.stages.timed("configs"):
                trial = await evaluation.exchange.trial(evaluation.line, seed, kind="config", force=[kernel, config])
            if trial.crash is None:
                evaluation.got.trials.append(replace(trial, case=config))
            elif not evaluation.exchange.spare.child.alive:
                return
        evaluation.tools.remembered.keep_configs(evaluation.sha, kernel, configs)


async def _repeated(evaluation: Evaluation) -> None:
    """The same inputs twice: the referee compares the two outputs with each other."""
    (seed,) = evaluation.seeds(evaluation.line, 1, "repeat")
    first = await evaluation.exchange.trial(evaluation.line, seed, kind="repeat", keep=True)
    second = await evaluation.exchange.trial(evaluation.line, seed, kind="repeat")
    if first.crash is None and second.crash is None:
        evaluation.got.trials.append(second)


async def _twisted(evaluation: Evaluation) -> None:
    """Inputs scaled, shifted, or with NaN and infinities in them."""
    for twist, seed in zip(TWISTS, evaluation.seeds(evaluation.line, len(TWISTS), "range"), strict=True):
        with evaluation.stages.timed("range"):
            trial = await _tried(evaluation, evaluation.line, seed, twist)
        if trial is not None:
            evaluation.got.trials.append(trial)


async def _tried(evaluation: Evaluation, case: Case, seed: int, twist: str) -> Trial | None:
    try:
        return await evaluation.exchange.trial(case, seed, kind="range", run_s=_RUN_S, twist=twist)
    except ReferenceFailed:
        return None


async def _neighbours(evaluation: Evaluation) -> None:
    """Other sizes, n-1, n+1, a prime, 1: where the reference still runs, a failure there is a warning."""
    mode = evaluation.job.mode.value
    first = evaluation.stages.report().get("trials", 1.0) / 4
    if not evaluation.thorough and (evaluation.on_card or first > _QUICK_S):
        return
    for case in neighbours(evaluation.problem.inputs, evaluation.line, most=_MOST_NEIGHBOURS[mode]):
        with evaluation.stages.timed("neighbours"):
            if not await _neighbour(evaluation, case):
                return


async def _neighbour(evaluation: Evaluation, case: Case) -> bool:
    """One neighbour; False when the case's process can go no further."""
    exchange = evaluation.exchange
    evaluation.cases_used.append(case.name)
    trial = await trial_at(evaluation, exchange, case, kind="neighbour", run_s=_RUN_S)
    if trial is None:
        return evaluation.desk.alive
    return exchange.spare.child.alive and (trial.crash is None or not evaluation.on_card)
