"""Owns whether one output, one trial and one case are right, and the sentence that says how they are not.

Never looks at times, and never softens: what is not within the tolerance, nor as exact as the reference, is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.facts import ErrorStats, Trial
from evalcore.jobs import CaseReport
from evalcore.problem import Case

_AS_EXACT = 1.5
"""A candidate this many times as far from the float64 key as the reference itself is 'as exact as torch'."""
_SANE_REFERENCE = 0.05
"""...unless the reference is this far from the key, over the output's magnitude: then it excuses nothing."""
_COARSE_RATIO = 2.0**-7
"""Errors of TF32 and fp16 arithmetic stay below this part of the row's largest value; faults of logic do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """How trials are read for this run."""

    blind: bool = False
    """The deciding tolerance let a probe (zeros, ...) pass: then ours must hold as well."""
    coarse: bool = False
    """The text uses TF32 or another lower precision on purpose or by default: its size of error is named, not wrong."""


def exactness(stats: ErrorStats) -> float | None:
    """The candidate's error over the reference's own, both against the float64 key; None where there is no such key."""
    if stats.exact_error is None or stats.reference_error is None:
        return None
    if stats.reference_error == 0:
        return 1.0 if stats.exact_error == 0 else math.inf
    return stats.exact_error / stats.reference_error


def as_exact(stats: ErrorStats) -> bool:
    """True where the candidate is as near to the float64 key as the reference is, and the reference is near itself."""
    ratio = exactness(stats)
    if ratio is None or stats.nonfinite_mismatch or stats.reference_error is None:
        return False
    sane = stats.reference_error <= _SANE_REFERENCE * (stats.magnitude or 0.0)
    return ratio <= _AS_EXACT and sane


def is_coarse(stats: ErrorStats) -> bool:
    """True for an error of the size that TF32 or fp16 arithmetic makes, everywhere and not in one region."""
    if stats.dtype not in ("float32", "float64") or stats.nonfinite_mismatch or stats.problem:
        return False
    spread_out = stats.region in (None, "everywhere", "scattered")
    return spread_out and (stats.max_rel_error or 0.0) <= _COARSE_RATIO and bool(stats.measured_out)


def output_right(stats: ErrorStats, how: Strictness) -> bool:
    """The rule for one output."""
    if stats.problem or stats.nonfinite_mismatch:
        return False
    passes = stats.out_of_tolerance == 0
    if passes and not (how.blind and stats.measured_out):
        return True
    if stats.tolerance_origin == "exact":
        return False
    excused = how.coarse and is_coarse(stats) and (passes or stats.tolerance_origin == "measured")
    return as_exact(stats) or excused


def trial_right(trial: Trial, how: Strictness) -> bool:
    """A trial is right when it ran, changed no input wrongly, and every output is right."""
    if trial.crash is not None or trial.mutated_inputs or not trial.outputs:
        return False
    return all(output_right(stats, how) for stats in trial.outputs)


def trial_sentence(trial: Trial, how: Strictness) -> str:
    """What is wrong with a trial that is not right: one clause, without a full stop."""
    if trial.crash is not None:
        return trial.crash.message
    for stats in trial.outputs:
        if not output_right(stats, how):
            words = stats_sentence(stats)
            return words if stats.output == "out" else f"{stats.output}: {words}"
    if trial.mutated_inputs:
        names = ", ".join(trial.mutated_inputs)
        return f"changed {names}, which the reference leaves alone"
    return "nothing was returned"


def stats_sentence(stats: ErrorStats) -> str:
    """'max abs error 0.013 at [3, 512], 0.4 % of elements out, all in the last 7 columns', or the structural fault."""
    if stats.problem:
        return stats.problem
    parts = []
    at = f" at {list(stats.worst_index)}" if stats.worst_index else ""
    if stats.nonfinite_mismatch:
        share = _percent(stats.nonfinite_mismatch, stats.elements)
        parts.append(f"{_number(stats.got)} instead of {_number(stats.want)}{at}, {share} of elements not finite")
    elif stats.tolerance_origin == "exact":
        parts.append(f"{_number(stats.got)} instead of {_number(stats.want)}{at}")
        parts.append(f"{_percent(stats.out_of_tolerance, stats.elements)} of elements differ")
    else:
        parts.append(f"max abs error {stats.max_abs_error:.2g}{at}")
        wrong = stats.out_of_tolerance or stats.measured_out or 0
        blind = "" if stats.out_of_tolerance else f" (the {stats.tolerance_origin}'s own tolerance would pass zeros too)"
        parts.append(f"{_percent(wrong, stats.elements)} of elements out{blind}")
    if stats.region and stats.region != "scattered":
        parts.append(stats.region)
    size = coarse_words(stats)
    if size:
        parts.append(size)
    return ", ".join(parts)


def coarse_words(stats: ErrorStats) -> str | None:
    """Names the arithmetic whose error this looks like, with both errors; None where it looks like none."""
    if not is_coarse(stats) or stats.exact_error is None or stats.reference_error is None:
        return None
    ratio = stats.max_rel_error or 0.0
    name = "bf16" if ratio > 2.0**-9 else "TF32 or fp16"
    return f"the size of error that {name} arithmetic makes ({stats.exact_error:.1g} vs {stats.reference_error:.1g})"


def case_report(case: Case, trials: Sequence[Trial], how: Strictness) -> CaseReport:
    """One case over its trials: counts, the worst error and where, and a remark on exactness.

    Outputs of timed calls decide like the others, but are no trials of their own: 'right 5/5' stays 5.
    """
    right = [trial_right(trial, how) for trial in trials]
    wrong = [trial for trial, good in zip(trials, right, strict=True) if not good]
    crashed = any(trial.crash is not None for trial in wrong)
    status = "skipped" if not trials else "right" if not wrong else "error" if crashed else "wrong"
    worst = _worst([stats for trial in trials for stats in trial.outputs])
    message = trial_sentence(wrong[0], how) if wrong else _exact_words(worst)
    counted = [good for trial, good in zip(trials, right, strict=True) if trial.kind != "timed"]
    return CaseReport(
        name=case.name,
        sizes=dict(case.sizes),
        origin=case.origin,
        status=status,
        trials=len(counted),
        trials_right=sum(counted),
        seeds=tuple(sorted({trial.seed for trial in trials})),
        max_abs_error=worst.max_abs_error if worst else None,
        max_rel_error=worst.max_rel_error if worst else None,
        out_ratio=worst.out_of_tolerance / worst.elements if worst and worst.elements else None,
        worst_index=worst.worst_index if worst else None,
        region=worst.region if worst else None,
        atol=worst.atol if worst else None,
        rtol=worst.rtol if worst else None,
        tolerance_origin=worst.tolerance_origin or None if worst else None,
        reference_error=worst.reference_error if worst else None,
        message=message,
    )


def _worst(outputs: Sequence[ErrorStats]) -> ErrorStats | None:
    def badness(stats: ErrorStats) -> tuple[bool, int, float, float]:
        share = stats.out_of_tolerance / stats.elements if stats.elements else 0.0
        return bool(stats.problem), stats.nonfinite_mismatch, share, stats.max_rel_error or 0.0

    return max(outputs, key=badness, default=None)


def _exact_words(stats: ErrorStats | None) -> str | None:
    ratio = exactness(stats) if stats is not None else None
    if ratio is None or not math.isfinite(ratio):
        return None
    if ratio <= _AS_EXACT:
        return f"as exact as torch, {ratio:.1f}x its error"
    return f"{ratio:.1f}x torch's own error"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    if share >= 10 or share == int(share):
        return f"{share:.0f} %"
    return f"{share:.1f} %" if share >= 0.1 else f"{part} of {whole}"


def _number(value: float | None) -> str:
    if value is None:
        return "nothing"
    if math.isnan(value):
        return "NaN"
    return f"{value:.6g}"
