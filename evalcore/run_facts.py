"""Owns the bundle of facts that the judge sees, and the verdict that comes out. Never decides.

The worker's loop fills RunFacts from what referee, case and timers reported; nothing in it is an opinion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalcore.facts import BuildLog, Ceilings, Crash, KernelFacts, RawProfile, Samples, Trial
from evalcore.jobs import CaseReport, Flag, Mode, Reason
from evalcore.problem import Case, Problem, Work
from evalcore.results import EvalResult, ProfileData
from evalcore.screen import ScreenHit


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideClock:
    """N launches timed from outside the case, by the loop's own clock, their outputs checked afterwards."""

    launches: int
    seconds: float
    """Wall clock from the order to go to the arrival of the last checked output, less the same for no launches."""
    outputs_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Everything that was observed about one text."""

    problem: Problem
    mode: Mode = Mode.FAST
    trusted: bool = True
    interpreted: bool = False
    cases: tuple[Case, ...] = ()
    """Every case that was tried, given ones first; their trials name them."""
    line_case: str = ""
    """The case that stands on the line; '' for the first of `cases`."""
    trials: tuple[Trial, ...] = ()
    samples: tuple[Samples, ...] = ()
    work: tuple[tuple[str, Work], ...] = ()
    """(case name, counted work)."""
    ceilings: Ceilings | None = None
    build: BuildLog | None = None
    crash: Crash | None = None
    """How the case ended before its trials were complete; a crash inside one trial stands in that trial."""
    reference_crash: Crash | None = None
    """The reference itself failed on its own inputs: nothing can be said about the candidate."""
    screen: tuple[ScreenHit, ...] = ()
    kernels: tuple[KernelFacts, ...] = ()
    """Kernels that were really launched (launches > 0) or compiled."""
    launched: bool | None = None
    """Whether any kernel of the candidate's own was launched; None where that cannot be seen (a C++ extension)."""
    called_reference: bool = False
    """The reference's entry, as it stands in the candidate's own module, was called during a trial."""
    tampered: tuple[str, ...] = ()
    """Functions of torch, time or ours found replaced after the run."""
    threads_left: int | None = None
    """Threads that the candidate started and that still ran when it had returned."""
    canaries: tuple[str, ...] = ()
    """Inputs beside whose memory the candidate wrote."""
    profile: RawProfile | None = None
    outside: OutsideClock | None = None
    probes: tuple[dict[str, Any], ...] = ()
    """Test of the test, from evalcore.gpu.probes: {"probe", "caught", "caught_by_measured", "case"}."""
    notes: tuple[Flag, ...] = ()
    """What loading and running already knew: 'bf16-as-fp32', 'autotune-configs', ..."""
    opponents: tuple[dict[str, Any], ...] = ()
    precision: str | None = None
    """'tf32' where the candidate's matrix products may run in it: another roof applies. None otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the judge says: the parts of a Measurement that are opinion."""

    result: EvalResult
    reason: Reason | None
    flags: tuple[Flag, ...] = ()
    cases: tuple[CaseReport, ...] = ()
    regime: str | None = None
    floor_us: float | None = None
    profile: ProfileData | None = None
    timing: dict[str, Any] | None = None
    clock: str = ""
    """For Environment.hostile_clock: 'inside', 'bounded', or '' where nothing was timed."""
