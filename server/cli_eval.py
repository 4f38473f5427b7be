"""Owns `odyssey eval`: one file, one kernel, one verdict, as a card or as JSON. Never judges: the worker does."""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, Diagnostic, EvalJob, Measurement, Mode, Reason, Refusal
from evalcore.results import Status, compile_error, error
from evalcore.wire import encode
from server import placing, terminal, words
from server.config import DEVICE, Settings
from server.document import find_definition
from server.git import git_facts
from server.gpu_pool import GpuPool
from server.host import Host
from server.ledger.store import LedgerUnusable
from server.lines import LineIndex
from server.project import language_of, nearest_root, read_text
from server.reading import Reader
from server.recorder import Recorder
from server.sites import Bound, Site

EXTRA = ("samples", "timing", "regime", "floor_us", "probes", "opponents", "ab", "kernels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be judged."""

    path: str
    text: str
    bound: Bound
    site: Site | None
    others: tuple[str, ...]
    """Further kernels of the file that could be judged instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    file: str
    kernel: str
    index: LineIndex
    site: Site | None
    measurement: Measurement | None = None
    refusal: Refusal | None = None
    place: tuple[int, int] | None = None
    """Where Python's own parser stopped: the text does not compile, and no worker was asked."""
    seq: int = 0


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "eval",
        help="judge a kernel",
        description="Judge a kernel against its reference, which is found in the file, beside it, in a comment "
        "(# odyssey: reference=... inputs=...) or in odyssey.toml.",
        epilog="Exits 0 when correct, 1 when incorrect or when it does not compile, 2 when it could not be judged.",
    )
    parser.add_argument("file", metavar="FILE[::KERNEL]", help="a Python or CUDA file, and which of its kernels")
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.FAST.value,
                        help="fast: 5 trials, 10 timings; thorough: 5 and 100, neighbour shapes, probes")  # fmt: skip
    parser.add_argument("--device", type=device, default="auto", help="auto (default), cpu, or cuda:N")
    parser.add_argument("--python", default="", metavar="P", help="interpreter that has torch and triton")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def device(text: str) -> str:
    """Argparse's type of --device."""
    if not DEVICE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, cpu or cuda:N")
    return text


def _run(options: argparse.Namespace, host: Host) -> int:
    outcome = asyncio.run(_evaluate(options, host))
    if options.json:
        print(json.dumps(as_json(outcome)))
    else:
        print(terminal.card(outcome, colour=sys.stdout.isatty() and "NO_COLOR" not in host.environ))
    return exit_code(outcome)


def exit_code(outcome: Outcome) -> int:
    """0 correct, 1 incorrect or compile error, 2 could not judge."""
    if outcome.measurement is None:
        return 1 if outcome.place is not None else 2
    return {Status.CORRECT: 0, Status.INCORRECT: 1, Status.COMPILE_ERROR: 1, Status.ERROR: 2}[
        outcome.measurement.result.status
    ]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """The object that --json prints. Lines and columns count from 1."""
    measurement, refusal = outcome.measurement, outcome.refusal
    if measurement is None:
        assert refusal is not None
        broken = outcome.place is not None
        words_ = words.refusal_words(refusal)
        return {
            "schema": 1,
            "file": outcome.file,
            "kernel": outcome.kernel,
            "result": encode(compile_error(words_) if broken else error(words_)),
            "reason": None if broken else Reason.NOT_JUDGEABLE.value,
            "flags": [{"code": refusal.code, "message": words_}],
            "cases": [],
            "environment": {},
            "diagnostics": encode(diagnostics(outcome)),
        }
    found = encode(measurement)
    answer = {
        "schema": 1,
        "file": outcome.file,
        "kernel": outcome.kernel,
        "result": found["result"],
        "reason": found["reason"],
        "flags": found["flags"],
        "cases": found["cases"],
        "environment": found["environment"],
        "diagnostics": encode(diagnostics(outcome)),
    }
    answer.update({name: found[name] for name in EXTRA if found[name] not in (None, [], {})})
    if measurement.environment.isolation:
        answer["isolation"] = found["environment"]["isolation"]
    return answer


def diagnostics(outcome: Outcome) -> list[Diagnostic]:
    """The verdict's messages at their places, as the editor shows them; those in other files too."""
    measurement = outcome.measurement
    if measurement is None:
        if outcome.place is None or outcome.refusal is None:
            return []
        finding = placing.syntax_finding(outcome.refusal, outcome.index, outcome.place)
        return [placing.diagnostic_of(finding, outcome.file, outcome.index)]
    here = placing.verdict_findings(measurement, outcome.index, outcome.site)
    found = [placing.diagnostic_of(each, outcome.file, outcome.index) for each in here]
    for located in placing.other_files(measurement).values():
        found += located
    return found


async def _evaluate(options: argparse.Namespace, host: Host) -> Outcome:
    subject = find_subject(options.file, host)
    if isinstance(subject, Outcome):
        return subject
    if subject.others and not options.json:
        print(f"judging {subject.bound.anchor}; also there: {', '.join(subject.others)}", file=sys.stderr)
    pool = GpuPool(host, lambda: None)
    pool.configure(Settings(python=options.python, device=options.device))
    recorder = Recorder(host, nearest_root(subject.path))
    try:
        return await _judged(options, host, subject, pool, recorder)
    finally:
        await pool.close()
        await recorder.close()


async def _judged(
    options: argparse.Namespace, host: Host, subject: Subject, pool: GpuPool, recorder: Recorder
) -> Outcome:
    index = LineIndex(subject.text)
    outcome = Outcome(file=subject.path, kernel=subject.bound.anchor, index=index, site=subject.site)
    problem = subject.bound.problem()
    assert problem is not None
    job = EvalJob(
        job_id=host.new_id(),
        cause=Cause.COMMAND,
        mode=Mode(options.mode),
        problem=problem,
        kernel=subject.bound.anchor,
        kernel_sha=sha256_text(subject.text),
        device=options.device,
    )
    show = sys.stderr.isatty() and not options.json
    answer = await pool.evaluate(job, terminal.progress(subject.bound.anchor) if show else None)
    if isinstance(answer, Refusal):
        return replace(outcome, refusal=answer)
    git = await git_facts(host, subject.path)
    measurement = replace(answer, measured_at=host.now_utc(), git_sha=git.sha, git_dirty=git.dirty)
    try:
        seq = await recorder.append(measurement, text=subject.text, problem=problem)
    except (LedgerUnusable, OSError, sqlite3.Error) as fault:
        return replace(outcome, refusal=words.unrecorded(fault))
    return replace(outcome, measurement=measurement, seq=seq)


def find_subject(argument: str, host: Host) -> Subject | Outcome:
    """The file's text and the binding that is meant; an Outcome with the refusal where there is none."""
    name, _, kernel = argument.partition("::")
    path = str(Path(host.cwd(), Path(name).expanduser()))
    nothing = Outcome(file=path, kernel=kernel, index=LineIndex(""), site=None)
    found = read_text(path)
    if found is None:
        refusal = Refusal(code="unreadable", message=f"{path} is no file that can be read", remedy="Check the name.")
        return replace(nothing, refusal=refusal)
    if language_of(path) is None:
        refusal = Refusal(code="no_kernel", message=f"{path} is neither Python nor CUDA", remedy="Name a .py or .cu.")
        return replace(nothing, refusal=refusal)
    reader = Reader()
    reader.open(path, "", found.text)
    sites = {site.name: site for site in reader.analyse(path).sites}
    bounds = reader.bind(path, found.text, root=str(nearest_root(path)), overlays={})
    chosen = choose(bounds, kernel)
    if isinstance(chosen, Refusal):
        broken = next((bound.place for bound in bounds if bound.place is not None), None)
        name = kernel or (bounds[0].anchor if bounds else "")
        return replace(nothing, kernel=name, refusal=chosen, place=broken, index=LineIndex(found.text))
    others = tuple(bound.anchor for bound in bounds if bound.packed and bound is not chosen) if not kernel else ()
    site = sites.get(chosen.anchor) or find_definition(LineIndex(found.text), chosen.anchor)
    return Subject(path=path, text=found.text, bound=chosen, site=site, others=others)


def choose(bounds: Sequence[Bound], kernel: str) -> Bound | Refusal:
    """The binding that is meant by a kernel's name, the first one where none is given."""
    meant = [bound for bound in bounds if not kernel or kernel == bound.anchor or kernel in bound.kernels]
    judged = [bound for bound in meant if bound.packed]
    if judged:
        return judged[0]
    if meant:
        return Refusal(code=meant[0].refusal_code, message=meant[0].refusal_words, remedy="")
    if bounds:
        names = ", ".join(bound.anchor for bound in bounds)
        return Refusal(code="no_kernel", message=f"there is no kernel {kernel} here", remedy=f"There are: {names}.")
    return Refusal(code="no_kernel", message="there is no kernel in this file", remedy="Name a file with a kernel.")
