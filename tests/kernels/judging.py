"""Judges a file of examples as the server would: bound by syntax, sent to a real loop."""

from __future__ import annotations

from pathlib import Path

from evalcore.bindings.registry import bind
from evalcore.jobs import Limits, Measurement, Mode, Refusal
from tests.unit.evalcore_worker.real_loop import RealLoop

IMPATIENT = Limits(build_s=60.0, run_s=3.0)
"""For endless loops."""
PATIENT = Limits(build_s=180.0, run_s=60.0)


def read(path: str) -> str | None:
    """A sibling file's text, or None."""
    try:
        return Path(path).read_text("utf-8")
    except OSError:
        return None


def judge_file(
    loop: RealLoop, path: Path, *, limits: Limits = PATIENT, mode: Mode = Mode.FAST, device: str = "auto"
) -> Measurement:
    """Bind a file without configuration and judge its first binding."""
    bound = bind(str(path), path.read_text("utf-8"), read=read)
    assert not isinstance(bound, Refusal), f"{path.name} is bound to nothing: {bound}"
    return loop.evaluate(bound[0].problem, limits=limits, mode=mode, device=device)


def place_of(text: str, piece: str) -> tuple[int, int]:
    """(line, column), from 1, of the first place of `piece`."""
    start = text.index(piece)
    line = text.count("\n", 0, start) + 1
    return line, start - (text.rfind("\n", 0, start) + 1) + 1
