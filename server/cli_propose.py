"""Owns `odyssey propose`: one search from the command line, as a diff or as JSON. Never judges.

The file is written only where that was asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import stat
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, EvalJob, Measurement, Mode, Refusal
from evalcore.wire import encode
from server import terminal, words
from server.cli_eval import Outcome as Nothing
from server.cli_eval import Subject, device, find_subject
from server.config import Settings
from server.dispatch.evaluating import evaluator
from server.host import Host
from server.ledger.store import LedgerUnusable
from server.project import language_of, nearest_root, read_text
from server.proposals import OpenProposal, cannot_apply, unified_diff
from server.propose import LedgerMemory, Outcome, Plan, Ports, model_of, search
from server.recorder import Recorder
from skills.budget import Budget

FOUND, NONE, COULD_NOT = 0, 1, 2

_HELD_TO_CPU = Refusal(
    code="no_gpu",
    message="a proposal needs times, and nothing is timed with --device cpu",
    remedy="Leave --device out, on a machine with an NVIDIA GPU.",
)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is printed."""

    file: str
    kernel: str
    outcome: Outcome
    base: Measurement | None = None
    diff: str = ""
    applied: bool = False


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "propose",
        help="look for a faster text of a kernel",
        description="Judge a kernel, then look for a text that is right and faster: the tuner turns its sizes, warps and "
        "stages; with --model a model writes one candidate. Each candidate is judged like a save and kept in the ledger.",
        epilog="Prints a diff. Exits 0 with a proposal, 1 without one, 2 when it could not look. A model's key comes from "
        "ODYSSEY_API_KEY or from the variable that its provider names.",
    )
    parser.add_argument("file", metavar="FILE[::KERNEL]", help="a Python or CUDA file, and which of its kernels")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--model", default="", metavar="NAME", help="a model by its litellm name; none: the tuner alone"
    )
    parser.add_argument("--base", default="", metavar="URL", help="address of an OpenAI-compatible server for --model")
    parser.add_argument("--attempts", type=_attempts, default=Budget().attempts, metavar="N",
                        help=f"the most candidates that are judged (default {Budget().attempts})")  # fmt: skip
    parser.add_argument("--apply", action="store_true", help="write the proposal into the file, if it is unchanged")
    parser.add_argument("--device", type=device, default="auto", help="auto (default), cpu, or cuda:N")
    parser.add_argument("--python", default="", metavar="P", help="interpreter that has torch and triton")
    parser.set_defaults(run=_run)


def _attempts(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


def _run(options: argparse.Namespace, host: Host) -> int:
    answer = asyncio.run(_answer(options, host))
    if options.json:
        print(json.dumps(as_json(answer)))
    else:
        _print(answer, colour=sys.stdout.isatty() and "NO_COLOR" not in host.environ)
    return exit_code(answer, wanted=options.apply)


def exit_code(answer: Answer, *, wanted: bool) -> int:
    """0 a proposal, 1 none, 2 could not look or, where that was wanted, could not write."""
    if answer.outcome.proposal is not None:
        return COULD_NOT if wanted and not answer.applied else FOUND
    refusal = answer.outcome.refusal
    return NONE if refusal is not None and refusal.code == "no_gain" else COULD_NOT


def as_json(answer: Answer) -> dict[str, Any]:
    """The object that --json prints."""
    proposal, refusal = answer.outcome.proposal, answer.outcome.refusal
    return {
        "schema": 1,
        "file": answer.file,
        "kernel": answer.kernel,
        "proposal": None if proposal is None else _plain(proposal),
        "refusal": encode(refusal),
        "model_refusal": encode(answer.outcome.model_refusal),
        "tried": answer.outcome.tried,
        "base": None if answer.base is None else encode(answer.base.result),
        "diff": answer.diff,
        "applied": answer.applied,
    }


def _plain(proposal: OpenProposal) -> dict[str, Any]:
    measurement = proposal.measurement
    return {
        "id": proposal.proposal_id,
        "title": proposal.title,
        "change": proposal.change,
        "author": proposal.author,
        "base_sha": proposal.base_sha,
        "sha": proposal.candidate_sha,
        "text": proposal.new_text,
        "row": proposal.seq,
        "result": encode(measurement.result),
        "ab": encode(measurement.ab),
        "cases": encode(measurement.cases),
        "flags": encode(measurement.flags),
        "environment": encode(measurement.environment),
    }


def _print(answer: Answer, *, colour: bool) -> None:
    outcome = answer.outcome
    if outcome.model_refusal is not None:
        said = words.refusal_words(outcome.model_refusal)
        print(f"no candidate by the model: {terminal.printable(said)}", file=sys.stderr)
    if outcome.proposal is None:
        why = words.refusal_words(outcome.refusal) if outcome.refusal is not None else ""
        print(f"{answer.kernel or answer.file}: no proposal\n{terminal.printable(why)}", file=sys.stderr)
        return
    print(terminal.printable(answer.diff) if sys.stdout.isatty() else answer.diff)
    print(terminal.printable(outcome.proposal.title))
    print(terminal.measurement_card(outcome.proposal.measurement, seq=outcome.proposal.seq, colour=colour))
    if answer.applied:
        print(f"written to {answer.file}", file=sys.stderr)
    elif outcome.refusal is not None:
        print(words.refusal_words(outcome.refusal), file=sys.stderr)


async def _answer(options: argparse.Namespace, host: Host) -> Answer:
    subject = find_subject(options.file, host)
    if isinstance(subject, Nothing):
        return Answer(file=subject.file, kernel=subject.kernel, outcome=Outcome(refusal=subject.refusal))
    answer = Answer(file=subject.path, kernel=subject.bound.anchor, outcome=Outcome())
    recorder = Recorder(host, nearest_root(subject.path))
    try:
        found = await _searched(options, host, subject, recorder)
    except (LedgerUnusable, OSError, sqlite3.Error) as fault:
        return replace(answer, outcome=Outcome(refusal=words.unrecorded(fault)))
    finally:
        await recorder.close()
    outcome, base = found
    if options.device == "cpu" and outcome.refusal is not None and outcome.refusal.code == "no_gpu":
        outcome = replace(outcome, refusal=_HELD_TO_CPU)
    answer = replace(answer, outcome=outcome, base=base)
    if outcome.proposal is None:
        return answer
    name = subject.path.removeprefix(f"{nearest_root(subject.path)}/")
    answer = replace(answer, diff=unified_diff(name, subject.text, outcome.proposal.new_text))
    if not options.apply:
        return answer
    refusal = write(outcome.proposal)
    return replace(answer, applied=refusal is None, outcome=replace(outcome, refusal=refusal))


async def _searched(
    options: argparse.Namespace, host: Host, subject: Subject, recorder: Recorder
) -> tuple[Outcome, Measurement | None]:
    problem = subject.bound.problem()
    assert problem is not None
    job = EvalJob(
        job_id=host.new_id(),
        cause=Cause.COMMAND,
        mode=Mode.FAST,
        problem=problem,
        kernel=subject.bound.anchor,
        kernel_sha=sha256_text(subject.text),
        device=options.device,
    )
    plan = Plan(
        run_id=host.new_id(),
        job=job,
        text=subject.text,
        language="cuda" if language_of(subject.path) == "cuda" else "triton",
        budget=Budget(attempts=options.attempts),
    )
    memory = LedgerMemory(host, recorder, problem, lambda seq: None)
    settings = replace(Settings(), model=options.model, model_base=options.base)
    model = model_of(settings, host, "")
    async with evaluator(host, options.python, options.device) as pool:
        _progress("judging the text as it stands", 0, 0)
        base = await pool.evaluate(job)
        if isinstance(base, Refusal):
            return Outcome(refusal=base), None
        seq = await memory.append_base(base, text=subject.text, after=None)
        try:
            if model is not None:
                await model.warm()
            ports = Ports(evaluator=pool, memory=memory, model=model)
            return await search(plan, (memory.rows[seq], seq), ports, _progress), base
        finally:
            if model is not None:
                await model.close()


def _progress(message: str, done: int, total: int) -> None:
    count = f" ({done} of at most {total} judged)" if done else ""
    print(f"{terminal.printable(message)}{count}", file=sys.stderr, flush=True)


def write(proposal: OpenProposal) -> Refusal | None:
    """Put a proposal's text in the place of its base's on the disk; why not, where that is not what lies there now.

    A link is followed, the mark at a file's start and its mode stay, and a reader sees the old text or the new one.
    """
    found = read_text(proposal.path)
    refusal = cannot_apply(proposal, sha256_text(found.text) if found is not None and found.valid else None)
    if refusal is not None:
        return refusal
    place = Path(proposal.path).resolve()
    try:
        bom = _BOM if place.read_bytes().startswith(_BOM) else b""
        descriptor, draft = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(bom + proposal.new_text.encode("utf-8"))
        os.chmod(draft, stat.S_IMODE(place.stat().st_mode))
        os.replace(draft, place)
    except OSError as problem:
        return Refusal(code="unreadable", message=f"{proposal.path} cannot be written: {problem}", remedy="")
    return None
