"""Owns asking git where a text stands: the commit, and whether the file differs from it. Never writes."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from server.host import Host

ANSWER_S = 3.0

_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""A repository's own configuration may name programs to run; none of them is needed for a question."""


@dataclass(frozen=True, slots=True)
class GitFacts:
    """None where the file is in no repository or git is not there."""

    sha: str | None = None
    dirty: bool | None = None


async def git_facts(host: Host, path: str) -> GitFacts:
    """The commit that is checked out around a file, and whether the file differs from it."""
    git = host.which("git")
    folder = Path(path).parent
    if git is None or not folder.is_dir():
        return GitFacts()
    head = await _run(host, git, folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if head is None or head[0] != 0:
        return GitFacts()
    clean = await _run(host, git, folder, "diff", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--", path)
    tracked = await _run(host, git, folder, "ls-files", "--error-unmatch", "--", path)
    dirty = None if clean is None or tracked is None else clean[0] != 0 or tracked[0] != 0
    return GitFacts(head[1].strip() or None, dirty)


async def _run(host: Host, git: str, folder: Path, *arguments: str) -> tuple[int, str] | None:
    environ = {**host.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        process = await asyncio.create_subprocess_exec(
            git, *_QUIET, "-C", str(folder), *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env=environ, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    try:
        out, _ = await asyncio.wait_for(process.communicate(), ANSWER_S)
    except (asyncio.TimeoutError, asyncio.CancelledError) as ended:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if isinstance(ended, asyncio.CancelledError):
            raise
        return None
    return process.returncode or 0, out.decode("utf-8", "replace")
