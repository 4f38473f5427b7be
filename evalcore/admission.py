"""Owns the admission rule and the dispatch table: which candidate serves which group of shapes. Pure; never measures.

A candidate is admitted to a group only when it is right on every case of the group, dense and padded, and its worst
case there is above the bar; else the baseline path stays. Among admitted ones an interleaved A/B decides, and a tie
goes to the simpler one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

BAR = 1.05
"""Worst-case speedup over the baseline that a candidate must exceed: less is inside what cards differ by in a day."""

FASTER, SLOWER, SAME, AMBIGUOUS = "faster", "slower", "same", "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases that take the same path."""

    name: str
    cases: tuple[str, ...]
    """Timed cases, by name. Never empty."""
    guards: tuple[str, ...] = ()
    """Cases that must be right but are not timed: odd neighbours, padded variants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFigures:
    """What is known about a candidate on one case."""

    right: bool
    runtime_us: float | None = None
    ref_runtime_us: float | None = None
    """The baseline's time, by the same timer on the same card in the same run."""

    @property
    def speedup(self) -> float | None:
        """Baseline over candidate; None where either was not measured."""
        return self.ref_runtime_us / self.runtime_us if self.runtime_us and self.ref_runtime_us else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One text with its figures. All of one card and one problem."""

    sha: str
    complexity: int
    """Smaller is simpler: what decides a tie."""
    cases: Mapping[str, CaseFigures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The answer for one candidate and one group."""

    group: str
    sha: str
    admitted: bool
    worst_speedup: float | None
    reason: str
    """For a person: 'worst case 1.31x on 4096x4096', 'wrong on 1x1', ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What serves a group."""

    group: Group
    winner: str | None
    """sha; None: the baseline stays."""
    admissions: tuple[Admission, ...]
    reason: str


def admit(group: Group, candidate: Candidate, *, bar: float = BAR) -> Admission:
    """Whether a candidate may serve a group."""

    def answer(admitted: bool, reason: str, worst: float | None = None) -> Admission:
        return Admission(group=group.name, sha=candidate.sha, admitted=admitted, worst_speedup=worst, reason=reason)

    if not group.cases:
        return answer(False, "the group has no timed case")
    for name in (*group.cases, *group.guards):
        figures = candidate.cases.get(name)
        if figures is None:
            return answer(False, f"not judged on {name}")
        if not figures.right:
            return answer(False, f"wrong on {name}")
    speedups = {name: candidate.cases[name].speedup for name in group.cases}
    untimed = [name for name, speedup in speedups.items() if speedup is None]
    if untimed:
        return answer(False, f"not timed on {untimed[0]}")
    slowest = min(group.cases, key=lambda name: speedups[name] or 0.0)
    worst = speedups[slowest] or 0.0
    words = f"worst case {worst:.3g}x on {slowest}"
    if worst > bar:
        return answer(True, words, worst)
    return answer(False, f"{words}, not above {bar:g}x", worst)


def group_verdict(verdicts: Sequence[str]) -> str:
    """One verdict for a group from those of its cases: faster only where no case is slower. Anything mixed is a tie."""
    if any(verdict == FASTER for verdict in verdicts) and not any(verdict == SLOWER for verdict in verdicts):
        return FASTER
    if any(verdict == SLOWER for verdict in verdicts) and not any(verdict == FASTER for verdict in verdicts):
        return SLOWER
    return SAME


def choose(
    group: Group, candidates: Sequence[Candidate], duel: Callable[[Candidate, Candidate], str], *, bar: float = BAR
) -> Choice:
    """The winner of a group. `duel(a, b)` says how a is against b ('faster', ...), by interleaved A/B over the group.

    The simplest admitted one is champion; each next challenges it and takes its place only by being faster.
    """
    admissions = tuple(admit(group, candidate, bar=bar) for candidate in candidates)
    admitted = [candidate for candidate, each in zip(candidates, admissions, strict=True) if each.admitted]
    if not admitted:
        return Choice(group=group, winner=None, admissions=admissions, reason="no candidate is admitted")
    ranked = sorted(admitted, key=lambda candidate: (candidate.complexity, candidate.sha))
    champion, reason = ranked[0], "the only one admitted" if len(ranked) == 1 else "the simplest; none is faster"
    for challenger in ranked[1:]:
        if duel(challenger, champion) == FASTER:
            champion, reason = challenger, f"faster than {champion.sha[:12]} by interleaved A/B"
    return Choice(group=group, winner=champion.sha, admissions=admissions, reason=reason)


def complexity(text: str) -> int:
    """How much there is to read: characters of a text without comments' lines, blanks and indentation."""
    return sum(len(line.strip()) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
