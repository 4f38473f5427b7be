"""Owns a worker's start: arguments, clean environment, guarded stdout, warden, role. Never imports torch itself."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from evalcore.worker.environment import loop_environment
from evalcore.worker.warden import stand_guard

_FLAVOURS = ("compile", "interpret")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="evalcore/_entry", description="Odyssey's worker; started by its server.")
    parser.add_argument("--role", choices=("loop",), default="loop")
    parser.add_argument("--flavour", choices=_FLAVOURS, required=True)
    parser.add_argument("--scratch", required=True, help="folder for everything the worker writes")
    return parser.parse_args(arguments)


def start(arguments: Sequence[str], *, launcher: str) -> int:
    """Run the role that `arguments` name; `launcher` is the folder that Python was started with. Returns a status."""
    if list(arguments[:2]) == ["--role", "confined"]:
        from evalcore.worker import confined

        return confined.run(arguments[2:])
    if list(arguments[:2]) == ["--role", "specs"]:
        from evalcore.worker import specs

        return specs.run(arguments[2:])
    if list(arguments[:2]) == ["--role", "assembly"]:
        from evalcore.worker import assembly

        return assembly.run(arguments[2:])
    options = _parse(arguments)
    wanted = loop_environment(os.environ, options.flavour)
    if wanted != dict(os.environ):
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        os.execve(sys.executable, [sys.executable, *flags, launcher, *arguments], wanted)
    channel_in, channel_out = _guard_descriptors()
    stand_guard()
    from evalcore.worker.loop import run

    return run(channel_in=channel_in, channel_out=channel_out, flavour=options.flavour, scratch=options.scratch)


def _guard_descriptors() -> tuple[int, int]:
    """Keep stdin and stdout for the channel alone; whatever prints later lands in stderr, whatever reads gets nothing."""
    channel_in, channel_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return channel_in, channel_out
