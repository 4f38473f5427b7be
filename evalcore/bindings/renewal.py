"""Owns carrying a problem over to a newer text of the candidate that cannot be bound itself. Never judges.

While a line is half-written the file does not parse, and nothing in it can be found; the person still wants the compile
error of the save. Reference and inputs then stay those of the last text that could be read.
"""

from __future__ import annotations

from dataclasses import replace

from evalcore.problem import Problem

_APPENDED = "\n\n\ndef odyssey_candidate("


def renewed(problem: Problem, text: str) -> Problem:
    """The same problem with `text` as the candidate's file."""
    old = problem.candidate
    written = old.text.rfind(_APPENDED) if old.entry == "odyssey_candidate" else -1
    whole = f"{text.rstrip()}{old.text[written:]}" if written >= 0 else text
    return replace(problem, candidate=replace(old, text=whole))
