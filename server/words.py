"""Owns the sentences and number formats that a person sees in hints, lenses, status and messages. Never LSP types.

The hover card is built in `server.card` from the same words. A number that was not measured has no words at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.jobs import CaseReport, Measurement, Mode, Reason, Refusal
from evalcore.results import Status
from server.headline import Headline, headline
from skills.agents.diagnosis import diagnose

OLDER = "older text: "
INTERPRETED = "(interpreted, no GPU)"

_REASONS = {
    Reason.TIMEOUT: "did not finish",
    Reason.CRASH: "crashed",
    Reason.OUT_OF_MEMORY: "out of memory",
    Reason.CHEATING: "not accepted",
    Reason.NOT_JUDGEABLE: "not judgeable here",
}

_STATUS_WORDS = {
    Status.CORRECT: "correct",
    Status.INCORRECT: "wrong",
    Status.COMPILE_ERROR: "does not compile",
    Status.ERROR: "error",
}


def duration(us: float) -> str:
    """Microseconds at three digits: '0.84 us', '34.4 us', '2.10 ms', '1.35 s'."""
    if us < 0:
        return "-" + duration(-us)
    for limit, factor, unit in ((1e3, 1.0, "us"), (1e6, 1e-3, "ms")):
        if us < limit * 0.9995:
            return f"{_three_digits(us * factor)} {unit}"
    return f"{_three_digits(us * 1e-6)} s"


def seconds(value: float) -> str:
    """Wall-clock seconds: '0.34 s', '12.1 s', '2 min 05 s'."""
    if value < 59.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    return f"{int(value + 0.5) // 60} min {int(value + 0.5) % 60:02d} s"


def ratio(value: float) -> str:
    """A speedup at three digits: '2.31x', '14.0x', '0.87x'."""
    return f"{_three_digits(value)}x"


def error_size(value: float) -> str:
    """An error: '0.013', '3.2e-05'."""
    return f"{value:.2g}"


def share(value: float) -> str:
    """A share 0..1 as per cent: '0.4 %', '97 %'."""
    percent = value * 100
    if percent != 0 and percent < 0.095:
        return "under 0.1 %"
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


def size_bytes(value: int) -> str:
    """Bytes for a person: '512 B', '1.5 GiB'."""
    size = float(value)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _three_digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def first_sentence(text: str, limit: int = 120) -> str:
    """The first line of a message, up to its first full stop, cut where it is long."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    head = line.split(". ")[0].rstrip(".")
    return head if len(head) <= limit else head[: limit - 3].rstrip() + "..."


def plural(count: int, noun: str) -> str:
    """'1 case', '3 cases'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def right_of(cases: Sequence[CaseReport]) -> str:
    """'right 5/5', over the cases that decide (the given or reduced ones); '' where no trial was run."""
    deciding = [case for case in cases if case.origin in ("given", "reduced") and case.trials]
    trials = sum(case.trials for case in deciding)
    right = sum(case.trials_right for case in deciding)
    return f"right {right}/{trials}" if trials else ""


def reduced_of(cases: Sequence[CaseReport]) -> str:
    """Names the sizes where a problem was judged smaller than given: 'at reduced sizes 64x128'."""
    names = [case.name for case in cases if case.origin == "reduced" and case.status != "skipped"]
    return f"at reduced sizes {names[0]}" if names else ""


def hint_label(measurement: Measurement, *, fresh: bool) -> str:
    """The words at the line's end. One line, no Markdown."""
    words = _verdict_label(measurement)
    return words if fresh else OLDER + words


def _verdict_label(measurement: Measurement) -> str:
    status = measurement.result.status
    if status is Status.CORRECT:
        return _correct_label(measurement)
    if status is Status.INCORRECT:
        return _wrong_label(measurement)
    if status is Status.COMPILE_ERROR:
        return "does not compile"
    what = _REASONS.get(measurement.reason, "error") if measurement.reason else "error"
    detail = first_sentence(measurement.result.error or "", 90)
    return f"{what}: {detail}" if detail else what


def _correct_label(measurement: Measurement) -> str:
    parts = []
    best = headline(measurement)
    if best is not None:
        parts.append(f"{ratio(best.ratio)} {best.against}")
    if measurement.result.runtime_us is not None:
        parts.append(duration(measurement.result.runtime_us))
    right = right_of(measurement.cases) or "right"
    reduced = reduced_of(measurement.cases)
    if reduced:
        right += f" {reduced}"
    if measurement.environment.interpreted:
        right += f" {INTERPRETED}"
    parts.append(right)
    if measurement.ab and measurement.ab.get("verdict") in ("faster", "slower", "same"):
        parts.append(ab_words(measurement.ab))
    return " · ".join(parts)


def _wrong_label(measurement: Measurement) -> str:
    if measurement.reason is Reason.CHEATING:
        return "not accepted: " + first_sentence(measurement.result.error or "", 90)
    right = right_of(measurement.cases)
    if right and all(case.trials == case.trials_right for case in measurement.cases if case.trials):
        return "wrong: " + first_sentence(
            measurement.result.error or "", 100
        )  # not in the trials: in a timed call, ...
    parts = [f"wrong ({right})" if right else "wrong"]
    worst = max(
        (case for case in measurement.cases if case.max_abs_error is not None and case.status == "wrong"),
        key=lambda case: case.out_ratio or 0.0,
        default=None,
    )
    if worst is not None:
        if worst.atol is None or (worst.max_abs_error or 0.0) > worst.atol:  # else what is wrong is no number at all
            parts.append(f"max abs error {error_size(worst.max_abs_error or 0.0)}")
        if worst.region:
            parts.append(worst.region)
    elif measurement.result.error:
        parts.append(first_sentence(measurement.result.error, 80))
    return " · ".join(parts)


def ab_words(ab: dict[str, object]) -> str:
    """The comparison with the text before: '1.08x the last save', 'same as the last save'."""
    verdict, times = ab.get("verdict"), ab.get("ratio")
    if verdict == "same" or not isinstance(times, (int, float)):
        return f"{verdict} as the last save" if verdict == "same" else f"{verdict} than the last save"
    return f"{verdict} than the last save ({ratio(float(times))})"


def verdict_words(measurement: Measurement) -> str:
    """The verdict in one or two words, for tables."""
    return status_words(measurement.result.status, measurement.reason)


def status_words(status: Status, reason: Reason | None) -> str:
    """A status with its reason in one or two words."""
    if reason is Reason.CHEATING or (status is Status.ERROR and reason is not None):
        return _REASONS[reason]
    return _STATUS_WORDS[status]


def interval(bounds: object) -> str:
    """'34.1 to 34.9 us' of a pair of microseconds; '' for anything else."""
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
        return ""
    if not all(isinstance(each, (int, float)) for each in bounds):
        return ""
    return f"{duration(float(bounds[0]))} to {duration(float(bounds[1]))}"


def lens_titles(format_name: str | None, case_name: str | None, *, cases: int) -> tuple[str, str, str, str, str]:
    """Evaluate, Thorough, History, Propose and the bound format with its shape; the same five from first paint to last.

    Only the last one's width changes, so that no title moves. `format_name` is '' for a kernel that nothing binds, None
    while that is not known.
    """
    bound = "finding the reference" if format_name is None else format_name or "no reference"
    if case_name:
        bound += f": {case_name}"
        if cases > 1:
            bound += f" (1 of {cases})"
    return "Evaluate", "Thorough", "History", "Propose", bound


def running(kernel: str, stage: str, done: int, total: int) -> str:
    """A job's progress: 'softmax: trials 3/5'."""
    stage_words = {
        "queued": "waiting",
        "screen": "reading the text",
        "build": "building",
        "trials": "trials",
        "timing": "timing",
        "profile": "profiling",
        "judge": "judging",
    }.get(stage, stage)
    return f"{kernel}: {stage_words} {done}/{total}" if total else f"{kernel}: {stage_words}"


def critic(measurement: Measurement) -> str:
    """Why the kernel is not faster and what to try, in one sentence; '' where nothing was measured."""
    found = diagnose(measurement)
    return f"{found.specific_issue}; {found.recommendation}" if found is not None else ""


def refusal_words(refusal: Refusal) -> str:
    """A refusal with its remedy, one paragraph."""
    message = refusal.message.rstrip()
    if message and message[-1] not in ".!?":
        message += "."
    return f"{message} {refusal.remedy}".strip()


def no_reference(kernel: str) -> str:
    """The hint on a kernel that nothing is compared with."""
    return (
        f"{kernel} is compared with nothing, so nothing is known about it. Write `# odyssey: reference=...` above it, "
        "compare it with a torch expression by torch.allclose in this file, or take the quick fix, which writes a "
        "starter reference beside it."
    )


def headline_words(best: Headline | None) -> str:
    """'2.31x eager', or '' where nothing was timed."""
    return f"{ratio(best.ratio)} {best.against}" if best else ""


REUSED = "Reused: exactly this text was measured before, with the same problem, evaluator and environment."


def mode_of(name: str | None) -> Mode | None:
    """'fast' or 'thorough' as a Mode; None for what the settings say."""
    return {"fast": Mode.FAST, "thorough": Mode.THOROUGH}.get(name or "")


def unrecorded(fault: Exception) -> Refusal:
    """Why a verdict that was reached is not shown."""
    return Refusal(
        code="ledger_unusable",
        message=f"A verdict was reached but the ledger cannot keep it, so it is not shown ({fault})",
        remedy="Make the folder .odyssey writable, or free disk space, and save again.",
    )
