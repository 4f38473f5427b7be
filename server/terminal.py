"""Owns how a verdict looks in a terminal: the card, colours, the progress line. Never decides what is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalcore.jobs import CaseReport, Measurement
from evalcore.results import Status
from server import words
from server.headline import headline

if TYPE_CHECKING:
    from server.cli_eval import Outcome

_COLOURS = {
    Status.CORRECT: "\033[32m",
    Status.INCORRECT: "\033[31m",
    Status.COMPILE_ERROR: "\033[31m",
    Status.ERROR: "\033[33m",
}
_END = "\033[0m"


def printable(text: str) -> str:
    """A foreign text without control characters: a kernel's message must not steer the terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def card(outcome: Outcome, *, colour: bool) -> str:
    """The readable card of an outcome."""
    if outcome.measurement is None:
        why = words.refusal_words(outcome.refusal) if outcome.refusal is not None else ""
        what = "does not compile" if outcome.place is not None else "could not be judged"
        return f"{outcome.kernel or outcome.file}: {what}\n{printable(why)}"
    return measurement_card(outcome.measurement, seq=outcome.seq, colour=colour)


def measurement_card(measurement: Measurement, *, seq: int, colour: bool) -> str:
    """The readable card of a measurement."""
    status = measurement.result.status
    title = f"{measurement.kernel}: {words.hint_label(measurement, fresh=True)}"
    lines = [f"{_COLOURS[status]}{printable(title)}{_END}" if colour else printable(title)]
    if measurement.result.error:
        lines += ["", printable(measurement.result.error)]
    if measurement.cases:
        lines += ["", *(_case(case) for case in measurement.cases)]
    lines += _figures(measurement)
    lines += [f"- {printable(flag.message)}" for flag in measurement.flags]
    lines += [f"{each.path}:{each.line}:{each.column}: {printable(each.message)}" for each in measurement.diagnostics]
    env = measurement.environment
    where = [env.card or "no GPU", f"torch {env.torch}", f"triton {env.triton}", f"Python {env.python}"]
    lines += ["", f"{' · '.join(where)} · {measurement.mode.value} · {measurement.format} · row {seq}"]
    return "\n".join(lines)


def _case(case: CaseReport) -> str:
    right = f"{case.trials_right}/{case.trials}" if case.trials else case.status
    parts = [f"  {printable(case.name)}", f"{case.status} {right}" if case.trials else right]
    if case.max_abs_error is not None:
        parts.append(f"max abs error {words.error_size(case.max_abs_error)}")
    if case.region:
        parts.append(printable(case.region))
    if case.runtime_us is not None:
        parts.append(words.duration(case.runtime_us))
    return "  ".join(parts)


def _figures(measurement: Measurement) -> list[str]:
    lines = []
    timing = measurement.timing or {}
    best = headline(measurement)
    if best is not None and measurement.result.runtime_us is not None:
        mine, theirs = words.duration(measurement.result.runtime_us), words.duration(best.opponent_us)
        n = f", n = {timing['n']}" if timing.get("n") else ""
        lines.append(f"device time {mine}, {best.against} {theirs} (timer {timing.get('timer', 'not named')}{n})")
    if measurement.regime:
        floor = f", floor {words.duration(measurement.floor_us)}" if measurement.floor_us is not None else ""
        lines.append(f"{measurement.regime}{floor}")
    return lines


def progress(kernel: str) -> Callable[[str, int, int], None]:
    """A line on stderr that is overwritten with each stage."""

    def on_stage(stage: str, done: int, total: int) -> None:
        sys.stderr.write(f"\r\033[K{words.running(kernel, stage, done, total)}")
        if stage == "judge":
            sys.stderr.write("\r\033[K")
        sys.stderr.flush()

    return on_stage
