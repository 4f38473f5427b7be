"""Owns the words for how a case's process ended when it did not answer: its ending as a Crash. Never ends one itself."""

from __future__ import annotations

import re
import signal

from evalcore.facts import Crash
from evalcore.jobs import Limits
from evalcore.worker.birth import FAULT_STATUS
from evalcore.worker.children import Child, Ending

_SIGNALS = {
    signal.SIGSEGV: "segmentation fault: it touched memory that is not its own",
    signal.SIGBUS: "bus error: it touched memory that is not there",
    signal.SIGABRT: "aborted",
    signal.SIGFPE: "arithmetic exception, such as a division by zero",
    signal.SIGILL: "illegal instruction",
    signal.SIGXFSZ: "wrote a file larger than a case may",
}
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_DETAIL_CHARS = 4096


def tail_text(child: Child, folder: str) -> str:
    """The last of what a child printed, without control codes and without the name of our folder."""
    text = bytes(child.tail).decode(errors="replace").replace(folder, "<scratch>")
    return _CONTROL.sub("", text)[-_DETAIL_CHARS:]


def crash_of(ending: Ending, limits: Limits, detail: str) -> Crash:
    """The crash that a case's ending stands for."""
    if ending.cause == "timeout":
        return Crash(kind="timeout", message=_timeout_words(ending, limits), detail=detail)
    if ending.cause == "memory":
        return Crash(kind="out_of_memory", message=f"out of memory: {ending.message}", detail=detail)
    if ending.cause == "breach":
        return Crash(kind="killed", message=f"ended because {ending.message}", detail=detail)
    if ending.signal == signal.SIGKILL and ending.cause is None:
        words = "killed from outside, most likely by the system for want of memory"
        return Crash(kind="out_of_memory", message=words, signal=int(signal.SIGKILL), detail=detail)
    if ending.signal is not None:
        words = _SIGNALS.get(signal.Signals(ending.signal), "") if ending.signal in _known() else ""
        name = signal.Signals(ending.signal).name if ending.signal in _known() else f"signal {ending.signal}"
        return Crash(kind="killed", message=f"{words or 'ended'} ({name})", signal=ending.signal, detail=detail)
    code = ending.exit_code or 0
    if code == FAULT_STATUS:
        last = detail.strip().splitlines()[-1:] or ["no message"]
        return Crash(kind="exit", message=f"its process failed: {last[0]}", exit_code=code, detail=detail)
    return Crash(
        kind="exit", message=f"ended its own process with exit code {code}", exit_code=ending.exit_code, detail=detail
    )


def _known() -> frozenset[int]:
    return frozenset(int(each) for each in signal.Signals)


def _timeout_words(ending: Ending, limits: Limits) -> str:
    if ending.message == "build":
        return f"building took longer than {limits.build_s:g} s"
    return f"did not return within {limits.run_s:g} s: an endless loop, or far too much work"
