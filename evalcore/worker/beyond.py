"""Owns what follows right trials: time on a card, else more calls, then a look further. Never judges."""

from __future__ import annotations

from evalcore.judge import judge
from evalcore.worker.call_on import call_on
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.further import look_further
from evalcore.worker.stalled import sample_stalls
from evalcore.worker.timed_part import time_line


async def beyond(evaluation: Evaluation) -> None:
    """Time the case on the line; where the verdict is still right, look at what may be wrong beside it."""
    if evaluation.on_card and evaluation.line.timed:
        await time_line(evaluation)
        await evaluation.learn()
    else:
        await call_on(evaluation)
    if judge(evaluation.facts()).result.correct:
        await look_further(evaluation)
        if evaluation.thorough and evaluation.on_card:
            await sample_stalls(evaluation)
