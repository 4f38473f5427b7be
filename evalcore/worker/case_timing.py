"""Owns the timed part of a case: inputs by refill from the referee, outputs offered for checking. Never judges.

Values come from the referee at the moment of use, written into buffers of ours at addresses that move on; which outputs
are checked is decided by the loop, after the launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evalcore.gpu.ab import Sides, interleave
from evalcore.gpu.activity import RecorderError
from evalcore.gpu.answer import answer
from evalcore.gpu.compare import compare
from evalcore.gpu.kernel_profile import from_launches, launched_kernels
from evalcore.gpu.loading import make_inputs
from evalcore.gpu.opponents import OpponentOptions, measure_opponent
from evalcore.gpu.outputs import flatten
from evalcore.gpu.ring import SHIFT_BYTES, SHIFTS, LocalRing, place
from evalcore.gpu.stalls import sample_stalls
from evalcore.stats import StopRule
from evalcore.wire import encode

if TYPE_CHECKING:
    from evalcore.gpu.timing import Clock, Labels
    from evalcore.worker.case import Case

Body = dict[str, Any]

MARGIN_BYTES = SHIFTS * SHIFT_BYTES
"""How much longer than its tensor each buffer of the ring is, so that addresses can move on in it."""


class Refused(RuntimeError):
    """The loop would not, or could not, do what a timed call needed; the case ends with this."""


class RefereeRing:
    """Inputs of timed calls, as `evalcore.gpu.ring.Ring` asks: fresh values at other addresses, a window at a time."""

    def __init__(self, case: Case, *, slots: int) -> None:
        self._case = case
        self._slots = slots
        self._ready: range = range(0)

    def next(self, index: int) -> list[Any]:
        """Inputs of call `index`. A whole round of slots is refilled at once: one wait for as many calls."""
        if index not in self._ready:
            self._refill(index)
        slot, offset = place(index, self._slots)
        return self._case.lent[f"ring-{slot}"].arguments(offset)

    def _refill(self, first: int) -> None:
        case, fills = self._case, []
        self._ready = range(first, first + self._slots)
        for index in self._ready:
            slot, offset = place(index, self._slots)
            fills.append({"slot": slot, "offset": offset, "index": index})
        case.synchronize()
        said = case.post.ask({"post": "request", "want": "refill", "fills": fills})
        if "refused" in said:
            raise Refused(str(said["refused"]))
        for slot in range(self._slots):
            case.lent[f"ring-{slot}"].pull()


def time_candidate(case: Case, body: Body) -> Body:
    """Time the loaded program as `body` says. Returns samples, launches as a profile, and the clock's notes."""
    clock = _clock(case)
    ring = RefereeRing(case, slots=body["slots"])
    offered = offer(case, body["slots"]) if body.get("offer", True) else None
    samples = clock.measure(
        case.loaded.call, ring, n=body["n"], stop=_stop(body), on_output=offered, labels=_labels(body, "candidate")
    )
    return {
        "samples": encode(samples),
        "profile": encode(from_launches(clock.launches, clock.timer)),
        "launched": encode(launched_kernels(clock.launches, body["arch"])),
        "stray": len(clock.stray),
        "timer": clock.timer,
        "notes": list(clock.notes),
    }


def _clock(case: Case) -> Clock:
    if case.clock is None:
        raise Refused("nothing is timed without a card")
    return case.clock


def _labels(body: Body, subject: str) -> Labels:
    from evalcore.gpu.timing import Labels

    return Labels(subject=subject, case=body["case"], figures=tuple(body["figures"]))


def _stop(body: Body) -> StopRule | None:
    return StopRule(**body["stop"]) if body.get("stop") else None


def offer(case: Case, slots: int) -> Callable[[int, Any], None]:
    """A callback that offers each timed output to the loop, which takes some of them for the referee to check."""

    def offered(index: int, out: Any) -> None:
        if not case.post.ask({"post": "request", "want": "sample", "index": index}).get("take"):
            return
        slot, offset = place(index, slots)
        case.lent[f"ring-{slot}"].push()
        found, exported = case.publish(out)
        case.post.ask(
            {"post": "request", "want": "check", "index": index, "slot": slot, "offset": offset, **found},
            exported.descriptors,
        )
        exported.close()

    return offered


def time_reference(case: Case, body: Body) -> Body:
    """Time a reference that was loaded here as the program: its inputs are its own, no referee is asked."""
    clock = _clock(case)
    inputs = make_inputs(case.loaded, case.problem, sizes=body["sizes"], seed=body["seed"])
    samples = clock.measure(
        case.loaded.call, LocalRing(inputs), n=body["n"], stop=_stop(body), labels=_labels(body, "reference")
    )
    return {"samples": encode(samples), "timer": clock.timer, "notes": list(clock.notes)}


def stalls(case: Case, body: Body) -> Body:
    """Where the program's warps waited, by PC sampling; in a case of its own, before its first launch."""
    ring = RefereeRing(case, slots=body["slots"])
    if case.clock is not None:
        case.clock.retire()  # sampling and activity records exclude each other
    try:
        found = sample_stalls(case.loaded.call, ring, n=body["n"], scratch=case.options.scratch)
    except RecorderError as fault:
        return {"unavailable": str(fault)}
    return {"profile": encode(found)}


def side_by_side(case: Case, body: Body) -> Body:
    """The program that was loaded first against the one that was loaded last, on the same inputs."""
    clock = _clock(case)
    if case.previous is None:
        raise Refused("nothing to compare with was loaded")
    lent = case.lent[body["inputs"]]
    lent.pull()
    sides = Sides(a=case.previous.call, b=case.loaded.call, ring=LocalRing(lent.arguments()))
    a, b = interleave(clock, sides, seconds=body["seconds"], labels=_labels(body, "candidate"))
    return {"a": encode(a), "b": encode(b), "notes": list(clock.notes)}


def opponent(case: Case, body: Body) -> Body:
    """One of torch's own attempts at the reference that was loaded here, checked against eager on the same inputs."""
    inputs = make_inputs(case.loaded, case.problem, sizes=body["sizes"], seed=body["seed"])
    ring = LocalRing(inputs)

    def compared(index: int, output: Any) -> Any:
        key = answer(case.loaded, ring.next(index), seed=body["seed"])
        return compare(flatten(output), key, case.problem.tolerance, format=case.problem.format)

    options = OpponentOptions(case=body["case"])
    return {"row": measure_opponent(body["name"], case.loaded.call, ring, _clock(case), compared, options)}


TIMED: dict[str, Callable[[Case, Body], Body]] = {
    "candidate": time_candidate,
    "reference": time_reference,
    "stalls": stalls,
    "ab": side_by_side,
    "opponent": opponent,
}
"""What may be timed, by name."""
