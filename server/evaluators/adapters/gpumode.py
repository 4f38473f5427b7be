"""Owns GPU MODE's eval.py: 'python eval.py MODE TESTS' with a log of 'key: value' lines on descriptor POPCORN_FD.

workspace.toml may name: mode = "test" | "benchmark" | "leaderboard" | "private", and tests = [{...}] as in task.yml.
Exit 0 passed, 112 a check failed, 113 a bad tests file; times there are nanoseconds.
"""

from __future__ import annotations

from typing import Any

from server.evaluators.reading import CaseReading, Reading, last_lines
from server.evaluators.running import Plan, Ran
from server.evaluators.task import Task

TESTS_FILE = "odyssey_tests.txt"
VALIDATION_FAILED = 112


def plan(task: Task, text: str) -> Plan:
    """Write the tests file where the workspace lists tests; else the arguments name one of the evaluator's."""
    tests = task.options.get("tests")
    script, mode = task.script or "eval.py", str(task.options.get("mode", "test"))
    environ = {"POPCORN_SEED": str(task.options["seed"])} if "seed" in task.options else {}
    if not isinstance(tests, list):
        return Plan(argv=("{python}", script, mode, *task.arguments), environ=environ, channel="POPCORN_FD")
    lines = "".join("; ".join(f"{name}: {value}" for name, value in test.items()) + "\n" for test in tests)
    return Plan(
        argv=("{python}", script, mode, TESTS_FILE), files={TESTS_FILE: lines}, environ=environ, channel="POPCORN_FD"
    )


def read(task: Task, ran: Ran) -> Reading:
    """By the log, and by the exit code where the log does not reach its end."""
    if ran.timed_out:
        return Reading(status="error", message=f"did not end within {task.timeout_s:g} s", timed_out=True)
    log = dict(line.split(": ", 1) for line in ran.channel.splitlines() if ": " in line)
    cases = tuple(_case(log, kind, number) for kind in ("test", "benchmark") for number in range(_count(log, kind)))
    said = last_lines(ran.stderr or ran.stdout)
    if log.get("check") == "pass" and ran.exit_code == 0 and all(case.right for case in cases):
        times = [case.runtime_us for case in cases if case.runtime_us is not None]
        return Reading(status="correct", runtime_us=_geometric_mean(times), cases=cases)
    wrong = [case for case in cases if not case.right]
    if log.get("check") == "fail" or ran.exit_code == VALIDATION_FAILED or wrong:
        first = wrong[0] if wrong else None
        words = f"{first.name}: {first.message}" if first is not None else said
        return Reading(status="incorrect", message=words or "the check failed", cases=cases)
    return Reading(status="error", message=f"exit code {ran.exit_code}: {said}", cases=cases)


def _count(log: dict[str, str], kind: str) -> int:
    count = log.get(f"{kind}-count", "0")
    return min(int(count), 1000) if count.isdigit() else 0


def _case(log: dict[str, str], kind: str, number: int) -> CaseReading:
    get: Any = lambda name: log.get(f"{kind}.{number}.{name}")  # noqa: E731
    mean = get("mean")
    right = get("status") == "pass" if kind == "test" else mean is not None
    return CaseReading(
        name=get("spec") or f"{kind} {number}",
        right=right,
        runtime_us=float(mean) / 1000 if mean is not None else None,
        message=get("error") or (None if right else "no result"),
    )


def _geometric_mean(times_us: list[float]) -> float | None:
    """GPU MODE ranks by it where a task has several benchmarks."""
    if not times_us:
        return None
    product = 1.0
    for value in times_us:
        product *= value ** (1 / len(times_us))
    return product
