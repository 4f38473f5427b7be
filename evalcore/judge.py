"""Owns the verdict: facts in, one Verdict out. Pure: no clock, no IO, no randomness, no tensors.

Same facts, same verdict, on any machine, years later. The order of the rules is the order of `judge`: what could not
run, what deceives, what is wrong, what cannot be true, and only then what is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evalcore.correctness import Strictness, case_report, trial_right, trial_sentence
from evalcore.facts import Crash, Trial
from evalcore.jobs import CaseReport, Mode, Reason
from evalcore.profile_data import Timed, timed
from evalcore.remarks import decoy, remarks
from evalcore.results import EvalResult, compile_error, correct, error, incorrect
from evalcore.roofline import impossible_us
from evalcore.run_facts import OutsideClock, RunFacts, Verdict

__all__ = ["OutsideClock", "RunFacts", "Verdict", "judge"]

_DECIDE = ("correctness", "timed", "backward", "config")
"""Kinds of trials that a verdict hangs on; neighbours and ranges only warn."""
_CRASH_REASONS = {
    "timeout": Reason.TIMEOUT,
    "out_of_memory": Reason.OUT_OF_MEMORY,
    "cannot_interpret": Reason.NOT_JUDGEABLE,
}
_OUTSIDE_RATIO = 2.0
_OUTSIDE_SLACK_US = 50.0
"""A call timed from outside may take this much longer than inside (a message's way, the scheduler) and still agree."""


def judge(facts: RunFacts) -> Verdict:
    """The verdict on one text."""
    how = strictness(facts)
    reports = _reports(facts, how)
    ending = _could_not_run(facts) or _deceives(facts, how) or _wrong(facts, how)
    if ending is None:
        time = timed(facts)
        ending = _cannot_be(facts, time)
        if ending is None:
            return _right(facts, how, reports, time)
        result, reason = ending
        return Verdict(
            result=result,
            reason=reason,
            flags=remarks(facts, how, right=False),
            cases=reports,
            regime=time.regime,
            floor_us=time.floor_us,
            timing=time.timing,
            clock=_clock(facts),
        )
    result, reason = ending
    return Verdict(result=result, reason=reason, flags=remarks(facts, how, right=False), cases=reports)


def strictness(facts: RunFacts) -> Strictness:
    """How this run's trials are read: fixed by the probes and the text, not by the candidate's answers."""
    rules = {hit.rule for hit in facts.screen}
    return Strictness(
        blind=any(not probe.get("caught", True) for probe in facts.probes),
        coarse=bool(rules & {"tf32-dot", "sets-precision"}),
    )


def _reports(facts: RunFacts, how: Strictness) -> tuple[CaseReport, ...]:
    reports = []
    for case in facts.cases:
        wanted = ("neighbour",) if case.origin == "neighbour" else _DECIDE
        trials = [trial for trial in facts.trials if trial.case == case.name and trial.kind in wanted]
        reports.append(case_report(case, trials, how))
    return tuple(reports)


Ending = tuple[EvalResult, "Reason | None"]


def _could_not_run(facts: RunFacts) -> Ending | None:
    if facts.reference_crash is not None:
        words = f"the reference itself fails on its own inputs: {facts.reference_crash.message}"
        return error(words), Reason.NOT_JUDGEABLE
    if facts.crash is not None and facts.crash.kind in ("compile", "out_of_resources"):
        return compile_error(facts.crash.message), None
    return None


def _deceives(facts: RunFacts, how: Strictness) -> Ending | None:
    """Proofs for everyone, gates for a model's text, and replaced functions whoever wrote it."""
    for hit in facts.screen:
        if hit.proof or (hit.gate and not facts.trusted):
            return error(f"line {hit.line}: {hit.message}"), Reason.CHEATING
    if facts.called_reference:
        return error(f"called the reference ({facts.problem.reference.entry}) instead of computing"), Reason.CHEATING
    if facts.tampered:
        return error(f"replaced {', '.join(facts.tampered)} while it ran"), Reason.CHEATING
    if decoy(facts, how):
        return error("the right answer comes out even when its own kernels do nothing: a decoy"), Reason.CHEATING
    if facts.launched is False and any(hit.rule == "except-fallback" for hit in facts.screen) and facts.crash is None:
        words = "its kernel never ran: the call failed and an except branch answered with torch"
        return error(words), Reason.CHEATING
    return None


def _wrong(facts: RunFacts, how: Strictness) -> Ending | None:
    decisive = [trial for trial in facts.trials if trial.kind in _DECIDE]
    wrong = [trial for trial in decisive if not trial_right(trial, how)]
    given_wrong = [trial for trial in wrong if trial.origin != "reduced"]
    if given_wrong:
        return _wrong_trial(facts, given_wrong[0], decisive, how)
    if facts.crash is not None:
        return _crashed(facts.crash, reduced=_all_reduced(facts))
    if wrong:
        return _wrong_reduced(facts, wrong[0], decisive, how)
    if facts.canaries:
        return incorrect(f"wrote outside {facts.canaries[0]}"), None
    if not decisive:
        return error("nothing was run"), Reason.NOT_JUDGEABLE
    return None


def _wrong_trial(facts: RunFacts, trial: Trial, decisive: Sequence[Trial], how: Strictness) -> Ending:
    if trial.crash is not None:
        return _crashed(trial.crash, reduced=False)
    words = trial_sentence(trial, how)
    label = _case_words(facts, trial)
    if trial.kind == "timed":
        words = f"right in the trials, wrong in a timed call: {words}"
    elif trial.kind == "backward":
        words = f"gradient: {words}"
    elif trial.kind == "config":
        words = f"with the config {trial.case}: {words}"
    else:
        words += _first_was_right(trial, decisive, how)
    return incorrect(f"{words}{label}"), None


def _first_was_right(trial: Trial, decisive: Sequence[Trial], how: Strictness) -> str:
    """Right on the first call and wrong later is state kept between calls, and worth saying."""
    before = [each for each in decisive[: decisive.index(trial)] if each.case == trial.case]
    if before and all(trial_right(each, how) for each in before):
        count = "call" if len(before) == 1 else f"{len(before)} calls"
        return f" (right on the first {count}: state kept between calls?)"
    return ""


def _wrong_reduced(facts: RunFacts, trial: Trial, decisive: Sequence[Trial], how: Strictness) -> Ending:
    given_right = any(each.origin == "given" and trial_right(each, how) for each in decisive)
    if given_right:
        words = f"right at the given sizes, but not at reduced ones{_case_words(facts, trial)}"
    else:
        words = f"wrong at reduced sizes{_case_words(facts, trial)}; the given sizes cannot be run here"
    return error(f"{words}: {trial_sentence(trial, how)}"), Reason.NOT_JUDGEABLE


def _all_reduced(facts: RunFacts) -> bool:
    return bool(facts.cases) and all(case.origin == "reduced" for case in facts.cases)


def _crashed(crash: Crash, *, reduced: bool) -> Ending:
    if crash.kind in ("compile", "out_of_resources"):
        return compile_error(crash.message), None
    reason = _CRASH_REASONS.get(crash.kind, Reason.CRASH)
    message = crash.message
    if crash.kind == "exit" and not crash.exit_code:
        message = "ended its process with exit code 0 before the judging was done"
    if reduced and crash.kind == "exception":
        return error(f"at reduced sizes: {message}"), Reason.NOT_JUDGEABLE
    return error(message), reason


def _case_words(facts: RunFacts, trial: Trial) -> str:
    many = len({case.name for case in facts.cases if case.origin != "neighbour"}) > 1
    if trial.origin == "reduced" or many:
        return f" ({trial.case})"
    return ""


def _cannot_be(facts: RunFacts, time: Timed) -> Ending | None:
    """A right answer with a time that physics or the outside clock forbids is not a result."""
    runtime = time.runtime_us
    if runtime is None:
        return None
    if facts.outside is not None:
        if not facts.outside.outputs_right:
            return incorrect("wrong in a launch timed from outside"), None
        outside_us = facts.outside.seconds * 1e6 / max(facts.outside.launches, 1)
        inside_us = max(runtime, time.call_us or 0.0)
        if time.call_us is not None and outside_us > _OUTSIDE_RATIO * inside_us + _OUTSIDE_SLACK_US:
            words = f"claims {inside_us:.3g} us a call, but timed from outside a call takes {outside_us:.3g} us"
            return error(words), Reason.CHEATING
    work = dict(facts.work).get(time.case)
    least = impossible_us(work, facts.ceilings) if work is not None and facts.ceilings is not None else None
    if least is not None and runtime < least:
        words = f"{runtime:.3g} us is less than the {least:.3g} us that this card's memory needs for the bytes alone"
        return error(f"{words}: not all of the work was done or timed"), Reason.CHEATING
    return None


def _right(facts: RunFacts, how: Strictness, reports: tuple[CaseReport, ...], time: Timed) -> Verdict:
    return Verdict(
        result=correct(runtime_us=time.runtime_us, ref_runtime_us=time.ref_runtime_us, profile=time.profile),
        reason=None,
        flags=remarks(facts, how, right=True),
        cases=tuple(_with_times(report, facts) for report in reports),
        regime=time.regime,
        floor_us=time.floor_us,
        profile=time.profile,
        timing=time.timing,
        clock=_clock(facts) if time.runtime_us is not None else "",
    )


def _with_times(report: CaseReport, facts: RunFacts) -> CaseReport:
    figures = timed(facts, case=report.name)
    return replace(report, runtime_us=figures.runtime_us, ref_runtime_us=figures.ref_runtime_us)


def _clock(facts: RunFacts) -> str:
    return "bounded" if facts.outside is not None else "inside"


def needs_outside_clock(mode: Mode, trusted: bool) -> bool:
    """A model's text always, a person's in thorough mode."""
    return mode is Mode.THOROUGH or not trusted
