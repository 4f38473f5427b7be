"""Owns the trials of gradients, for problems where they are part of the task. They decide like the other trials."""

from __future__ import annotations

from typing import Any

from evalcore.problem import TensorSpec
from evalcore.worker.desks import Opened
from evalcore.worker.evaluation import Evaluation

BACKWARD_TRIALS = 2


async def backward_trials(evaluation: Evaluation) -> None:
    """Gradients with respect to inputs that ask for them and to parameters that both sides have by one name."""
    case = evaluation.line
    opened = await evaluation.desk.open(case)
    how = wanted(evaluation.specs, opened, evaluation.parameters)
    if not how["inputs"] and not how["parameters"]:
        return
    for seed in evaluation.seeds(case, BACKWARD_TRIALS, "backward"):
        with evaluation.stages.timed("backward"):
            trial = await evaluation.exchange.trial(case, seed, kind="backward", backward={**how, "seed": seed})
        evaluation.got.trials.append(trial)
        if trial.crash is not None:
            evaluation.got.crash = trial.crash
            return


def wanted(specs: tuple[TensorSpec, ...], opened: Opened, own: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Which gradients: flat positions of inputs, names of parameters."""
    floats = ("float", "bfloat")
    inputs = [index for index, spec in enumerate(specs) if spec.is_tensor and spec.requires_grad]
    shared = [spec for spec in opened.state if own.get(spec.name) == spec.shape and spec.dtype.startswith(floats)]
    if not inputs and not shared:
        inputs = [index for index, spec in enumerate(specs) if spec.is_tensor and spec.dtype.startswith(floats)]
    return {"inputs": inputs, "parameters": [spec.name for spec in shared if spec.requires_grad]}
