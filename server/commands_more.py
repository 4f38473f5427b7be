"""Owns the commands `odyssey dispatch`, `odyssey new` and `odyssey evaluator`. Never decides; never imports torch."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalcore.jobs import Measurement, Refusal
from server.host import Host
from server.ledger.commands import FAILED, OK, Stop, Subparsers, open_ledger, say, verb


def register(commands: Subparsers) -> None:
    """Add the three commands."""
    made = verb(
        commands, "dispatch", "for each group of shapes the candidate that wins there, as a Python module", _dispatch
    )
    made.add_argument("kernel", metavar="FILE[::KERNEL]")
    made.add_argument("--candidate", action="append", default=[], metavar="SHA", help="try this text (repeat); "
                      "default: every one that was right and is not buried")  # fmt: skip
    made.add_argument(
        "--group", action="append", default=[], metavar="NAME=CASE,CASE", help="cases of one path (repeat)"
    )
    made.add_argument("--out", type=Path, help="default: FILE_dispatch.py beside the file")
    made.add_argument("--python", default="", help="interpreter with torch and triton")
    made.add_argument("--device", default="auto", help="auto, cpu or cuda:N")
    new = verb(commands, "new", "make a workspace: phases, rules, evaluator, shape sets, candidates", _new)
    new.add_argument("folder", type=Path)
    words = "take evaluator and candidates of another workspace along; its numbers stay behind"
    new.add_argument("--from", dest="source", type=Path, metavar="OTHER", help=words)
    new.add_argument("--problem", metavar="FILE[::KERNEL]", help="the task: shapes are derived from it")
    new.add_argument("--evaluator", type=Path, metavar="PATH", help="the organisers' script, or its folder")
    new.add_argument("--adapter", choices=("script", "gpumode", "flashinfer", "kernelbench"), default="script")
    new.add_argument("--script", default="", help="the script's name where --evaluator is a folder")
    new.add_argument("--puts", default="candidate.py", metavar="NAME", help="where the evaluator expects a candidate")
    _evaluator(commands)


def _evaluator(commands: Subparsers) -> None:
    parser = commands.add_parser("evaluator", help="a task's own judge, run unmodified")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = verb(verbs, "run", "judge a file with the workspace's evaluator; exit 0 correct, 1 wrong, 2 could not", _run)
    run.add_argument("file", type=Path)
    run.add_argument("--python", default="", help="interpreter that runs the evaluator")
    pin = verb(verbs, "pin", "show the pinned md5, or pin the evaluator as it is now", _pin)
    pin.add_argument("--again", action="store_true", help="the change is the organisers': pin it anew")


def _dispatch(options: argparse.Namespace, host: Host) -> int:
    from server.dispatch.merging import CannotMerge

    try:
        answer = asyncio.run(_dispatched(options, host))
    except CannotMerge as words:
        raise Stop(str(words)) from words
    if isinstance(answer, Refusal):
        raise Stop(f"{answer.message}. {answer.remedy}")
    said, target = answer
    if options.json:
        say(json.dumps({**said, "module": str(target)}, indent=1) + "\n")
        return OK
    for group in said["groups"]:
        winner = group["winner"][:12] if group["winner"] else "baseline"
        say(f"{group['group']:<24} {winner:<14} {group['reason']}\n")
        for each in group["admissions"]:
            say(
                f"{'':24}   {each['sha'][:12]} {'admitted' if each['admitted'] else 'not admitted'}: {each['reason']}\n"
            )
    worst = f", worst case {said['worst_speedup']:.3g}x" if said["worst_speedup"] else ""
    say(f"{target}: judged as row {said['row']}{worst}\n" + "".join(f"{note}\n" for note in said["notes"]))
    return OK


async def _dispatched(options: argparse.Namespace, host: Host) -> tuple[dict[str, Any], Path] | Refusal:
    from server.cli_eval import Outcome, find_subject
    from server.dispatch.building import build, evidence, groups_of
    from server.dispatch.evaluating import evaluator
    from server.dispatch.figures import Desk, candidates_of
    from server.dispatch.looks import looks
    from server.interpreters import choose

    subject = find_subject(options.kernel, host)
    if isinstance(subject, Outcome):
        return subject.refusal or Refusal(code="no_kernel", message="no kernel is bound there", remedy="")
    problem = subject.bound.problem()
    assert problem is not None
    found = await choose(host, options.python, "")
    if isinstance(found, Refusal):
        return found
    specs = await looks(host, found.path, problem, problem.cases)
    if isinstance(specs, Refusal):
        return specs
    target = options.out or Path(subject.path).with_name(f"{Path(subject.path).stem}_dispatch.py")
    with open_ledger(options, host) as ledger:
        async with evaluator(host, options.python, options.device) as pool:
            desk = Desk(
                host=host, ledger=ledger, evaluator=pool, problem=problem, kernel=subject.bound.anchor,
                file=subject.path, device=options.device, say=lambda words: _progress(options, words),
            )  # fmt: skip
            asks = candidates_of(desk, options.candidate)
            if not asks:
                raise Stop("the ledger knows no right candidate of this kernel: judge some first (odyssey eval)")
            built = await build(desk, asks, groups_of(problem.cases, _groups(options.group)), specs)
        if isinstance(built, Refusal):
            return built
        head = ledger.head()
        said = evidence(built, head.hash if head else None)
    target.write_text(built.text, encoding="utf-8")
    target.with_suffix(".evidence.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return said, target


def _progress(options: argparse.Namespace, words: str) -> None:
    if not options.json:
        sys.stderr.write(f"{words}\n")


def _groups(given: list[str]) -> Mapping[str, list[str]]:
    """'short=64,128' -> {'short': ['64', '128']}."""
    found = {}
    for each in given:
        name, equals, cases = each.partition("=")
        if not equals or not name or not cases:
            raise Stop(f"--group {each!r}: write NAME=CASE,CASE")
        found[name] = [case.strip() for case in cases.split(",")]
    return found


def _new(options: argparse.Namespace, host: Host) -> int:
    from server.workspaces import making

    problem = None
    if options.problem is not None:
        from server.cli_eval import Outcome, find_subject

        subject = find_subject(options.problem, host)
        if isinstance(subject, Outcome):
            refusal = subject.refusal
            raise Stop(refusal.message if refusal is not None else f"nothing is bound in {options.problem}")
        problem = subject.bound.problem()
    evaluator = None
    if options.evaluator is not None:
        evaluator = making.Evaluator(adapter=options.adapter, path=options.evaluator, script=options.script,
                                     candidate=options.puts)  # fmt: skip
    try:
        made = making.make(host.cwd() / options.folder, state_dir=host.state_dir(), problem=problem,
                           evaluator=evaluator, source=options.source)  # fmt: skip
    except making.CannotMake as words:
        raise Stop(str(words)) from words
    if options.json:
        say(json.dumps({"schema": 1, **dataclasses.asdict(made), "folder": str(made.folder)}, indent=1) + "\n")
        return OK
    say(f"{made.folder}: {len(made.files)} files\n")
    if made.shapes:
        say("shapes: " + ", ".join(f"{name} {count}" for name, count in made.shapes.items()) + "\n")
    if made.evaluator_md5:
        say(f"evaluator pinned, md5 {made.evaluator_md5}\n")
    if made.left_behind:
        say(f"{made.carried} candidates came along; {made.left_behind}\n")
    for note in made.notes:
        say(f"{note}\n")
    return OK


def _run(options: argparse.Namespace, host: Host) -> int:
    from server.evaluators import judging
    from server.ledger import cards, listing

    workspace, task = _task(options, host)
    found = asyncio.run(_judged(options, host, task))
    if isinstance(found, Refusal):
        raise Stop(f"{found.message}. {found.remedy}")
    options.workspace = workspace
    text = (host.cwd() / options.file).read_text(encoding="utf-8", errors="surrogateescape")
    with open_ledger(options, host, make=True) as ledger:
        ours = ledger.of_text(found.kernel_sha)
        own = next((row for row in ours if row.judge == "odyssey" and not row.foreign), None)
        theirs = judging.beside(found, own.measurement, own.seq) if own is not None else found
        row = ledger.row(judging.record(ledger, theirs, text=text))
    if options.json:
        say(listing.dumped({"schema": 1, **listing.as_json(row, cards.uuids_here(host)), "body": row.plain}))
    else:
        say(listing.card(row, cards.uuids_here(host), burial=None, pinned=False))
    return OK if row.status == "correct" else 2 if row.status == "error" else FAILED


async def _judged(options: argparse.Namespace, host: Host, task: Any) -> Measurement | Refusal:
    from server.evaluators.judging import Asked, Card, judge
    from server.evaluators.running import Confinement
    from server.interpreters import choose
    from server.ledger.cards import cards_here

    chosen = await choose(host, options.python, "")
    python = host.python if isinstance(chosen, Refusal) else chosen.path
    here = cards_here(host)
    card = Card(name=here[0].name, uuid=here[0].uuid, driver=here[0].driver) if here else Card()
    path = host.cwd() / options.file
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return await judge(task, Asked(file=str(path), kernel=path.stem, text=text),
                       Confinement(host=host, python=python, cuda=bool(here)), card)  # fmt: skip


def _task(options: argparse.Namespace, host: Host) -> tuple[Path, Any]:
    from server.evaluators import task as tasks

    start = Path(options.workspace).resolve() if options.workspace is not None else host.cwd()
    folder = next((each for each in (start, *start.parents) if (each / tasks.WORKSPACE_FILE).is_file()), None)
    try:
        found = tasks.task_of(folder) if folder is not None else None
    except tasks.TaskError as problem:
        raise Stop(str(problem)) from problem
    if folder is None or found is None:
        raise Stop(f"{start} is in no workspace with an evaluator: make one with odyssey new --evaluator")
    return folder, found


def _pin(options: argparse.Namespace, host: Host) -> int:
    from server.evaluators import task as tasks

    _, task = _task(options, host)
    try:
        now, _ = tasks.digests(task)
        known = tasks.pinned(task, host.state_dir())
        if options.again or known is None:
            tasks.pin(task, host.state_dir())
            known = {"md5": now}
    except tasks.TaskError as problem:
        raise Stop(str(problem)) from problem
    same = known.get("md5") == now
    if options.json:
        say(json.dumps({"schema": 1, "pinned": known.get("md5"), "now": now, "same": same}) + "\n")
    else:
        say(
            f"pinned md5 {known.get('md5')}\n"
            + ("" if same else f"but it is {now} now: refused until pinned --again\n")
        )
    return OK if same else FAILED
