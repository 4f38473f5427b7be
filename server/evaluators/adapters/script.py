"""Owns any Python script with an exit code: 0 is right, 1 is wrong, anything else is an error. Numbers by patterns.

workspace.toml may name: wrong_codes = [1], and patterns whose first group is a number: runtime_us, runtime_ms,
ref_runtime_us, ref_runtime_ms, speedup.
"""

from __future__ import annotations

import re

from server.evaluators.reading import Reading, last_lines
from server.evaluators.running import Plan, Ran
from server.evaluators.task import Task, TaskError


def plan(task: Task, text: str) -> Plan:
    """python SCRIPT ARGUMENTS."""
    if not task.script:
        raise TaskError("evaluator.script is missing")
    return Plan(argv=("{python}", task.script, *task.arguments))


def read(task: Task, ran: Ran) -> Reading:
    """By exit code."""
    if ran.timed_out:
        return Reading(status="error", message=f"did not end within {task.timeout_s:g} s", timed_out=True)
    said = last_lines(ran.stdout + "\n" + ran.stderr)
    if ran.exit_code == 0:
        return Reading(
            status="correct",
            runtime_us=_number(task, ran.stdout, "runtime"),
            ref_runtime_us=_number(task, ran.stdout, "ref_runtime"),
            speedup=_pattern(task, ran.stdout, "speedup"),
        )
    if ran.exit_code in tuple(task.options.get("wrong_codes", (1,))):
        return Reading(status="incorrect", message=said or f"exit code {ran.exit_code}")
    how = f"exit code {ran.exit_code}" if ran.exit_code > 0 else f"ended by signal {-ran.exit_code}"
    return Reading(status="error", message=f"{how}: {said}" if said else how)


def _number(task: Task, text: str, name: str) -> float | None:
    found = _pattern(task, text, f"{name}_us")
    if found is not None:
        return found
    found = _pattern(task, text, f"{name}_ms")
    return found * 1000 if found is not None else None


def _pattern(task: Task, text: str, name: str) -> float | None:
    """The last match: scripts print their summary last. Raises TaskError for a pattern that is none."""
    pattern = task.options.get(name)
    if not isinstance(pattern, str):
        return None
    try:
        found = re.findall(pattern, text)
        return float(found[-1] if isinstance(found[-1], str) else found[-1][0]) if found else None
    except (re.error, ValueError, IndexError) as problem:
        raise TaskError(f"evaluator.{name} = {pattern!r}: {problem}") from problem
