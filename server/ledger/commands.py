"""Owns the command `odyssey ledger` and what its neighbours share: arguments in, words or JSON out.

Never decides anything and never imports SQLite before one of these commands runs. What reads also makes no ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.host import Host

if TYPE_CHECKING:
    from server.ledger.columns import Row
    from server.ledger.store import Ledger

Subparsers = Any
OK, FAILED, USAGE = 0, 1, 2


def register(commands: Subparsers) -> None:
    """Add `ledger`; `map` and `plot` come from commands_draw."""
    ledger = commands.add_parser("ledger", help="what was measured, kept and chained")
    verbs = ledger.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listed = verb(verbs, "list", "rows, newest first", _list)
    filters(listed)
    listed.add_argument("--limit", type=int, default=20)
    listed.add_argument("--before", type=int, metavar="SEQ", help="rows older than this one")
    listed.add_argument("--foreign", action="store_true", help="imported rows of other people instead")
    shown = verb(verbs, "show", "one row, or its text", _show)
    shown.add_argument("row", help="a seq, or the beginning of a text's sha")
    shown.add_argument("--text", action="store_true", help="print the judged text and nothing else")
    shown.add_argument("--body", action="store_true", help="print the whole record as JSON, raw samples included")
    verb(verbs, "verify", "check every stored byte against the chain; exit 1 where anything was changed", _verify)
    exported = verb(verbs, "export", "write rows to a file of another form", _export)
    exported.add_argument("target", type=Path)
    exported.add_argument("--format", choices=("jsonl", "csv", "parquet", "flashinfer", "nvbench"), default="jsonl")
    exported.add_argument("--row", type=int, action="append", default=[], metavar="SEQ", help="only this row (repeat)")
    filters(exported)
    imported = verb(verbs, "import", "read other people's results as foreign rows: evidence, never verdicts", _import)
    imported.add_argument("source", type=Path)
    compared = verb(verbs, "diff", "two rows beside each other: text, numbers, what the compiler made", _diff)
    compared.add_argument("a")
    compared.add_argument("b")
    compared.add_argument("--ab", action="store_true", help="time both again, interleaved, on the card at hand")
    compared.add_argument("--sass", action="store_true", help="machine code of both, from the card at hand")
    compared.add_argument("--python", help="interpreter with torch, for --ab and --sass")
    filters(verb(verbs, "best", "the fastest right row of each kernel and card", _best))
    from server.ledger import commands_draw

    commands_draw.register(commands)


def verb(verbs: Subparsers, name: str, words: str, work: Callable[..., int]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
    parser.add_argument(
        "--workspace", type=Path, help="folder whose ledger is meant (default: found from here upwards)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of words")
    parser.set_defaults(run=lambda options, host: fenced(work, options, host))
    return parser


def filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", help="only this file")
    parser.add_argument("--kernel", help="only this kernel")


class Stop(Exception):
    """The command cannot go on; the message is for the person."""


def fenced(work: Callable[..., int], options: argparse.Namespace, host: Host) -> int:
    try:
        return work(options, host)
    except Stop as words:
        sys.stderr.write(f"odyssey: {words}\n")
    except KeyError as words:
        sys.stderr.write(f"odyssey: {words.args[0]}\n")
    except BrokenPipeError:
        raise  # the reader of our output is gone: no fault of the command
    except OSError as problem:
        sys.stderr.write(f"odyssey: {problem}\n")
    return USAGE


def say(text: str) -> None:
    """To the person."""
    sys.stdout.write(text)


def workspace_of(options: argparse.Namespace, host: Host) -> Path:
    """The folder asked for, else the nearest one upwards that has a ledger, else the current one.

    Folders in which anybody may write (/tmp) are passed over: a ledger there may be anybody's.
    """
    if options.workspace is not None:
        return Path(options.workspace).resolve()
    here = host.cwd()
    for folder in (here, *here.parents):
        if (folder / ".odyssey" / "ledger.db").is_file() and not folder.stat().st_mode & stat.S_ISVTX:
            return folder
    return here


def open_ledger(options: argparse.Namespace, host: Host, *, make: bool = False) -> Ledger:
    """The ledger of the workspace. Raises Stop where there is none and none is to be made."""
    from server.ledger import place
    from server.ledger.store import Ledger, LedgerUnusable

    workspace = workspace_of(options, host)
    own, spare = place.own_place(workspace), place.state_place(workspace, host.state_dir(), "")
    if not make and not own.database.exists() and not spare.database.exists():
        raise Stop(f"no ledger in {workspace} yet: judge a kernel first (odyssey eval FILE)")
    try:
        ledger = Ledger.open(workspace, state_dir=host.state_dir(), clock=host.now_utc)
    except LedgerUnusable as problem:
        raise Stop(str(problem)) from problem
    for note in ledger.notes:
        sys.stderr.write(f"odyssey: {note}\n")
    return ledger


def file_in(ledger: Ledger, given: str | None, host: Host) -> str | None:
    """The file's name as the ledger writes it, for a path that a person typed. Raises Stop for an unknown one."""
    if given is None:
        return None
    wanted = (host.cwd() / given).resolve()
    names = [str(row[0]) for row in ledger.db.execute("select distinct file from rows")]
    for name in names:
        if name == given or Path(name) == wanted or (ledger.place.folder.parent / name).resolve() == wanted:
            return name
    ends = [name for name in names if name.endswith("/" + given)]
    if len(ends) == 1:
        return ends[0]
    raise Stop(f"the ledger knows no file {given!r}" + (f"; it has {', '.join(sorted(names)[:8])}" if names else ""))


def chosen(ledger: Ledger, options: argparse.Namespace, host: Host) -> Iterator[Row]:
    """Rows of the file and kernel asked for, oldest first."""
    from server.ledger.transfer import Selection, selected

    yield from selected(ledger, Selection(file=file_in(ledger, options.file, host), kernel=options.kernel))


def _list(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import cards, listing

    with open_ledger(options, host) as ledger:
        if options.foreign:
            return _list_foreign(ledger, options)
        here = cards.uuids_here(host)
        file = file_in(ledger, options.file, host)
        rows = ledger.rows(file=file, kernel=options.kernel, before=options.before, limit=max(options.limit, 1))
        if options.json:
            total = ledger.count(file=file, kernel=options.kernel)
            found = [listing.as_json(row, here) for row in rows]
            say(listing.dumped({"schema": 1, "rows": found, "last_seq": ledger.last_seq(), "total": total}))
            return OK
        for row in rows:
            say(listing.line(row, here, colour=sys.stdout.isatty()) + "\n")
        if rows and len(rows) == options.limit:
            say(f"older rows: odyssey ledger list --before {rows[-1].seq}\n")
    return OK


def _list_foreign(ledger: Ledger, options: argparse.Namespace) -> int:
    from server.ledger import listing

    names = ("id", "at", "source", "source_format", "file", "kernel", "status", "speedup", "runtime_us", "card")
    query = f"select {', '.join(names)} from foreign_rows order by id desc limit ?"
    found = [dict(zip(names, row, strict=True)) for row in ledger.db.execute(query, (options.limit,))]
    if options.json:
        say(listing.dumped({"schema": 1, "foreign": found}))
        return OK
    for row in found:
        time_words = f"{row['runtime_us']:.4g} us" if row["runtime_us"] else ""
        say(f"f{row['id']:<5} {row['source']} ({row['source_format']})  {row['file']}::{row['kernel']}  "
            f"{row['status']}  ~{time_words}~ on {row['card'] or 'an unnamed card'}\n")  # fmt: skip
    return OK


def _show(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import cards, compare, listing

    with open_ledger(options, host) as ledger:
        row = compare.find(ledger, options.row)
        if options.text:
            text = ledger.text(row.kernel_sha)
            if text is None:
                raise Stop(f"the text of row {row.seq} was not kept")
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
            return OK
        here = cards.uuids_here(host)
        pinned = ledger.pinned(row.file, row.kernel)
        is_pinned = pinned is not None and pinned.seq == row.seq
        if options.json or options.body:
            extra = {"body": row.plain} if options.body else {}
            burial = {"buried": ledger.burial(row.kernel_sha), "pinned": is_pinned}
            say(listing.dumped({"schema": 1, **listing.as_json(row, here), **burial, **extra}))
            return OK
        say(
            listing.card(
                row, here, burial=ledger.burial(row.kernel_sha), pinned=pinned is not None and pinned.seq == row.seq
            )
        )
    return OK


def _verify(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import listing, place
    from server.ledger.anchor import Anchor
    from server.ledger.key import user_key
    from server.ledger.verify import verify_folder

    workspace, state = workspace_of(options, host), host.state_dir()
    own, spare = place.own_place(workspace), place.state_place(workspace, state, "")
    folder = next((each.folder for each in (own, spare) if each.database.exists()), None)
    if folder is None:
        raise Stop(f"no ledger in {workspace} yet")
    name = place.workspace_id(workspace)
    found = verify_folder(folder, user_key(state), lambda ledger_id: Anchor.of(state, name, ledger_id))
    if options.json:
        say(listing.dumped({"schema": 1, "folder": str(folder), "ok": found.ok, **dataclasses.asdict(found)}))
    else:
        say(listing.report(found, str(folder)))
    return OK if found.ok else FAILED


def _export(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import listing, transfer

    with open_ledger(options, host) as ledger:
        file = file_in(ledger, options.file, host)
        selection = transfer.Selection(file=file, kernel=options.kernel, seqs=tuple(options.row))
        try:
            done = transfer.export(ledger, options.format, options.target, selection)
        except transfer.CannotExport as problem:
            raise Stop(str(problem)) from problem
    if options.json:
        say(listing.dumped({"schema": 1, **dataclasses.asdict(done), "path": str(done.path)}))
    else:
        left = f"; {done.left_out} left out: {done.note}" if done.left_out else ""
        say(f"{done.rows} rows in {done.path}{left}\n")
    return OK


def _import(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import foreign, listing

    with open_ledger(options, host, make=True) as ledger:
        try:
            done = foreign.import_file(ledger, options.source)
        except foreign.CannotImport as problem:
            raise Stop(f"{options.source}: {problem}") from problem
    if options.json:
        say(listing.dumped({"schema": 1, **dataclasses.asdict(done)}))
    else:
        say(f"{done.rows} foreign rows ({done.format}), {done.skipped} were known: odyssey ledger list --foreign\n")
    return OK


def _diff(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import compare, listing

    with open_ledger(options, host) as ledger:
        a, b = compare.find(ledger, options.a), compare.find(ledger, options.b)
        made = compare.compare(ledger, a, b)
        again = _again(ledger, (a, b), options, host) if options.ab else None
        sass = asyncio.run(_sass(ledger, (a, b), options, host)) if options.sass else None
    if options.json:
        lines = [dataclasses.asdict(each) for each in made.lines]
        say(listing.dumped({"schema": 1, "a": a.seq, "b": b.seq, "lines": lines, "diff": made.diff,
                            "obstacles": list(made.obstacles), "ab": again, "sass": sass}))  # fmt: skip
        return OK
    say(listing.comparison(made))
    if again is not None:
        timed = f"timed again, interleaved: {again['ab']}" if again["ab"] else f"not timed again: {again['why']}"
        say(f"{timed} (row {again['seq']})\n")
    if sass is not None:
        say(listing.machine_code(sass))
    return OK


async def _sass(ledger: Ledger, pair: tuple[Row, Row], options: argparse.Namespace, host: Host) -> dict[str, Any]:
    """Both texts on the problem's first case. Raises Stop."""
    from evalcore.jobs import Refusal
    from server.evaluators.running import Confinement
    from server.interpreters import choose
    from server.ledger import cards

    assembly = importlib.import_module("server.dispatch.assembly")
    if not cards.cards_here(host):
        raise Stop("machine code comes from the card that runs it, and there is none here")
    python = await choose(host, options.python or "", "")
    found = []
    for row in pair:
        problem, text = ledger.problem(row.problem_sha), ledger.text(row.kernel_sha)
        if problem is None or text is None:
            raise Stop(f"row {row.seq} cannot be run again: its problem was not kept")
        where = Confinement(host=host, python=host.python if isinstance(python, Refusal) else python.path)
        code = await assembly.code_of(assembly.with_candidate(problem, text), problem.cases[0], where)
        if isinstance(code, Refusal):
            raise Stop(f"{code.message}. {code.remedy}")
        found.append(code)
    made: dict[str, Any] = assembly.side_by_side(*found)
    return made


def _again(ledger: Ledger, pair: tuple[Row, Row], options: argparse.Namespace, host: Host) -> dict[str, Any]:
    from evalcore.jobs import Refusal
    from server.ledger import compare

    job = compare.again(ledger, *pair, job_id=host.new_id())
    if isinstance(job, Refusal):
        raise Stop(f"{job.message}. {job.remedy}")
    found = asyncio.run(_evaluate(job, options, host))
    if isinstance(found, Refusal):
        raise Stop(f"{found.message}. {found.remedy}")
    measured = dataclasses.replace(found, measured_at=found.measured_at or host.now_utc())
    seq = ledger.append(measured, text=ledger.text(pair[0].kernel_sha) or "", problem=job.problem)
    return {"seq": seq, "ab": measured.ab, "why": measured.result.error or "nothing is timed without a card"}


async def _evaluate(job: Any, options: argparse.Namespace, host: Host) -> Any:
    with_pool = importlib.import_module("server.dispatch.evaluating")
    async with with_pool.evaluator(host, options.python or "") as evaluator:
        return await evaluator.evaluate(job)


def _best(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import cards, listing

    with open_ledger(options, host) as ledger:
        here = cards.uuids_here(host)
        rows = listing.best(chosen(ledger, options, host))
        if options.json:
            say(listing.dumped({"schema": 1, "rows": [listing.as_json(row, here) for row in rows]}))
            return OK
        for row in rows:
            say(f"{row.file}::{row.kernel}\n  {listing.line(row, here, colour=sys.stdout.isatty())}\n")
        if not rows:
            say("nothing was timed yet\n")
    return OK
