"""Owns one run of an evaluator: a copy of its folder, the candidate put in, a confined process, its bounded output.

Never runs anything in the person's own folder, and leaves no process and no copy behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.evaluators.task import Task, files_of
from server.host import Host

MOST_OUTPUT_BYTES = 1 << 20
"""Of each stream the last that many bytes are kept: evaluators print their verdict last."""
GRACE_S = 10.0
"""For the confining process to end the tree below it; it answers within milliseconds."""
PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME",
    "CUDA_PATH",
    "NVIDIA_VISIBLE_DEVICES",
)
"""All that a script gets of the person's environment: no keys, no tokens, no home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an adapter wants run."""

    argv: Sequence[str]
    """'{python}' stands for the interpreter."""
    files: Mapping[str, str] = field(default_factory=dict)
    """More files to write into the copy (relative path -> text), beside the candidate."""
    environ: Mapping[str, str] = field(default_factory=dict)
    channel: str | None = None
    """Name of a variable that gets a descriptor to write a log to (GPU MODE's POPCORN_FD)."""
    results: str | None = None
    """A file or glob in the copy that is read after the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How it went."""

    exit_code: int
    """Negative: the signal that ended it."""
    timed_out: bool
    stdout: str
    stderr: str
    channel: str
    results: tuple[tuple[str, str], ...]
    """(relative path, text) of result files."""
    seconds: float
    held: tuple[str, ...]
    """Layers of the sandbox that held."""
    python: str
    torch: str | None
    triton: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Where and by whom it is run."""

    host: Host
    python: str
    """The interpreter that runs the evaluator: the person's, with torch."""
    cuda: bool = True


async def run(task: Task, plan: Plan, text: str, where: Confinement) -> Ran:
    """Run it once. Cancelling kills it. Raises OSError where the copy cannot be made."""
    scratch = Path(tempfile.mkdtemp(prefix="odyssey-evaluator-"))
    try:
        work = scratch / "work"
        copy(task, plan, text, work)
        return await _run(task, plan, where, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def copy(task: Task, plan: Plan, text: str, work: Path) -> None:
    """The evaluator's files byte for byte, the candidate at its place, the adapter's files."""
    for path in files_of(task):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(task.folder / path, work / path)
    for name, content in {task.candidate: text, **plan.files}.items():
        place = work / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode("utf-8", "surrogateescape"))


def environment(host: Host, plan: Plan, scratch: Path) -> dict[str, str]:
    """A clean environment with a home and a temporary folder of its own."""
    given = {name: value for name, value in host.environ.items() if name in PASSED_ON}
    for name in ("home", "tmp"):
        (scratch / name).mkdir(exist_ok=True)
    own = {"HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp"), "PYTHONUNBUFFERED": "1",
           "PYTHONDONTWRITEBYTECODE": "1", "TRITON_CACHE_DIR": str(scratch / "tmp" / "triton"),
           "TORCH_EXTENSIONS_DIR": str(scratch / "tmp" / "torch")}  # fmt: skip
    return {**given, **own, **plan.environ}


async def _run(task: Task, plan: Plan, where: Confinement, scratch: Path) -> Ran:
    environ = environment(where.host, plan, scratch)
    pipes = {name: os.pipe() for name in ("stdout", "stderr", "report", "channel")}
    writers = {name: pair[1] for name, pair in pipes.items()}
    if plan.channel is not None:
        environ[plan.channel] = str(writers["channel"])
    started = time.monotonic()
    try:
        # our own pipes: asyncio's wait() would wait for every grandchild that holds on to one of its
        process = await asyncio.create_subprocess_exec(
            *_argv(task, plan, where, scratch, writers["report"]), stdin=asyncio.subprocess.DEVNULL,
            stdout=writers["stdout"], stderr=writers["stderr"], env=environ, cwd=scratch, start_new_session=True,
            pass_fds=(writers["report"], writers["channel"]),
        )  # fmt: skip
    except BaseException:
        for reader, _ in pipes.values():
            os.close(reader)
        raise
    finally:
        for writer in writers.values():
            os.close(writer)
    tails = {name: asyncio.ensure_future(_tail(reader)) for name, (reader, _) in pipes.items()}
    timed_out = await _ended(process, task.timeout_s)
    said = dict(zip(tails, await asyncio.gather(*tails.values()), strict=True))
    held = _report(said["report"])
    return Ran(
        exit_code=process.returncode if process.returncode is not None else -signal.SIGKILL, timed_out=timed_out,
        stdout=said["stdout"], stderr=said["stderr"], channel=said["channel"],
        results=_results(scratch / "work", plan.results), seconds=time.monotonic() - started,
        held=tuple(held.get("held") or ()), python=str(held.get("python") or ""), torch=held.get("torch"),
        triton=held.get("triton"),
    )  # fmt: skip


def _argv(task: Task, plan: Plan, where: Confinement, scratch: Path, report: int) -> list[str]:
    entry = where.host.package_root / "evalcore" / "_entry"
    readable = [option for path in task.readable for option in ("--readable", str(path))]
    return [
        where.python, str(entry), "--role", "confined", "--scratch", str(scratch), "--work", str(scratch / "work"),
        "--report", str(report), *readable, *(["--cuda"] if where.cuda else []), "--",
        *(each.replace("{python}", where.python) for each in plan.argv),
    ]  # fmt: skip


async def _ended(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    """Wait for its end; where time runs out or we are cancelled, have its whole tree ended. True where time ran out."""
    try:
        await asyncio.wait_for(process.wait(), timeout_s)
    except asyncio.TimeoutError:
        return True
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), GRACE_S)
            except asyncio.TimeoutError:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    return False


def _report(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def _tail(descriptor: int) -> str:
    """The last part of what comes through a pipe."""
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    kept = b""
    try:
        while block := await reader.read(1 << 16):
            kept = (kept + block)[-MOST_OUTPUT_BYTES:]
    finally:
        transport.close()
    return kept.decode("utf-8", "replace")


def _results(work: Path, pattern: str | None) -> tuple[tuple[str, str], ...]:
    """Result files, regular ones only (a link could lead anywhere), each cut to a bound."""
    if pattern is None:
        return ()
    found = []
    for path in sorted(work.glob(pattern))[:64]:
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            size = path.stat().st_size
            file.seek(max(0, size - 16 * MOST_OUTPUT_BYTES))
            found.append((path.relative_to(work).as_posix(), file.read().decode("utf-8", "replace")))
    return tuple(found)
