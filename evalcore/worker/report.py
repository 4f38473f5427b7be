"""Owns the Measurement: facts and verdict of one evaluation put together. Never changes either."""

from __future__ import annotations

import os
import platform
from typing import Any

from evalcore.facts import Crash
from evalcore.fingerprint import sha256_text
from evalcore.jobs import Diagnostic, Environment, EvalJob, Measurement
from evalcore.judge import judge
from evalcore.results import Status
from evalcore.run_facts import RunFacts, Verdict
from evalcore.worker.environment import clean
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.station import Station

_SHOWN_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS")


def measurement(evaluation: Evaluation, *, ab: dict[str, Any] | None = None) -> Measurement:
    """Judge the facts and write everything down."""
    facts = evaluation.facts()
    verdict = judge(facts)
    job, learned = evaluation.job, evaluation.got.learned
    files = {**dict(evaluation.got.reference_files), **dict(learned.files if learned is not None else ())}
    return Measurement(
        job_id=job.job_id,
        cause=job.cause,
        mode=job.mode,
        file=job.problem.candidate.path,
        kernel=job.kernel,
        kernel_sha=job.kernel_sha or sha256_text(job.problem.candidate.text),
        problem_id=job.problem.id,
        problem_sha=evaluation.sha,
        format=job.problem.format,
        result=verdict.result,
        reason=verdict.reason,
        environment=environment(evaluation.station, evaluation.device, evaluation.got.flags, clock=verdict.clock),
        flags=verdict.flags,
        cases=verdict.cases,
        diagnostics=diagnostics(job, facts, verdict),
        samples=facts.samples,
        kernels=facts.kernels,
        timing=verdict.timing,
        regime=verdict.regime,
        floor_us=verdict.floor_us,
        probes=facts.probes,
        opponents=facts.opponents,
        ab=ab,
        stages=evaluation.stages.report(),
        dependencies=tuple(sorted(files.items())),
        seed=evaluation.seed,
    )


def environment(station: Station, device: str, flags: dict[str, Any], *, clock: str = "") -> Environment:
    """Where a measurement was taken."""
    card = station.card(device)
    shown = {name: value for name, value in clean(os.environ).items() if _is_shown(name)}
    return Environment(
        card=card["name"] if card is not None else None,
        uuid=card["uuid"] if card is not None else None,
        driver=card["driver"] if card is not None else None,
        torch=station.stack.torch,
        triton=station.stack.triton,
        python=platform.python_version(),
        interpreted=device == "cpu",
        evaluator_sha=station.evaluator[0],
        evaluator_md5=station.evaluator[1],
        isolation=station.isolation,
        flags={**flags, **shown},
        host=platform.node(),
        hostile_clock=clock,
    )


def _is_shown(name: str) -> bool:
    return name in _SHOWN_VARIABLES or name.startswith("TRITON_")


def diagnostics(job: EvalJob, facts: RunFacts, verdict: Verdict) -> tuple[Diagnostic, ...]:
    """The verdict's message at the place that caused it, where there is one: a crash's, else the first cheat's."""
    if verdict.result.status is Status.CORRECT or verdict.result.error is None:
        return ()
    crash = _deciding_crash(facts)
    if crash is not None and crash.place is not None:
        place = crash.place
        return (
            Diagnostic(
                path=place.path,
                line=place.line,
                column=place.column,
                end_line=place.end_line,
                end_column=place.end_column,
                severity="error",
                code=crash.kind.replace("_", "-"),
                message=verdict.result.error,
            ),
        )
    hits = [hit for hit in facts.screen if hit.proof or (hit.gate and not facts.trusted)]
    if verdict.reason is not None and verdict.reason.value == "cheating" and hits:
        hit = hits[0]
        return (
            Diagnostic(
                path=job.problem.candidate.path,
                line=hit.line,
                column=hit.column,
                severity="error",
                code=hit.rule,
                message=hit.message,
            ),
        )
    return ()


def _deciding_crash(facts: RunFacts) -> Crash | None:
    found = [facts.reference_crash, facts.crash, *(trial.crash for trial in facts.trials)]
    return next((crash for crash in found if crash is not None), None)
