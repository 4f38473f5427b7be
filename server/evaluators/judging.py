"""Owns turning an unmodified evaluator's run into a Measurement. Its verdict is the only one; ours stands beside it.

Never overrules it and never fills a figure that it did not give.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from evalcore import results
from evalcore.fingerprint import sha256_text
from evalcore.jobs import CaseReport, Cause, Environment, Flag, Measurement, Mode, Reason, Refusal
from evalcore.results import EvalResult, Status
from server.evaluators.reading import CaseReading, Reading
from server.evaluators.registry import ADAPTERS
from server.evaluators.running import Confinement, Ran, run
from server.evaluators.task import Task, TaskError, changed, digests
from server.ledger.store import Ledger

MOST_MESSAGE = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The card that the evaluator saw, as the caller knows it. All None on a machine without one."""

    name: str | None = None
    uuid: str | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be judged."""

    file: str
    kernel: str
    text: str
    author: str = "person"
    parents: tuple[str, ...] = ()


async def judge(task: Task, asked: Asked, where: Confinement, card: Card) -> Measurement | Refusal:
    """Run the task's evaluator on a text. A changed evaluator is refused; a broken description is a refusal too."""
    adapter = ADAPTERS.get(task.adapter)
    if adapter is None:
        return _refusal(f"unknown adapter {task.adapter!r}", f"Use one of: {', '.join(ADAPTERS)}.")
    try:
        refusal = changed(task, where.host.state_dir())
        if refusal is not None:
            return refusal
        before = digests(task)
        ran = await run(task, adapter.plan(task, asked.text), asked.text, where)
        reading = adapter.read(task, ran)
    except (TaskError, OSError) as problem:
        return _refusal(str(problem), "Mend [evaluator] in workspace.toml.")
    if digests(task) != before:
        return changed(task, where.host.state_dir()) or _refusal("The evaluator changed while it ran", "Run it again.")
    return measurement(task, asked, (ran, reading), where, card)


def measurement(task: Task, asked: Asked, outcome: tuple[Ran, Reading], where: Confinement, card: Card) -> Measurement:
    """The row."""
    ran, reading = outcome
    md5, sha256 = digests(task)
    environment = Environment(
        card=card.name, uuid=card.uuid, driver=card.driver, torch=ran.torch, triton=ran.triton, python=ran.python,
        interpreted=False, evaluator_sha=sha256, evaluator_md5=md5, isolation=("process", *ran.held),
        flags={"exit_code": ran.exit_code, "seconds": round(ran.seconds, 3), "arguments": list(task.arguments)},
        hostile_clock="evaluator",
    )  # fmt: skip
    about = (
        f"{sha256}\n{task.adapter}\n{task.script}\n{task.arguments}\n{sorted(task.options.items())}\n{task.candidate}"
    )
    return Measurement(
        job_id=where.host.new_id(), cause=Cause.COMMAND, mode=Mode.THOROUGH, file=asked.file, kernel=asked.kernel,
        kernel_sha=sha256_text(asked.text), problem_id=f"{task.adapter}:{task.script or task.candidate}",
        problem_sha=hashlib.sha256(about.encode()).hexdigest(), format=f"evaluator/{task.adapter}",
        result=_result(reading), reason=_reason(ran, reading), environment=environment,
        cases=tuple(_case(case) for case in reading.cases), author=asked.author, parents=asked.parents,
        measured_at=where.host.now_utc(), flags=_flags(ran),
    )  # fmt: skip


def _result(reading: Reading) -> EvalResult:
    message = (reading.message or "the evaluator gave no reason")[-MOST_MESSAGE:]
    if reading.status == "correct":
        made = results.correct(runtime_us=reading.runtime_us, ref_runtime_us=reading.ref_runtime_us)
        return made if made.speedup is not None else replace(made, speedup=reading.speedup)
    if reading.status == "incorrect":
        return results.incorrect(message)
    return results.compile_error(message) if reading.status == "compile_error" else results.error(message)


def _reason(ran: Ran, reading: Reading) -> Reason | None:
    if reading.timed_out:
        return Reason.TIMEOUT
    return Reason.CRASH if reading.status == "error" and ran.exit_code < 0 else None


def _case(case: CaseReading) -> CaseReport:
    return CaseReport(
        name=case.name, sizes={}, origin="given", status="right" if case.right else "wrong", trials=1,
        trials_right=int(case.right), runtime_us=case.runtime_us, ref_runtime_us=case.ref_runtime_us,
        message=case.message,
    )  # fmt: skip


def _flags(ran: Ran) -> tuple[Flag, ...]:
    missing = [layer for layer in ("landlock", "netns") if layer not in ran.held]
    words = f"the evaluator ran without {' and '.join(missing)}: this machine does not offer it"
    return (Flag(code="less-isolation", message=words),) if missing else ()


def beside(theirs: Measurement, ours: Measurement, ours_seq: int) -> Measurement:
    """The evaluator's row with our verdict beside it: a remark, never a correction."""
    same = (theirs.result.status is Status.CORRECT) == (ours.result.status is Status.CORRECT)
    code = "odyssey-agrees" if same else "odyssey-disagrees"
    words = f"Odyssey's own verdict: {ours.result.status.value}" + (
        f", {ours.result.error}" if ours.result.error else ""
    )
    flags = {**theirs.environment.flags, "odyssey_seq": ours_seq}
    return replace(
        theirs,
        flags=(*theirs.flags, Flag(code=code, message=words)),
        environment=replace(theirs.environment, flags=flags),
    )


def record(ledger: Ledger, theirs: Measurement, *, text: str, ours: Measurement | None = None) -> int:
    """Append ours first and theirs last, so that the newest row of the kernel is the evaluator's; returns its seq."""
    if ours is not None:
        theirs = beside(theirs, ours, ledger.append(ours, text=text))
    return ledger.append(theirs, text=text)


def _refusal(message: str, remedy: str) -> Refusal:
    return Refusal(code="evaluator_unusable", message=message, remedy=remedy)
