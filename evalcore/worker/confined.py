"""Owns running one program unmodified in the sandbox, and ending everything that it started.

For a task's own evaluator, which is somebody else's script. Never reads its output and never imports torch.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.metadata
import json
import os
import platform
import signal
import time
from collections.abc import Sequence

from evalcore.gpu.sandbox import Policy, apply
from evalcore.worker.processes import descendants, send

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="evalcore/_entry --role confined")
    parser.add_argument("--scratch", required=True, help="the only folder that may be written")
    parser.add_argument("--readable", action="append", default=[], help="a folder that may be read")
    parser.add_argument("--work", required=True, help="where the program starts, inside scratch")
    parser.add_argument("--report", type=int, required=True, help="descriptor that gets one line of JSON")
    parser.add_argument("--cuda", action="store_true", help="a CUDA context may be opened")
    parser.add_argument("program", nargs="+")
    return parser.parse_args(arguments)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run(arguments: Sequence[str]) -> int:
    """Run the program in a confined child; end with its status, or by its signal, and leave no process of it behind.

    SIGTERM, and the death of whoever started us, end the whole tree.
    """
    options = _parse(arguments)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        os._exit(_become(options))
    os.close(options.report)

    def end(_number: int, _frame: object) -> None:
        _end_all()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == 1:  # whoever started us was gone before we asked to be told
        os.kill(os.getpid(), signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    _end_all()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.WEXITSTATUS(status)


def _end_all() -> None:
    """End everything below this process; orphans, in whatever session, have become its children (subreaper)."""
    for _round in range(200):
        doomed = descendants([os.getpid()])
        if not doomed:
            return
        for pid in doomed:
            send(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _become(options: argparse.Namespace) -> int:
    """Confine this process, say what holds, become the program. Status 127 where it cannot be started."""
    os.setsid()
    held = apply(Policy(scratch=options.scratch, readable=tuple(options.readable), cuda=options.cuda))
    report = {
        "held": list(held),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "triton": _version("triton"),
    }
    os.write(options.report, json.dumps(report).encode() + b"\n")
    os.close(options.report)
    os.chdir(options.work)
    try:
        os.execvp(options.program[0], options.program)
    except OSError as problem:
        os.write(2, f"{options.program[0]}: {problem.strerror}\n".encode())
    return 127
