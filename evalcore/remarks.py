"""Owns the flags: what a person should see beside a verdict. Never changes the verdict itself."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.correctness import (
    Strictness,
    as_exact,
    coarse_words,
    exactness,
    is_coarse,
    trial_right,
    trial_sentence,
)
from evalcore.facts import ErrorStats, Trial
from evalcore.jobs import Flag
from evalcore.run_facts import RunFacts

_PROBE_WORDS = {
    "zeros": "zeros",
    "mean": "the mean",
    "stale": "an old output",
    "permuted": "shuffled rows",
    "truncated": "half an answer",
}


def remarks(facts: RunFacts, how: Strictness, *, right: bool) -> tuple[Flag, ...]:
    """Every flag for this run, most important first, each code once."""
    found: list[Flag] = []
    if right:
        found += _precision(facts, how)
        found += _no_kernel(facts)
    found += _degenerate(facts)
    found += _sizes(facts)
    if right:
        found += _other_sizes(facts, how)
        found += _repeat(facts)
        found += _side_effects(facts)
    found += _screen(facts)
    found += _disturbed(facts)
    found += facts.notes
    unique: dict[str, Flag] = {}
    for flag in found:
        unique.setdefault(flag.code, flag)
    return tuple(unique.values())


def decoy(facts: RunFacts, how: Strictness) -> bool:
    """True where a run with all own kernels made to do nothing still gave the right answer.

    Not where zeros or old outputs pass anyway: a check that cannot tell, cannot accuse.
    """
    ablated = [trial for trial in facts.trials if trial.kind == "ablated"]
    telling = all(probe.get("caught", True) or probe.get("caught_by_measured") for probe in facts.probes)
    return bool(ablated) and telling and all(trial_right(trial, how) for trial in ablated)


def _outputs(facts: RunFacts, *kinds: str) -> list[ErrorStats]:
    return [stats for trial in facts.trials if trial.kind in kinds for stats in trial.outputs]


def _precision(facts: RunFacts, how: Strictness) -> list[Flag]:
    outputs = _outputs(facts, "correctness", "timed")
    coarse = [stats for stats in outputs if is_coarse(stats) and stats.measured_out]
    if coarse:
        words = coarse_words(coarse[0]) or "less exact than its dtype allows"
        return [Flag(code="lower-precision", message=f"lower precision than {coarse[0].dtype}: {words}")]
    loose = [stats for stats in outputs if stats.measured_out and not as_exact(stats) and not stats.out_of_tolerance]
    if loose:
        ratio = exactness(loose[0])
        times = f"{ratio:.0f}x torch's own error" if ratio is not None and ratio < 1e9 else "more error than torch"
        return [
            Flag(code="lower-precision", message=f"within the {loose[0].tolerance_origin}'s tolerance, but {times}")
        ]
    excused = [stats for stats in outputs if stats.out_of_tolerance and as_exact(stats)]
    if excused:
        ratio = exactness(excused[0]) or 1.0
        words = (
            f"as exact as torch, {ratio:.1f}x its error, though outside the {excused[0].tolerance_origin}'s tolerance"
        )
        return [Flag(code="as-exact-as-torch", message=words)]
    return []


def _no_kernel(facts: RunFacts) -> list[Flag]:
    if facts.launched is False:
        return [
            Flag(code="no-custom-kernel", message="no kernel of its own was launched: the time is that of a library")
        ]
    missing = [name for name in facts.problem.kernels if facts.kernels and not _ran(facts, name)]
    if missing and facts.launched is not None:
        return [Flag(code="kernel-not-launched", message=f"{', '.join(missing)} was not launched in any trial")]
    return []


def _ran(facts: RunFacts, name: str) -> bool:
    return any(kernel.name == name and kernel.launches != 0 for kernel in facts.kernels)


def _degenerate(facts: RunFacts) -> list[Flag]:
    passed = [probe for probe in facts.probes if not probe.get("caught", True)]
    if not passed:
        return []
    what = _PROBE_WORDS.get(str(passed[0].get("probe")), str(passed[0].get("probe")))
    words = f"this check cannot tell {what} from the answer"
    if all(probe.get("caught_by_measured") for probe in passed):
        words += "; a tolerance relative to the output's size decides as well"
    return [Flag(code="degenerate-problem", message=words)]


def _sizes(facts: RunFacts) -> list[Flag]:
    flags: list[Flag] = []
    if facts.crash is not None and facts.crash.kind == "cannot_interpret":
        return flags  # nothing was run, at no size
    reduced = [case for case in facts.cases if case.origin == "reduced"]
    if reduced:
        names = "; ".join(case.name for case in reduced)
        flags.append(Flag(code="reduced-sizes", message=f"judged at reduced sizes ({names}), not timed there"))
    if facts.interpreted:
        words = "run by Triton's interpreter on the CPU: right or wrong, but no time, no races, no resource limits"
        flags.append(Flag(code="interpreted", message=words))
    return flags


def _other_sizes(facts: RunFacts, how: Strictness) -> list[Flag]:
    flags = []
    failing = [trial for trial in facts.trials if trial.kind == "neighbour" and not trial_right(trial, how)]
    if failing:
        smallest = min(failing, key=lambda trial: _size(facts, trial))
        words = f"wrong at {smallest.case}: {trial_sentence(smallest, how)}"
        flags.append(Flag(code="fails-at-other-sizes", message=words))
    ranges = [trial for trial in facts.trials if trial.kind == "range" and not trial_right(trial, how)]
    if ranges:
        words = f"wrong for inputs {ranges[0].case}: {trial_sentence(ranges[0], how)}"
        flags.append(Flag(code="fails-for-other-values", message=words))
    return flags


def _size(facts: RunFacts, trial: Trial) -> int:
    sizes: Sequence[tuple[str, int]] = next((case.sizes for case in facts.cases if case.name == trial.case), ())
    return sum(value for _name, value in sizes)


def _repeat(facts: RunFacts) -> list[Flag]:
    differing = [stats for stats in _outputs(facts, "repeat") if stats.max_abs_error or stats.nonfinite_mismatch]
    if not differing:
        return []
    worst = max(differing, key=lambda stats: stats.max_abs_error or 0.0)
    words = f"two runs on the same inputs differ by up to {worst.max_abs_error:.2g}: not deterministic between blocks"
    return [Flag(code="not-deterministic", message=words)]


def _side_effects(facts: RunFacts) -> list[Flag]:
    flags = []
    if facts.threads_left:
        words = f"{facts.threads_left} thread(s) of its own still ran after it had returned"
        flags.append(Flag(code="threads-left", message=words))
    notes = [stats.note for stats in _outputs(facts, "correctness") if stats.note]
    if notes:
        flags.append(Flag(code="strides-differ", message=f"output {notes[0]}"))
    return flags


def _screen(facts: RunFacts) -> list[Flag]:
    """Hints only: plain notes are no business of a person who wrote honest code."""
    hits = [hit for hit in facts.screen if hit.gate or hit.proof]
    return [Flag(code=f"screen-{hit.rule}", message=f"line {hit.line}: {hit.message}") for hit in hits]


def _disturbed(facts: RunFacts) -> list[Flag]:
    reasons: set[str] = set()
    for samples in facts.samples:
        reasons |= {reason for reason in samples.throttle if reason not in ("", "none", "gpu_idle")}
        if samples.foreign_processes:
            reasons.add(f"{samples.foreign_processes} other process(es) on the card")
    if not reasons:
        return []
    return [Flag(code="disturbed", message=f"the card was disturbed: {', '.join(sorted(reasons))}")]
