"""Owns FlashInfer-Bench: the candidate becomes a Solution of a trace set, 'flashinfer-bench run' judges it, its trace
lines are read.

workspace.toml: folder is a trace set (definitions/, workloads/), definition = "...", language = "triton", entry =
"kernel.py::run". Each workload is a case; a solution is right when it passed all of them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from server.evaluators.reading import CaseReading, Reading, last_lines
from server.evaluators.running import Plan, Ran
from server.evaluators.task import Task, TaskError

NAME = "odyssey_candidate"
MODULE = "from flashinfer_bench.cli.main import cli; cli()"
WRONG = frozenset(("INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE", "REWARD_HACK"))


def plan(task: Task, text: str) -> Plan:
    """Write the solution, run it alone, keep its traces."""
    definition = task.options.get("definition")
    if not isinstance(definition, str):
        raise TaskError("evaluator.definition is missing")
    entry = str(task.options.get("entry", "kernel.py::run"))
    solution = {
        "name": NAME, "definition": definition, "author": "odyssey", "description": "",
        "spec": {"language": str(task.options.get("language", "triton")), "target_hardware": ["cuda"],
                 "entry_point": entry, "dependencies": [],
                 "destination_passing_style": bool(task.options.get("destination_passing", False))},
        "sources": [{"path": entry.split("::", 1)[0], "content": text}],
    }  # fmt: skip
    argv = ("{python}", "-c", MODULE, "run", "--local", ".", "--definitions", definition, "--solutions", NAME,
            "--save-results", *task.arguments)  # fmt: skip
    return Plan(argv=argv, files={f"solutions/{NAME}.json": json.dumps(solution)}, results="traces/**/*.jsonl")


def read(task: Task, ran: Ran) -> Reading:
    """By the traces of our solution."""
    if ran.timed_out:
        return Reading(status="error", message=f"did not end within {task.timeout_s:g} s", timed_out=True)
    traces = [trace for _, text in ran.results for trace in _traces(text) if trace.get("solution") == NAME]
    if not traces:
        return Reading(status="error", message=f"exit code {ran.exit_code}: {last_lines(ran.stderr or ran.stdout)}")
    cases = tuple(_case(trace) for trace in traces)
    states = [str(trace["evaluation"].get("status")) for trace in traces]
    bad = next((case for case in cases if not case.right), None)
    if bad is None:
        return Reading(status="correct", runtime_us=_mean([case.runtime_us for case in cases]),
                       ref_runtime_us=_mean([case.ref_runtime_us for case in cases]), cases=cases)  # fmt: skip
    status = "compile_error" if "COMPILE_ERROR" in states else "incorrect" if WRONG & set(states) else "error"
    return Reading(status=status, message=f"{bad.name}: {bad.message}", cases=cases, timed_out="TIMEOUT" in states)


def _traces(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("evaluation"), dict):
            found.append(value)
    return found


def _case(trace: dict[str, Any]) -> CaseReading:
    evaluation, workload = trace["evaluation"], trace.get("workload") or {}
    performance = evaluation.get("performance") or {}
    right = evaluation.get("status") == "PASSED"
    log = last_lines(str(evaluation.get("log") or ""), 3)
    sizes = ", ".join(f"{name}={value}" for name, value in (workload.get("axes") or {}).items())
    return CaseReading(
        name=sizes or str(workload.get("uuid")), right=right, runtime_us=_us(performance.get("latency_ms")),
        ref_runtime_us=_us(performance.get("reference_latency_ms")),
        message=None if right else f"{evaluation.get('status')} {log}".strip(),
    )  # fmt: skip


def _us(milliseconds: Any) -> float | None:
    return milliseconds * 1000 if isinstance(milliseconds, (int, float)) and milliseconds > 0 else None


def _mean(times_us: list[float | None]) -> float | None:
    """Geometric, over workloads that were all timed."""
    known = [value for value in times_us if value]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known and len(known) == len(times_us) else None
