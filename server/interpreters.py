"""Owns finding the person's Python: setting, editor, VIRTUAL_ENV, our own. Never imports torch; a probe looks for it.

A probe runs the interpreter, so it is never done in a folder that is not trusted.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from evalcore.jobs import Refusal
from server.host import Host

PROBE_S = 30.0
"""A pyenv shim on a cold network home has taken seconds."""

OLDEST = (3, 10)

_PROBE = (  # in the syntax of any Python, so that an old one can say how old it is
    "import sys,json\n"
    "def v(n):\n"
    " try:\n"
    "  from importlib import util,metadata as m\n"
    "  return m.version(n) if util.find_spec(n) else None\n"
    " except Exception: return None\n"
    "print(json.dumps({'executable':sys.executable,'version':'%d.%d.%d'%sys.version_info[:3],"
    "'torch':v('torch'),'triton':v('triton')}))\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that could run kernels."""

    path: str
    origin: str
    """'odyssey.python', 'the editor', 'VIRTUAL_ENV' or 'the server'."""
    version: str = ""
    torch: str | None = None
    triton: str | None = None


def candidates(host: Host, setting: str, editor_python: str) -> list[tuple[str, str]]:
    """(path, origin) in the order in which they are asked."""
    if setting:
        return [(_resolved(host, setting), "odyssey.python")]
    found = []
    if editor_python:
        found.append((_resolved(host, editor_python), "the editor"))
    if environment := host.environ.get("VIRTUAL_ENV"):
        found.append((str(Path(environment) / "bin" / "python"), "VIRTUAL_ENV"))
    found.append((host.python, "the server"))
    return found


async def choose(host: Host, setting: str, editor_python: str) -> Interpreter | Refusal:
    """The first that has torch; else the first that starts; else why none does. A setting is taken at its word."""
    probed: list[Interpreter] = []
    problems: list[str] = []
    for path, origin in candidates(host, setting, editor_python):
        found = await probe(host, path, origin)
        if isinstance(found, Interpreter):
            if found.torch:
                return found
            probed.append(found)
        else:
            problems.append(found)
    if probed:
        return probed[0]
    return Refusal(
        code="no_python",
        message="; ".join(problems) or "No Python was found",
        remedy="Set odyssey.python to an interpreter that has torch and triton.",
    )


async def probe(host: Host, path: str, origin: str) -> Interpreter | str:
    """Ask an interpreter for its version and what it has; a sentence where it cannot say."""
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            "-c",
            _PROBE,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=host.environ,
            cwd="/",
            start_new_session=True,
        )
    except OSError as problem:
        return f"{path} ({origin}) cannot be started: {problem.strerror or problem}"
    try:
        out, err = await asyncio.wait_for(process.communicate(), PROBE_S)
        facts = json.loads(out.decode("utf-8", "replace").strip().splitlines()[-1])
        version = str(facts["version"])
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            return f"{path} ({origin}) is Python {version}; the oldest that works is {OLDEST[0]}.{OLDEST[1]}"
        return Interpreter(
            path=path,
            origin=origin,
            version=version,
            torch=facts["torch"],
            triton=facts["triton"],
        )
    except (asyncio.TimeoutError, asyncio.CancelledError) as ended:
        process.kill()
        if isinstance(ended, asyncio.CancelledError):
            raise
        return f"{path} ({origin}) did not answer within {PROBE_S:.0f} s"
    except (ValueError, KeyError, IndexError, TypeError):
        tail = err.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no output"]
        return f"{path} ({origin}) is no working Python: {tail[0][:200]}"


def _resolved(host: Host, command: str) -> str:
    expanded = str(Path(command).expanduser()) if command.startswith("~") else command
    if "/" in expanded:
        return expanded
    return host.which(expanded) or expanded
