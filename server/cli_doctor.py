"""Owns `odyssey doctor`: the examination, printed. Never repairs."""

from __future__ import annotations

import argparse
import asyncio
import json

from server import doctor
from server.config import Settings
from server.gpu_pool import GpuPool
from server.host import Host


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "doctor",
        help="say what is missing on this machine",
        description="Start the worker once and say what is there, what is missing, and what would supply it.",
        epilog="Exits 0 where nothing is missing, 1 otherwise.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--python", default="", metavar="P", help="interpreter to look at")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, host: Host) -> int:
    report = asyncio.run(_examine(options, host))
    print(json.dumps(report.plain()) if options.json else doctor.text(report))
    return 0 if report.ok else 1


async def _examine(options: argparse.Namespace, host: Host) -> doctor.Report:
    pool = GpuPool(host, lambda: None)
    pool.configure(Settings(python=options.python))
    try:
        return await doctor.examine(host, pool, host.cwd())
    finally:
        await pool.close()
