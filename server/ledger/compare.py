"""Owns setting two rows beside each other: text, numbers, what the compiler made, and the job that decides again.

Never compares numbers of two cards, of two problems or of two evaluators: it says why not instead.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import Any

from evalcore.jobs import Cause, EvalJob, Mode, Refusal
from evalcore.problem import Problem
from server.ledger.columns import Row
from server.ledger.store import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of both sides, as plain values."""

    what: str
    """'runtime_us', 'speedup', 'registers softmax_kernel', ..."""
    a: Any
    b: Any
    ratio: float | None = None
    """a over b where both are numbers that may be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two candidates."""

    a: Row
    b: Row
    diff: str
    """Unified diff from a to b, '' where the texts are the same or not kept."""
    lines: tuple[Line, ...]
    obstacles: tuple[str, ...]
    """Why their times must not be compared; () where they may."""


def find(ledger: Ledger, name: str) -> Row:
    """A row by its seq ('12', '#12') or the newest one of a text by (the beginning of) its sha. Raises KeyError."""
    digits = name.removeprefix("#")
    if digits.isdigit() and len(digits) < 7:
        return ledger.row(int(digits))
    found = ledger.of_text(name) if len(name) >= 6 and set(name) <= set("0123456789abcdef") else []
    if not found:
        raise KeyError(f"the ledger has no row {name!r} (a seq, or at least six digits of a text's sha)")
    shas = {row.kernel_sha for row in found}
    if len(shas) > 1:
        raise KeyError(f"{name!r} is the beginning of {len(shas)} texts; give more digits")
    return found[0]


def compare(ledger: Ledger, a: Row, b: Row) -> Comparison:
    """Set b beside a."""
    obstacles = _obstacles(a, b)
    lines = [
        Line(what=what, a=getattr(a, what), b=getattr(b, what), ratio=None if obstacles else _ratio(a, b, what))
        for what in ("status", "runtime_us", "ref_runtime_us", "speedup", "floor_us", "regime", "mode", "card",
                     "driver", "torch", "triton", "author", "intent", "at")
    ]  # fmt: skip
    lines += _cases(a, b, comparable=not obstacles)
    lines += _kernels(a, b)
    return Comparison(a=a, b=b, diff=diff(ledger, a, b), lines=tuple(lines), obstacles=tuple(obstacles))


def diff(ledger: Ledger, a: Row, b: Row) -> str:
    """Unified diff of the two texts."""
    before, after = ledger.text(a.kernel_sha), ledger.text(b.kernel_sha)
    if before is None or after is None or before == after:
        return ""
    names = (f"#{a.seq} {a.kernel_sha[:12]}", f"#{b.seq} {b.kernel_sha[:12]}")
    made = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return "\n".join(made) + "\n"


def _obstacles(a: Row, b: Row) -> list[str]:
    checks = (
        (a.uuid != b.uuid, f"other card: {a.card or 'no GPU'} and {b.card or 'no GPU'}"),
        (a.problem_sha != b.problem_sha, "other problem: reference, inputs or cases differ"),
        (a.evaluator_sha != b.evaluator_sha, "other evaluator: judged by different sources"),
        ((a.driver, a.torch, a.triton) != (b.driver, b.torch, b.triton), "other driver, torch or triton"),
    )
    return [words for differs, words in checks if differs]


def _ratio(a: Row, b: Row, what: str) -> float | None:
    if what not in ("runtime_us", "ref_runtime_us", "speedup"):
        return None
    left, right = getattr(a, what), getattr(b, what)
    return left / right if left and right else None


def _cases(a: Row, b: Row, *, comparable: bool) -> list[Line]:
    left = {case["name"]: case for case in a.plain.get("cases", ())}
    right = {case["name"]: case for case in b.plain.get("cases", ())}
    lines = []
    for name in [*left, *(name for name in right if name not in left)]:
        times = [side.get(name, {}).get("runtime_us") for side in (left, right)]
        states = [side.get(name, {}).get("status") for side in (left, right)]
        ratio = times[0] / times[1] if comparable and times[0] and times[1] else None
        lines.append(Line(what=f"case {name}", a=_case(states[0], times[0]), b=_case(states[1], times[1]), ratio=ratio))
    return lines


def _case(state: str | None, time_us: float | None) -> str | None:
    if state is None:
        return None
    return state if time_us is None else f"{state}, {time_us:.2f} us"


def _kernels(a: Row, b: Row) -> list[Line]:
    """What the compiler made of each: registers, spills, shared memory, warps, stages."""
    left = {kernel["name"]: kernel for kernel in a.plain.get("kernels", ())}
    right = {kernel["name"]: kernel for kernel in b.plain.get("kernels", ())}
    lines = []
    for name in [*left, *(name for name in right if name not in left)]:
        for what in ("registers", "spill_bytes", "shared_bytes", "warps", "stages", "theoretical_occupancy", "config"):
            values = [side.get(name, {}).get(what) for side in (left, right)]
            if values[0] != values[1]:
                lines.append(Line(what=f"{what} {name}", a=values[0], b=values[1]))
    return lines


def again(ledger: Ledger, a: Row, b: Row, *, job_id: str, device: str = "auto") -> EvalJob | Refusal:
    """The job that times a against b, interleaved, on the card at hand. Its measurement's `ab` is the answer."""
    if a.problem_sha != b.problem_sha or a.kernel != b.kernel:
        return _refusal("other_problem", "The two rows are of different problems", "Choose two rows of one kernel.")
    problem = ledger.problem(a.problem_sha)
    texts = ledger.text(a.kernel_sha), ledger.text(b.kernel_sha)
    if problem is None or texts[0] is None or texts[1] is None:
        words = "The ledger has not kept what is needed to run these rows again"
        return _refusal("not_kept", words, "Open the file in the editor and save it: newer rows keep their problem.")
    return EvalJob(
        job_id=job_id, cause=Cause.COMMAND, mode=Mode.FAST, problem=with_text(problem, texts[0]), kernel=a.kernel,
        kernel_sha=a.kernel_sha, device=device, trusted=a.author == "person",
        compare_with=with_text(problem, texts[1]).candidate.text,
    )  # fmt: skip


def with_text(problem: Problem, text: str) -> Problem:
    """The problem with another text of the candidate's file; what the binding had put below the old one is kept."""
    candidate = problem.candidate
    added = candidate.text.rfind(f"\n\n\ndef {candidate.entry}(") if candidate.entry.startswith("odyssey_") else -1
    whole = text.rstrip() + candidate.text[added:] if added >= 0 else text
    return dataclasses.replace(problem, candidate=dataclasses.replace(candidate, text=whole))


def _refusal(code: str, message: str, remedy: str) -> Refusal:
    return Refusal(code=code, message=message, remedy=remedy)
