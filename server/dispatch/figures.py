"""Owns getting a candidate's figures on every case: judged thoroughly, and case by case where one was not timed.

Every measurement goes into the ledger first. Never compares and never decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evalcore.admission import Candidate, CaseFigures, complexity
from evalcore.fingerprint import sha256_text
from evalcore.jobs import CaseReport, Cause, EvalJob, Measurement, Mode, Refusal
from evalcore.problem import Problem
from server.host import Host
from server.ledger.compare import with_text
from server.ledger.store import Ledger
from skills.ports import Evaluator


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Everything that a dispatch works with."""

    host: Host
    ledger: Ledger
    evaluator: Evaluator
    problem: Problem
    kernel: str
    file: str
    device: str = "auto"
    say: Callable[[str], None] = lambda words: None


@dataclass(slots=True)
class Known:
    """One text and what was measured about it."""

    text: str
    author: str
    candidate: Candidate
    seqs: list[int] = field(default_factory=list)
    newest: Measurement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One job's wishes."""

    text: str
    mode: Mode
    case: str | None = None
    against: str | None = None
    author: str = "person"
    intent: str = ""
    parents: tuple[str, ...] = ()
    renamed: bool = False
    """True for a text whose kernels do not have the names that the problem expects: a dispatch module."""


async def judge(desk: Desk, ask: Ask) -> tuple[Measurement, int] | Refusal:
    """Judge once, append, return (measurement, seq)."""
    problem = with_text(desk.problem, ask.text)
    if ask.renamed:
        problem = dataclasses.replace(problem, kernels=())
    job = EvalJob(
        job_id=desk.host.new_id(), cause=Cause.COMMAND, mode=ask.mode, problem=problem, kernel=desk.kernel,
        kernel_sha=sha256_text(ask.text), device=desk.device, case=ask.case, trusted=ask.author == "person",
        compare_with=None if ask.against is None else with_text(desk.problem, ask.against).candidate.text,
    )  # fmt: skip
    found = await desk.evaluator.evaluate(job)
    if isinstance(found, Refusal):
        return found
    made = dataclasses.replace(
        found, measured_at=desk.host.now_utc(), author=ask.author, parents=ask.parents or found.parents
    )
    return made, desk.ledger.append(made, text=ask.text, intent=ask.intent, problem=desk.problem)


async def measure(desk: Desk, ask: Ask, cases: Sequence[str]) -> Known | Refusal:
    """All figures of a text: one thorough job, then one for each case that it left untimed."""
    candidate = Candidate(sha=sha256_text(ask.text), complexity=complexity(ask.text), cases={})
    known = Known(text=ask.text, author=ask.author, candidate=candidate)
    figures: dict[str, CaseFigures] = {}
    refused = await _judge_into(desk, ask, known, figures)
    if refused is not None:
        return refused
    timed_here = known.newest is not None and known.newest.environment.card is not None
    for case in cases if timed_here else ():
        if all(each.right for each in figures.values()) and (case not in figures or figures[case].speedup is None):
            refused = await _judge_into(desk, dataclasses.replace(ask, case=case, mode=Mode.FAST), known, figures)
            if refused is not None:
                return refused
    known.candidate = dataclasses.replace(known.candidate, cases=figures)
    return known


async def _judge_into(desk: Desk, ask: Ask, known: Known, figures: dict[str, CaseFigures]) -> Refusal | None:
    """One job; what it measured goes into `known` and `figures`."""
    desk.say(f"judging {known.candidate.sha[:12]}" + (f" on {ask.case}" if ask.case else ""))
    found = await judge(desk, ask)
    if isinstance(found, Refusal):
        return found
    known.newest, seq = found
    known.seqs.append(seq)
    _take(figures, known.newest, ask.case)
    return None


def _take(figures: dict[str, CaseFigures], measured: Measurement, asked: str | None) -> None:
    """A wrong answer anywhere stays; times are taken from the first job, and later only for the case asked for."""
    for report in measured.cases:
        if report.status == "skipped":
            continue
        new, old = _figures(report), figures.get(report.name)
        timed = asked in (None, report.name) and new.speedup is not None and old is not None and old.right
        if old is None or not new.right or timed:
            figures[report.name] = new


def _figures(report: CaseReport) -> CaseFigures:
    return CaseFigures(
        right=report.status == "right", runtime_us=report.runtime_us, ref_runtime_us=report.ref_runtime_us
    )


def candidates_of(desk: Desk, wanted: Sequence[str] = ()) -> Mapping[str, Ask]:
    """Texts to try: those asked for, else each that was right here and is not buried. By sha."""
    nodes = desk.ledger.map(desk.file, desk.kernel).nodes
    found: dict[str, Ask] = {}
    for node in nodes:
        asked = any(node.sha.startswith(each) for each in wanted)
        alive = node.status == "correct" and node.buried is None
        if not (asked if wanted else alive):
            continue
        row = desk.ledger.row(node.seq)
        text = desk.ledger.text(node.sha)
        if text is not None and (asked or not row.foreign):
            found[node.sha] = Ask(text=text, mode=Mode.THOROUGH, author=node.author, intent="measured for a dispatch")
    return found
