"""Owns what follows right trials while the case still lives: time on a card, then a look further. Never judges."""

from __future__ import annotations

from evalcore.judge import judge
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.further import look_further
from evalcore.worker.timed_part import time_line


async def beyond(evaluation: Evaluation) -> None:
    """Time the case on the line; where the verdict is still right, look at what may be wrong beside it."""
    if evaluation.on_card and evaluation.line.timed:
        await time_line(evaluation)
        await evaluation.learn()
        if not judge(evaluation.facts()).result.correct:
            return
    await look_further(evaluation)
