"""Owns asking for the machine code (SASS) of two candidates and setting it side by side. Needs the card; runs confined.

Never compares times: code that looks shorter is not faster until an A/B says so.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcore.jobs import Refusal
from evalcore.problem import Case, Problem
from evalcore.wire import encode
from server.evaluators.reading import last_lines
from server.evaluators.running import Confinement, Plan, run
from server.evaluators.task import Task

MOST_DIFF_LINES = 6000
"""Longer listings are compared by their instruction counts alone: a diff of them says nothing to a person."""
TIMEOUT_S = 180.0
OPCODE = re.compile(r"(?:^|[\s:;])(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]+(?:\.[A-Z0-9_]+)*)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One compiled kernel that was launched."""

    name: str
    launches: int
    sass: str


async def code_of(problem: Problem, case: Case, where: Confinement) -> tuple[Code, ...] | Refusal:
    """The kernels that the problem's candidate launches on a case."""
    device = "cuda:0" if where.cuda else "cpu"
    request = json.dumps({"problem": encode(problem), "case": encode(case), "device": device})
    entry = where.host.package_root / "evalcore" / "_entry"
    argv = ("{python}", str(entry), "--role", "assembly", "request.json", "answer.json")
    plan = Plan(argv=argv, files={"request.json": request}, results="answer.json")
    with tempfile.TemporaryDirectory(prefix="odyssey-assembly-") as empty:
        folder = Path(empty)
        readable = tuple({Path(problem.candidate.path).parent, Path(problem.reference.path).parent})
        task = Task(workspace=folder, adapter="", folder=folder, script="", candidate="candidate.txt",
                    readable=readable, timeout_s=TIMEOUT_S)  # fmt: skip
        ran = await run(task, plan, "", where)
    answer: dict[str, Any] = json.loads(ran.results[0][1]) if ran.results else {}
    if "kernels" not in answer:
        words = answer.get("error") or last_lines(ran.stderr, 3) or f"exit code {ran.exit_code}"
        return Refusal(code="no_assembly", message=f"The machine code could not be had: {words}",
                       remedy="Judge the text first: odyssey eval names the cause.")  # fmt: skip
    return tuple(Code(**{key: each[key] for key in ("name", "launches", "sass")}) for each in answer["kernels"])


def side_by_side(a: tuple[Code, ...], b: tuple[Code, ...]) -> dict[str, Any]:
    """Instruction counts of both, and a diff of the listings where they are short enough to be read."""
    counts = [sum((opcodes(code.sass) for code in side), Counter()) for side in (a, b)]
    names = sorted({*counts[0], *counts[1]}, key=lambda name: -abs(counts[0][name] - counts[1][name]))
    changed = [{"opcode": name, "a": counts[0][name], "b": counts[1][name]} for name in names
               if counts[0][name] != counts[1][name]]  # fmt: skip
    lists = [[line for code in side for line in (f"{code.name}:", *code.sass.splitlines())] for side in (a, b)]
    short = max(map(len, lists)) <= MOST_DIFF_LINES
    diff = "\n".join(difflib.unified_diff(lists[0], lists[1], "a", "b", lineterm="")) if short else None
    return {"instructions": [sum(each.values()) for each in counts], "changed": changed, "diff": diff}


def opcodes(sass: str) -> Counter[str]:
    """How often each instruction stands in a listing, modifiers left off: HGMMA, LDG, STS, BRA, ..."""
    found: Counter[str] = Counter()
    for line in sass.splitlines():
        text = re.sub(r"/\*.*?\*/|//.*", "", line).strip().rstrip(";")
        match = OPCODE.search(text) if text and not text.startswith(".") else None
        if match:
            found[match[1].split(".")[0]] += 1
    return found


def with_candidate(problem: Problem, text: str) -> Problem:
    """The problem as the child gets it: its own candidate text, nothing that only an editor needs."""
    from server.ledger.compare import with_text

    return dataclasses.replace(with_text(problem, text), notes=())
