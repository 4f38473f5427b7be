"""Owns KernelBench's own evaluator, scripts/run_and_check.py: candidate in as kernel_src_path, verdict from its output.

workspace.toml: folder is a checkout of KernelBench, or `readable` names one and script stands in it; arguments carry
ref_arch_src_path=... (or level= and problem_id=). Its exit code is 0 whatever the verdict; times are milliseconds.
"""

from __future__ import annotations

import re

from server.evaluators.reading import Reading, last_lines
from server.evaluators.running import Plan, Ran
from server.evaluators.task import Task

RESULT = re.compile(r"^\[Eval\] Kernel eval result: (.*)$", re.MULTILINE)
KERNEL_TIME = re.compile(r"^\[Timing\] Custom Kernel exec time: ([0-9.eE+-]+) ms$", re.MULTILINE)
EAGER_TIME = re.compile(r"^\[Timing\] PyTorch Reference Eager exec time: ([0-9.eE+-]+) ms$", re.MULTILINE)


def plan(task: Task, text: str) -> Plan:
    """Local reference and local run, unless the arguments say otherwise."""
    given = {argument.split("=", 1)[0] for argument in task.arguments}
    usual = {"ref_origin": "local", "eval_mode": "local", "kernel_src_path": task.candidate}
    arguments = [f"{name}={value}" for name, value in usual.items() if name not in given]
    script = task.script or "scripts/run_and_check.py"
    return Plan(argv=("{python}", script, *arguments, *task.arguments), environ={"PYTHONPATH": "src:."})


def read(task: Task, ran: Ran) -> Reading:
    """By its result line: the exit code says nothing."""
    if ran.timed_out:
        return Reading(status="error", message=f"did not end within {task.timeout_s:g} s", timed_out=True)
    found = RESULT.findall(ran.stdout)
    if not found:
        return Reading(status="error", message=f"exit code {ran.exit_code}: {last_lines(ran.stderr or ran.stdout)}")
    result = found[-1]
    if not re.match(r"compiled=True\b", result):
        return Reading(status="compile_error", message=result)
    if not re.match(r"compiled=True correctness=True\b", result):
        return Reading(status="incorrect", message=result)
    return Reading(
        status="correct", runtime_us=_milliseconds(KERNEL_TIME, ran), ref_runtime_us=_milliseconds(EAGER_TIME, ran)
    )


def _milliseconds(pattern: re.Pattern[str], ran: Ran) -> float | None:
    """Its -1.0 means 'not measured'."""
    found = pattern.findall(ran.stdout)
    return float(found[-1]) * 1000 if found and float(found[-1]) > 0 else None
