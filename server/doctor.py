"""Owns the examination of this machine: what is there, what is missing, the remedy for each. Installs nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from evalcore.jobs import Refusal
from server import words
from server.children.loop import Hello
from server.gpu_pool import GpuPool
from server.host import Host
from server.ledger.place import choose
from server.status import missing_of

WAIT_S = 120.0
"""How long the worker may take to come up before the doctor reports without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    message: str
    remedy: str = ""

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {"name": self.name, "ok": self.ok, "message": self.message, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, and what mode they add up to."""

    mode: str
    """One sentence: what works on this machine."""
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return all(check.ok for check in self.checks)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {"schema": 1, "ok": self.ok, "mode": self.mode, "checks": [check.plain() for check in self.checks]}


async def examine(host: Host, pool: GpuPool, folder: Path) -> Report:
    """Look at everything; brings the worker up where that is allowed."""
    pool.start()
    refusal = await _up(pool)
    facts = pool.facts
    hello = facts.compile or facts.interpret
    checks = [_server(host), _ledger(host, folder)]
    if not facts.trusted:
        message = "The folder is not trusted: nothing in it is run."
        checks.append(Check(name="trust", ok=False, message=message, remedy="Trust it."))
    elif hello is None:
        why = refusal or facts.refusal
        checks.append(
            Check(
                name="python",
                ok=False,
                message=why.message if why else "The worker did not come up.",
                remedy=why.remedy if why else "See its log in the state folder.",
            )
        )
    else:
        checks += _worker(hello, facts.interpreter.origin if facts.interpreter else "")
    named = {check.name for check in checks}
    for each in missing_of(facts):
        if each.what not in named and not (refusal and each.what == refusal.code):
            checks.append(Check(name=each.what, ok=False, message=each.message, remedy=each.remedy))
    return Report(_mode(hello, facts.trusted), tuple(checks))


async def _up(pool: GpuPool) -> Refusal | None:
    try:
        return await asyncio.wait_for(pool.up(), WAIT_S)
    except asyncio.TimeoutError:
        return Refusal(code="slow", message=f"The worker did not come up within {WAIT_S:.0f} s", remedy="See its log.")


def _server(host: Host) -> Check:
    parts = [f"{name} {_version(name)}" for name in ("odyssey-lsp", "pygls", "tree-sitter", "watchdog")]
    parts.append(f"SQLite {sqlite3.sqlite_version}")
    return Check(name="server", ok=True, message=f"{host.python}: {', '.join(parts)}; state in {host.state_dir()}")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(version not known)"


def _ledger(host: Host, folder: Path) -> Check:
    own = folder / ".odyssey"
    if not own.exists():
        return Check(name="ledger", ok=True, message=f"none yet; the first verdict makes {own}")
    place = choose(folder, host.state_dir())
    if place.note:
        return Check(name="ledger", ok=True, message=place.note)
    return Check(name="ledger", ok=True, message=str(place.database))


def _worker(hello: Hello, origin: str) -> list[Check]:
    from_ = origin or "the server"
    checks = [
        Check(name="python", ok=True, message=f"{hello.executable} (Python {hello.python}, from {from_})"),
        _package("torch", hello.torch, hello.executable),
        _package("triton", hello.triton, hello.executable),
    ]
    if hello.devices:
        for device in hello.devices:
            memory = device.get("memory_bytes")
            size = f", {words.size_bytes(int(memory))}" if isinstance(memory, int) else ""
            message = f"{device.get('name')} ({device.get('arch')}{size}, driver {device.get('driver')})"
            checks.append(Check(name="gpu", ok=True, message=message))
    else:
        checks.append(
            Check(
                name="gpu",
                ok=False,
                message=f"no CUDA device is seen from {hello.executable}",
                remedy="Without one Triton kernels run in its interpreter on the CPU: right or wrong, no times.",
            )
        )
    layers = ", ".join(hello.isolation) or "none"
    checks.append(Check(name="isolation", ok=bool(hello.isolation), message=f"a candidate is confined by: {layers}"))
    return checks


def _package(name: str, version: str | None, executable: str) -> Check:
    if version:
        return Check(name=name, ok=True, message=f"{name} {version}")
    return Check(
        name=name,
        ok=False,
        message=f"{executable} has no {name}",
        remedy=f"Install {name} there, or set odyssey.python to an interpreter that has it.",
    )


def _mode(hello: Hello | None, trusted: bool) -> str:
    if not trusted or hello is None:
        return "Text analysis only: nothing is run."
    if hello.torch is None:
        return "Text analysis only: the interpreter has no torch."
    if hello.devices:
        return "Everything: kernels are judged and timed on the card."
    return "Right or wrong by Triton's interpreter on the CPU; CUDA is compiled, not run; nothing is timed."


def text(report: Report) -> str:
    """The report for a terminal."""
    lines = [report.mode, ""]
    for check in report.checks:
        lines.append(f"{'ok     ' if check.ok else 'missing'} {check.name}: {check.message}")
        if not check.ok and check.remedy:
            lines.append(f"        -> {check.remedy}")
    return "\n".join(lines)


def markdown(report: Report) -> str:
    """The report for an editor."""
    lines = ["# Odyssey doctor", "", report.mode, ""]
    for check in report.checks:
        lines.append(f"- {'✓' if check.ok else '✗'} **{check.name}**: {check.message}")
        if not check.ok and check.remedy:
            lines.append(f"  - {check.remedy}")
    return "\n".join(lines) + "\n"
