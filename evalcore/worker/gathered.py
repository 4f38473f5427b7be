"""Owns the facts of one evaluation as they come in, and what follows from its job alone. Never asks anybody."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from evalcore.facts import BuildLog, Crash, RawProfile, Samples, Trial
from evalcore.jobs import EvalJob, Refusal
from evalcore.problem import Case, Problem, ProgramKind, Work
from evalcore.run_facts import OutsideClock
from evalcore.screen import ReferenceNames, ScreenHit, screen
from evalcore.worker.relay import Learned
from evalcore.worker.station import Station


class Refused(Exception):
    """The job cannot be done here."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(code=code, message=message, remedy=remedy)


@dataclass(slots=True, kw_only=True)
class Gathered:
    """Facts as they come in."""

    cases: list[Case] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    work: list[tuple[str, Work]] = field(default_factory=list)
    probes: tuple[dict[str, Any], ...] = ()
    learned: Learned | None = None
    canaries: tuple[str, ...] = ()
    build: BuildLog | None = None
    crash: Crash | None = None
    reference_crash: Crash | None = None
    profile: RawProfile | None = None
    outside: OutsideClock | None = None
    flags: dict[str, Any] = field(default_factory=dict)
    """Precision flags that stood while the reference ran."""
    reference_files: tuple[tuple[str, str], ...] = ()


def device_of(station: Station, job: EvalJob) -> str:
    """'cpu' or 'cuda:N' for a job. Raises Refused where this loop cannot serve it."""
    if station.stack.torch is None:
        raise Refused("no_torch", "this Python has no torch", "choose a Python that has torch, or install it")
    device = station.device_for(job.device)
    if device is None:
        words = f"no device {job.device!r} here"
        if not station.devices and station.why_no_device:
            words += f": {station.why_no_device}"
        raise Refused("no_gpu", words, "choose another device, or 'cpu' to run the interpreter")
    return device


def line_case(job: EvalJob) -> Case:
    """The case that stands on the line."""
    cases = job.problem.cases or (Case(name="as given"),)
    return next((case for case in cases if case.name == job.case), cases[0])


def screen_candidate(problem: Problem) -> list[ScreenHit]:
    """What the candidate's text tries, found by syntax."""
    candidate, reference = problem.candidate, problem.reference
    language = "cuda" if candidate.kind is ProgramKind.CUDA_KERNEL else "triton"
    module = PurePath(reference.path).stem if reference.path != candidate.path else ""
    names = ReferenceNames(entry=reference.entry, module=module, candidate=candidate.entry)
    return screen(candidate.text, language, names)


def launched(problem: Problem, learned: Learned) -> bool | None:
    """Whether a kernel of the candidate's own ran; None where that cannot be seen, as in a C++ extension."""
    if any(kernel.launches for kernel in learned.kernels):
        return True
    text = problem.candidate.text
    hidden = any(word in text for word in ("cpp_extension", "load_inline", "ctypes", "RawKernel", "RawModule"))
    return None if hidden else False
