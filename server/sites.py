"""Owns what is known about a text before it is judged: kernels (Site), how each is judged (Bound). Decides nothing.

Spans are UTF-8 byte offsets. The reader children make these from trees; nothing here touches a tree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalcore.problem import Problem, Program
from evalcore.wire import decode, encode
from server.analysis.finding import Fix, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One kernel in a text, or the entry of a problem that has no kernel of its own."""

    name: str
    language: str
    """'triton', 'cuda' or 'entry'."""
    span: Span
    name_span: Span
    """The name in its definition: verdicts stand on this line."""
    helper: bool = False
    """Whether only other kernels of this text call it: it is judged with them and carries no lens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How some kernels of a text are judged, or why they cannot be: either `packed` or `refusal_code` is set."""

    anchor: str
    """Name of the site that the verdict stands beside."""
    kernels: tuple[str, ...]
    format: str = ""
    cases: tuple[str, ...] = ()
    """Names of the problem's cases, the one that stands on the line first."""
    evidence: str = ""
    refusal_code: str = ""
    refusal_words: str = ""
    place: tuple[int, int] | None = None
    """Line and column from 1 of what is in the way, where it has a place."""
    fixes: tuple[Fix, ...] = ()
    depends: tuple[str, ...] = ()
    """Absolute paths of project files that the verdict depends on, as far as syntax shows."""
    packed: str = ""
    """The Problem as JSON, its texts by number: a file of 100 kernels would otherwise carry its text 200 times."""
    texts: tuple[str, ...] = ()
    """The numbered texts, shared between the bounds of one file."""

    def problem(self) -> Problem | None:
        """The Problem, made anew on each call; None where there is none."""
        return unpacked(self.packed, self.texts) if self.packed else None


def packed(problem: Problem, texts: list[str]) -> str:
    """A Problem as JSON, its two texts moved into `texts` (which grows) and left as their numbers."""
    slim = replace(
        problem,
        reference=replace(problem.reference, text=str(_number(problem.reference.text, texts))),
        candidate=replace(problem.candidate, text=str(_number(problem.candidate.text, texts))),
    )
    return json.dumps(encode(slim), separators=(",", ":"))


def unpacked(slim: str, texts: Sequence[str]) -> Problem:
    """What `packed` made, with its texts again. Raises WireError where it is none."""
    problem = decode(Problem, json.loads(slim))
    return replace(
        problem,
        reference=_with_text(problem.reference, texts),
        candidate=_with_text(problem.candidate, texts),
    )


def pack_bounds(bounds: tuple[Bound, ...], own_text: str) -> dict[str, Any]:
    """Bounds as plain JSON; the asker has text 0 already."""
    texts = bounds[0].texts if bounds else ()
    assert not texts or texts[0] == own_text
    slim = [encode(replace(bound, texts=())) for bound in bounds]
    return {"bounds": slim, "texts": list(texts[1:])}


def unpack_bounds(frame: dict[str, Any], own_text: str) -> tuple[Bound, ...]:
    """What `pack_bounds` made."""
    texts = (own_text, *frame["texts"])
    return tuple(replace(decode(Bound, each), texts=texts) for each in frame["bounds"])


def _number(text: str, texts: list[str]) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def _with_text(program: Program, texts: Sequence[str]) -> Program:
    return replace(program, text=texts[int(program.text)])
