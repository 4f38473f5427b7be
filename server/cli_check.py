"""Owns `odyssey check`: what the text of files shows, without running anything. Never starts a child."""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from evalcore.jobs import Diagnostic
from evalcore.wire import encode
from server import placing, terminal
from server.host import Host
from server.lines import LineIndex
from server.project import LANGUAGES, language_of, read_text
from server.reading import Reader, fault_place
from server.words import plural

SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".odyssey", "build", "dist"})


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check",
        help="say what the text of kernels shows, without running them",
        description="Look at kernels by syntax alone: sizes, masks, overflow, precision. Nothing is run.",
        epilog="Exits 0 where nothing is wrong, 1 where there is an error or a warning, 2 where a path cannot be read.",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, or folders that are searched for kernels")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: text)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, host: Host) -> int:
    found: list[Diagnostic] = []
    unreadable: list[str] = []
    files = kernels = 0
    for path, named in _files(options.paths, host.cwd()):
        text = read_text(path)
        if text is None:
            if named:
                unreadable.append(path)
            continue
        files += 1
        seen, remarks = read_kernels(path, text.text)
        kernels += seen
        found += remarks + syntax_error(path, text.text)
    if options.format == "json":
        print(json.dumps({"schema": 1, "diagnostics": encode(found), "unreadable": unreadable}))
    else:
        for each in found:
            said = terminal.printable(each.message)
            print(f"{each.path}:{each.line}:{each.column}: {each.severity}: {said} [{each.code}]")
        for path in unreadable:
            print(f"{path}: cannot be read")
        said = plural(len(found), "remark") if found else "nothing to remark"
        print(f"{plural(files, 'file')}, {plural(kernels, 'kernel')}: {said}", file=sys.stderr)
    if unreadable:
        return 2
    return 1 if any(each.severity in ("error", "warning") for each in found) else 0


def read_kernels(path: str, text: str) -> tuple[int, list[Diagnostic]]:
    """How many kernels a text has, and what it shows of them."""
    reader = Reader()
    reader.open(path, "", text)
    index = LineIndex(text)
    analysed = reader.analyse(path)
    return len(analysed.sites), [placing.diagnostic_of(each, path, index) for each in analysed.findings]


def syntax_error(path: str, text: str) -> list[Diagnostic]:
    """Where Python's own syntax ends, for a file of Python; [] where it does not."""
    if not path.endswith(".py"):
        return []
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError as fault:
        line, column = fault_place(fault)
        said = f"not Python: {fault.msg}"
        return [Diagnostic(path=path, line=line, column=column, severity="error", code="syntax", message=said)]
    except (ValueError, RecursionError, MemoryError):
        return []
    return []


def _files(paths: list[str], cwd: Path) -> Iterator[tuple[str, bool]]:
    """(file, whether it was named itself). Links to folders are not followed: they may lead round in circles."""
    for given in paths:
        place = Path(cwd, Path(given).expanduser())
        if not place.is_dir():
            yield str(place), True
            continue
        pending = [place]
        while pending:
            folder = pending.pop()
            try:
                entries = sorted(folder.iterdir())
            except OSError:
                continue
            for entry in entries:
                if entry.is_dir():
                    if not entry.is_symlink() and entry.name not in SKIPPED:
                        pending.append(entry)
                elif entry.suffix.lower() in LANGUAGES and language_of(str(entry)):
                    yield str(entry), False
