"""Owns making a workspace, new or from another one, whose evidence stays behind: it is about another card.

Never overwrites anything and never follows a link out of the workspace it copies from.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from evalcore.problem import Problem
from server.evaluators import task as tasks
from server.evaluators.task import IGNORED, WORKSPACE_FILE
from server.ledger.columns import Row
from server.ledger.evidence import NoEvidence, evidence
from server.ledger.listing import WORDS
from server.words import duration, ratio
from server.workspaces.shape_sets import shape_sets

CARRIED = ("phases", "skills", "evaluator", "candidates", "rules.md")
"""What `--from` takes along, besides the kernels and references in the folder itself."""
SOURCES = (".py", ".cu", ".cuh", ".toml")
MOST_TEXTS = 100


class CannotMake(Exception):
    """The workspace cannot be made; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """The organisers' judge to put into a new workspace."""

    adapter: str
    path: Path
    """A script, or the folder that it stands in."""
    script: str = ""
    candidate: str = "candidate.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What was made."""

    folder: Path
    files: tuple[str, ...]
    shapes: Mapping[str, int]
    """Set name -> number of shapes."""
    carried: int = 0
    """Candidates that came along from the other workspace's ledger."""
    left_behind: str | None = None
    evaluator_md5: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Work:
    folder: Path
    notes: list[str] = field(default_factory=list)


def make(
    folder: Path,
    *,
    state_dir: Path,
    problem: Problem | None = None,
    evaluator: Evaluator | None = None,
    source: Path | None = None,
) -> Made:
    """Make `folder`; with `source` that one's evaluator and candidates come along. Raises CannotMake, OSError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotMake(f"{folder} exists and is not empty")
    if source is not None and not (source / WORKSPACE_FILE).is_file():
        raise CannotMake(f"{source} is no workspace: it has no {WORKSPACE_FILE}")
    folder.mkdir(parents=True, exist_ok=True)
    work = _Work(folder.resolve())
    carried, left = 0, None
    if source is not None:
        _carry(work, source.resolve())
        carried, left = _carry_candidates(work, source.resolve())
    _templates(work)
    if problem is not None:
        _put_problem(work, problem)
    if evaluator is not None:
        _put_evaluator(work, evaluator)
    sets = shape_sets(problem) if problem is not None else {}
    toml = work.folder / WORKSPACE_FILE
    if not toml.exists():
        toml.write_text(_toml(work.folder.name, problem, evaluator, sets), encoding="utf-8")
    md5 = _pin(work, state_dir)
    files = sorted(str(path.relative_to(work.folder)) for path in work.folder.rglob("*") if path.is_file())
    return Made(
        folder=work.folder, files=tuple(files), shapes={name: len(each) for name, each in sets.items()},
        carried=carried, left_behind=left, evaluator_md5=md5, notes=tuple(work.notes),
    )  # fmt: skip


def _templates(work: _Work) -> None:
    """Phases, rules and notes that are not there yet."""
    root = resources.files("server.workspaces") / "templates"
    pending = [(root, Path())]
    while pending:
        place, relative = pending.pop()
        for each in place.iterdir():
            target = work.folder / relative / each.name
            if each.is_dir():
                target.mkdir(exist_ok=True)
                pending.append((each, relative / each.name))
            elif not target.exists():
                target.write_text(each.read_text(encoding="utf-8"), encoding="utf-8")


def _put_problem(work: _Work, problem: Problem) -> None:
    """The files of the task: the candidate's as first candidate, the reference's beside it."""
    for program in {problem.reference.path: problem.reference, problem.candidate.path: problem.candidate}.values():
        target = work.folder / Path(program.path).name
        if not target.exists():
            shutil.copyfile(program.path, target, follow_symlinks=True)


def _put_evaluator(work: _Work, evaluator: Evaluator) -> None:
    target = work.folder / "evaluator"
    if evaluator.path.is_dir():
        shutil.copytree(evaluator.path, target, ignore=_no_links_no_caches, dirs_exist_ok=True)
    else:
        target.mkdir(exist_ok=True)
        shutil.copyfile(evaluator.path, target / evaluator.path.name)


def _no_links_no_caches(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in IGNORED or os.path.islink(os.path.join(folder, name))}


def _pin(work: _Work, state_dir: Path) -> str | None:
    try:
        task = tasks.task_of(work.folder)
        return tasks.pin(task, state_dir) if task is not None else None
    except tasks.TaskError as problem:
        work.notes.append(f"the evaluator is not pinned: {problem}")
        return None


def _carry(work: _Work, source: Path) -> None:
    """The other workspace's rules, phases, skills, evaluator, candidates, kernels. No ledger, no plots, no links."""
    names = [*CARRIED, *(path.name for path in source.iterdir() if path.suffix in SOURCES)]
    for name in sorted(set(names)):
        path, target = source / name, work.folder / name
        if path.is_symlink():
            work.notes.append(f"{name} is a symbolic link and was left out")
        elif path.is_dir():
            shutil.copytree(path, target, ignore=_no_links_no_caches)
        elif path.is_file():
            shutil.copyfile(path, target)


def _carry_candidates(work: _Work, source: Path) -> tuple[int, str | None]:
    """Texts that the other ledger found right, as files; their numbers only struck out, in an index."""
    try:
        with evidence(source / ".odyssey") as ledger:
            nodes = [node for node in ledger.map().nodes if node.status == "correct" and node.buried is None]
            rows = [ledger.row(node.seq) for node in nodes[-MOST_TEXTS:]]
            for row in rows:
                text = ledger.text(row.kernel_sha)
                if text is not None:
                    target = work.folder / "candidates" / _file_name(row)
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(text.encode("utf-8", "surrogateescape"))
            total = ledger.last_seq()
    except NoEvidence:
        return 0, None
    index = "".join(f"| {_file_name(row)} | {row.author} | {_flat(row.intent)} | {_struck(row)} |\n" for row in rows)
    head = "# Carried over, not measured here\n\n| file | made by | intent | measured elsewhere |\n|---|---|---|---|\n"
    (work.folder / "candidates" / "CARRIED.md").write_text(head + index, encoding="utf-8")
    return len(rows), f"{total} rows of {source / '.odyssey'} stay there: they are evidence about another place"


def _file_name(row: Row) -> str:
    readable = "".join(c if c.isalnum() or c in "-_" else "_" for c in row.kernel)[:40]
    return f"{readable}-{row.kernel_sha[:12]}{Path(row.file).suffix or '.py'}"


def _struck(row: Row) -> str:
    figures = " ".join(part for part in (duration(row.runtime_us) if row.runtime_us else "",
                                         ratio(row.speedup) if row.speedup else "") if part)  # fmt: skip
    words = f"{WORDS[row.status]} {figures}".strip()
    return f"~~{words}~~ on {row.card or 'no card'}"


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")


def _toml(
    name: str, problem: Problem | None, evaluator: Evaluator | None, sets: Mapping[str, list[dict[str, int]]]
) -> str:
    lines = ["# What this workspace is. Shapes are sets of the problem's size constants.", f"name = {_value(name)}"]
    if problem is not None:
        kernel = (problem.kernels or (problem.candidate.entry,))[0]
        about = {"file": Path(problem.candidate.path).name, "kernel": kernel,
                 "format": problem.format}  # fmt: skip
        lines += ["", "[problem]", *(f"{key} = {_value(value)}" for key, value in about.items())]
    if evaluator is not None:
        script = evaluator.script or (evaluator.path.name if evaluator.path.is_file() else "")
        lines += ["", "# Run unmodified; its verdict is the only one. Pinned when this file was made.", "[evaluator]",
                  f"adapter = {_value(evaluator.adapter)}", f"script = {_value(script)}",
                  f"candidate = {_value(evaluator.candidate)}", "timeout_s = 600.0"]  # fmt: skip
    lines += ["", "[shapes]"]
    for key in ("smoke", "dev", "stress"):
        rows = [f"  {{ {', '.join(f'{n} = {v}' for n, v in sizes.items())} }}," for sizes in sets.get(key, ()) if sizes]
        lines += [f"{key} = [", *rows, "]"]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A TOML basic string."""
    text = str(value)
    escaped = "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c) if ord(c) >= 32 and ord(c) != 127 else f"\\u{ord(c):04x}" for c in text
    )
    return f'"{escaped}"'


def shapes_of(workspace: Path) -> dict[str, list[dict[str, int]]]:
    """The shape sets that a workspace names, {} where it names none. Raises TaskError for a bad file."""
    path = workspace / WORKSPACE_FILE
    if not path.is_file():
        return {}
    try:
        given = tasks.tomllib.loads(path.read_text(encoding="utf-8")).get("shapes", {})
    except (tasks.tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise tasks.TaskError(f"{path}: {problem}") from problem
    found: dict[str, list[dict[str, int]]] = {}
    for name, rows in given.items() if isinstance(given, dict) else ():
        found[name] = [_checked(row, path) for row in _rows(rows)]
    return found


def _rows(rows: Any) -> Iterable[Any]:
    return rows if isinstance(rows, list) else ()


def _checked(row: Any, path: Path) -> dict[str, int]:
    if not isinstance(row, dict) or not all(isinstance(v, int) and not isinstance(v, bool) for v in row.values()):
        raise tasks.TaskError(f"{path}: a shape is a table of whole numbers, not {row!r}")
    return dict(row)
