"""Owns what a task's own evaluator is, as workspace.toml says it, and its pin. Never runs it.

The pin is the md5 of the evaluator's files, kept in the user's state folder: whoever may write in the workspace (an
agent, a pull request) cannot move it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalcore.jobs import Refusal
from server.ledger.place import workspace_id

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORKSPACE_FILE = "workspace.toml"
IGNORED = frozenset(("__pycache__", ".git", ".odyssey", ".pytest_cache"))
MOST_FILES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One evaluator and how it is called."""

    workspace: Path
    adapter: str
    """A key of server.evaluators.registry.ADAPTERS."""
    folder: Path
    """Everything the evaluator needs; copied whole for each run."""
    script: str
    """The program, relative to `folder`; '' where the adapter starts an installed command."""
    candidate: str
    """Where the candidate's text is put, relative to `folder`."""
    arguments: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    """Folders it may read besides its own copy: data sets, a checkout of the benchmark."""
    timeout_s: float = 600.0
    md5: str | None = None
    """The organisers' md5 of the evaluator, where they publish one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What only the adapter understands: patterns, mode, names."""


class TaskError(Exception):
    """workspace.toml does not describe an evaluator that can be run; the message names the key."""


def task_of(workspace: Path) -> Task | None:
    """The evaluator of a workspace, None where it brings none. Raises TaskError, OSError."""
    path = workspace / WORKSPACE_FILE
    if not path.is_file():
        return None
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8")).get("evaluator")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise TaskError(f"{path}: {problem}") from problem
    return None if given is None else parse(workspace, given)


KNOWN = ("adapter", "folder", "script", "candidate", "arguments", "readable", "timeout_s", "md5")


def parse(workspace: Path, given: Any) -> Task:
    """A Task from the [evaluator] table. Raises TaskError."""
    if not isinstance(given, dict):
        raise TaskError("evaluator must be a table")
    for name in ("adapter", "candidate"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise TaskError(f"evaluator.{name} is missing")
    folder = _inside(workspace, str(given.get("folder", "evaluator")), "folder")
    _inside(folder, given["candidate"], "candidate")
    script = str(given.get("script", ""))
    if script:
        _inside(folder, script, "script")
    return Task(
        workspace=workspace, adapter=given["adapter"], folder=folder, script=script, candidate=given["candidate"],
        arguments=tuple(str(each) for each in given.get("arguments", ())),
        readable=tuple((workspace / os.path.expanduser(str(each))).resolve() for each in given.get("readable", ())),
        timeout_s=float(given.get("timeout_s", 600.0)), md5=given.get("md5"),
        options={name: value for name, value in given.items() if name not in KNOWN},
    )  # fmt: skip


def _inside(root: Path, name: str, key: str) -> Path:
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise TaskError(f"evaluator.{key} = {name!r} leads out of {root}")
    return path


def files_of(task: Task) -> list[Path]:
    """The evaluator's files, relative, sorted; the candidate's place is not one of them. Links are refused."""
    found = []
    for folder, folders, names in os.walk(task.folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        for name in [*names, *folders]:
            path = Path(folder, name)
            if path.is_symlink():
                raise TaskError(f"{path} is a symbolic link; put the file itself there")
        found += [Path(folder, name).relative_to(task.folder) for name in names]
        if len(found) > MOST_FILES:
            raise TaskError(f"{task.folder} holds more than {MOST_FILES} files")
    return sorted(path for path in found if path != Path(task.candidate))


def digests(task: Task) -> tuple[str, str]:
    """(md5, sha256) of the evaluator: of the file where it is one, else of a listing as md5sum prints it."""
    files = files_of(task)
    made = []
    for kind in ("md5", "sha256"):
        each = [(hashlib.new(kind, (task.folder / path).read_bytes()).hexdigest(), path) for path in files]
        if len(each) == 1:
            made.append(each[0][0])
        else:
            listing = "".join(f"{digest}  {path.as_posix()}\n" for digest, path in each)
            made.append(hashlib.new(kind, listing.encode("utf-8", "surrogateescape")).hexdigest())
    return made[0], made[1]


def pin_file(task: Task, state_dir: Path) -> Path:
    """Where this workspace's pin is kept."""
    return state_dir / "pins" / f"{workspace_id(task.workspace.resolve())}.json"


def pin(task: Task, state_dir: Path) -> str:
    """Pin the evaluator as it is now; returns its md5."""
    md5, sha256 = digests(task)
    path = pin_file(task, state_dir)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps({"md5": md5, "sha256": sha256, "folder": str(task.folder)}) + "\n", encoding="utf-8")
    os.replace(draft, path)
    return md5


def pinned(task: Task, state_dir: Path) -> dict[str, Any] | None:
    """The pin, None before the first use."""
    try:
        value = json.loads(pin_file(task, state_dir).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def changed(task: Task, state_dir: Path) -> Refusal | None:
    """A refusal where the evaluator is not the pinned one; pins it at the first use."""
    md5, sha256 = digests(task)
    if task.md5 is not None and task.md5 != md5:
        return _refusal(f"The evaluator's md5 is {md5}; {WORKSPACE_FILE} says {task.md5}")
    known = pinned(task, state_dir)
    if known is None:
        pin(task, state_dir)
    elif known.get("sha256") != sha256:
        return _refusal(f"The evaluator was changed: its md5 is {md5}, pinned was {known.get('md5')}")
    return None


def _refusal(message: str) -> Refusal:
    remedy = "Put the organisers' files back, or, if the change is theirs, pin it anew: odyssey evaluator pin --again"
    return Refusal(code="evaluator_changed", message=message, remedy=remedy)
