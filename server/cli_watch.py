"""Owns `odyssey watch`: judge the kernels of a folder whenever their files change. Never judges what git checks out."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from server import signals, terminal, words
from server.cli_eval import device
from server.config import Settings
from server.events import SettingsRead, StopAsked
from server.host import Host
from server.outside import Outside
from server.session import Session

GLOBS = ("**/*.py", "**/*.cu", "**/*.cuh")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "watch",
        help="judge kernels whenever their files change",
        description="Judge each kernel file below a folder when it is written, by whatever program. Files that a git "
        "checkout or pull writes are left alone. Ends with Ctrl-C.",
    )
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="the folder (default: this one)")
    parser.add_argument("--mode", choices=("fast", "thorough"), default="fast", help="how much is measured")
    parser.add_argument("--device", type=device, default="auto", help="auto (default), cpu, or cuda:N")
    parser.add_argument("--python", default="", metavar="P", help="interpreter that has torch and triton")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, host: Host) -> int:
    folder = Path(host.cwd(), Path(options.folder).expanduser())
    if not folder.is_dir():
        print(f"{folder} is no folder", file=sys.stderr)
        return 2
    return asyncio.run(_watch(options, host, folder))


async def _watch(options: argparse.Namespace, host: Host, folder: Path) -> int:
    session = Session(host)
    session.state.project.folders = (str(folder),)
    session.listen(lambda signal: _say(signal, as_json=options.json))
    settings = Settings(python=options.python, device=options.device, mode=options.mode, watch=GLOBS, evaluate="save")
    session.apply(SettingsRead(settings=settings))
    outside = Outside(session)
    outside.start()
    session.pool.start()
    if not options.json:
        print(f"watching {folder}; Ctrl-C ends", file=sys.stderr)
    try:
        await asyncio.Event().wait()
    finally:
        session.apply(StopAsked())
        outside.close()
        await session.close()
    return 0


def _say(signal: signals.Signal, *, as_json: bool) -> None:
    match signal:
        case signals.VerdictShown(verdict):
            label = words.hint_label(verdict.measurement, fresh=True)
            if as_json:
                row = {"seq": verdict.seq, "file": verdict.path, "kernel": verdict.kernel,
                       "status": verdict.measurement.result.status.value, "label": label}  # fmt: skip
                print(json.dumps(row), flush=True)
            else:
                print(f"{verdict.path}::{verdict.kernel}: {terminal.printable(label)}", flush=True)
        case signals.Refused(path, kernel, refusal, _) if refusal.code != "cancelled":
            print(f"{path}::{kernel}: {terminal.printable(words.refusal_words(refusal))}", file=sys.stderr, flush=True)
