"""Owns turning samples, counted work and compile metadata into the figures of a verdict. Never invents one.

What was not had is None; each field of ProfileData has its origin in raw_metrics: measured, counted or estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalcore.facts import KernelFacts, RawProfile, Samples
from evalcore.results import ProfileData
from evalcore.roofline import Position, bottleneck, position, roof_words, strongest
from evalcore.run_facts import RunFacts
from evalcore.stats import median, relative_error, summarise

_MOST_STALLS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """The figures of one case. Microseconds; None where not measured."""

    case: str
    runtime_us: float | None = None
    ref_runtime_us: float | None = None
    call_us: float | None = None
    regime: str | None = None
    floor_us: float | None = None
    profile: ProfileData | None = None
    timing: dict[str, Any] | None = None


def timed(facts: RunFacts, *, case: str = "") -> Timed:
    """Figures of `case`, or of the case on the line. Reference and candidate are compared by one timer only."""
    name = case or facts.line_case or (facts.cases[0].name if facts.cases else "")
    device = _samples(facts, "candidate", "device", name)
    if device is None or not device.values_us:
        return Timed(case=name, profile=_profile_without_time(facts))
    runtime = median(device.values_us)
    call = _median(_samples(facts, "candidate", "call", name))
    reference = _samples(facts, "reference", "device", name)
    same_timer = reference is not None and reference.timer == device.timer
    # host code that was interpreted says nothing about the host's share of a call
    told = None if any(note.code == "host-interpreted" for note in facts.notes) else call
    place = position(runtime, dict(facts.work).get(name), facts.ceilings, call_us=told, lane=_lane(facts, name))
    return Timed(
        case=name,
        runtime_us=runtime,
        ref_runtime_us=_median(reference) if same_timer else None,
        call_us=call,
        regime=place.regime,
        floor_us=place.floor_us,
        profile=_profile(facts, name, runtime, place),
        timing=_timing(facts, name, device, told),
    )


def _lane(facts: RunFacts, case: str) -> str | None:
    """'tf32' where float32 products may run in it by the text's own doing; None for the dtype's own rate."""
    work = dict(facts.work).get(case)
    if work is None or work.dtype != "float32":
        return None
    rules = {hit.rule for hit in facts.screen}
    return facts.precision or ("tf32" if rules & {"tf32-dot", "sets-precision"} else None)


def _samples(facts: RunFacts, subject: str, figure: str, case: str) -> Samples | None:
    for each in facts.samples:
        if each.subject == subject and each.figure == figure and each.case in (case, ""):
            return each
    return None


def _median(samples: Samples | None) -> float | None:
    return median(samples.values_us) if samples is not None and samples.values_us else None


def _timing(facts: RunFacts, case: str, device: Samples, call: float | None) -> dict[str, Any]:
    summary = summarise(device.values_us)
    assert summary is not None
    return {
        "case": case,
        "device_us": summary.median_us,
        "call_us": call,
        "graph_us": _median(_samples(facts, "candidate", "graph", case)),
        "n": summary.n,
        "interval_us": [summary.low_us, summary.high_us],
        "spread_us": summary.spread_us,
        "relative_error": relative_error(device.values_us),
        "timer": device.timer,
        "cold": device.cold,
        "cpu_threads": device.cpu_threads,
        "discarded": len(device.discarded),
        "empty_kernel_us": device.empty_kernel_us,
        "strongest": _strongest(facts, summary.median_us),
    }


def _strongest(facts: RunFacts, runtime_us: float) -> dict[str, Any] | None:
    """The fastest opponent that is as exact as it must be, and how many times its time is the candidate's."""
    best = strongest(facts.opponents)
    if best is None:
        return None
    theirs = float(str(best["runtime_us"]))
    return {"name": best.get("name"), "runtime_us": theirs, "speedup": theirs / runtime_us}


def _profile(facts: RunFacts, case: str, runtime_us: float, place: Position) -> ProfileData:
    work = dict(facts.work).get(case)
    raw: dict[str, Any] = {}
    if place.regime is not None:
        raw["bottleneck_type"] = "measured: device and call time against measured roofs"
        raw["regime"] = place.regime
    if place.ratio is not None and work is not None:
        raw["roofline_position"] = f"{work.origin} work over measured roofs"
        raw["roofline_ratio"] = place.ratio
        raw["roofline_words"] = roof_words(place.ratio, place.regime)
    if place.bandwidth is not None and work is not None:
        raw["bandwidth_utilization"] = f"{work.origin} bytes over the measured copy rate"
    if place.compute is not None and work is not None:
        raw["compute_utilization"] = f"{work.origin} FLOPs over the measured {_lane(facts, case) or work.dtype} rate"
    if work is not None:
        raw["flops"], raw["bytes_read"], raw["bytes_written"] = work.flops, work.bytes_read, work.bytes_written
    occupancy = _occupancy(facts, raw)
    cache = _from_profiler(facts.profile, "l2_hit_ratio", "cache_efficiency", raw)
    achieved = _from_profiler(facts.profile, "achieved_occupancy", "occupancy", raw)
    return ProfileData(
        bottleneck_type=bottleneck(place.regime),
        roofline_position=_clamp(place.ratio),
        cache_efficiency=cache,
        occupancy=achieved if achieved is not None else occupancy,
        bandwidth_utilization=_clamp(place.bandwidth),
        compute_utilization=_clamp(place.compute),
        top_stalls=_stalls(facts.profile, raw),
        raw_metrics=_more(facts, raw),
    )


def _profile_without_time(facts: RunFacts) -> ProfileData | None:
    """Compile metadata is worth showing also where nothing can be timed; without any there is no profile."""
    raw: dict[str, Any] = {}
    occupancy = _occupancy(facts, raw)
    if occupancy is None and not any(kernel.registers is not None for kernel in facts.kernels):
        return None
    return ProfileData(occupancy=occupancy, raw_metrics=_more(facts, raw))


def _main_kernel(facts: RunFacts) -> KernelFacts | None:
    """The kernel that took most device time, else the first that was launched."""
    if facts.profile is not None and facts.profile.kernels:
        order = sorted(facts.profile.kernels, key=lambda each: -each[2])
        for name, _launches, _time in order:
            for kernel in facts.kernels:
                if kernel.name == name:
                    return kernel
    launched = [kernel for kernel in facts.kernels if kernel.launches]
    chosen = launched or list(facts.kernels)
    return chosen[0] if chosen else None


def _occupancy(facts: RunFacts, raw: dict[str, Any]) -> float | None:
    kernel = _main_kernel(facts)
    if kernel is None or kernel.theoretical_occupancy is None:
        return None
    raw["occupancy"] = f"estimated: theoretical, from the compiled {kernel.name}'s registers and shared memory"
    return _clamp(kernel.theoretical_occupancy)


def _from_profiler(profile: RawProfile | None, metric: str, field: str, raw: dict[str, Any]) -> float | None:
    value = profile.metrics.get(metric) if profile is not None else None
    if profile is None or not isinstance(value, (int, float)):
        return None
    raw[field] = f"measured: {profile.profiler}"
    return _clamp(float(value))


def _stalls(profile: RawProfile | None, raw: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    if profile is None or not profile.stalls:
        return ()
    raw["top_stalls"] = f"measured: {profile.profiler}"
    total = sum(share for _name, share in profile.stalls)
    scale = 1.0 / total if total > 1.0 else 1.0
    ordered = sorted(profile.stalls, key=lambda each: -each[1])
    return tuple((name, share * scale) for name, share in ordered[:_MOST_STALLS])


def _more(facts: RunFacts, raw: dict[str, Any]) -> dict[str, Any]:
    kernel = _main_kernel(facts)
    if kernel is not None:
        facts_of = {
            "kernel": kernel.name,
            "registers": kernel.registers,
            "spill_bytes": kernel.spill_bytes,
            "shared_bytes": kernel.shared_bytes,
            "warps": kernel.warps,
            "stages": kernel.stages,
        }
        raw.update({name: value for name, value in facts_of.items() if value is not None})
        raw.setdefault("registers_origin", f"measured: {kernel.origin}")
    if facts.profile is not None:
        raw["profiler"] = facts.profile.profiler
        if facts.profile.kernels:
            raw["kernels"] = [list(each) for each in facts.profile.kernels[:16]]
    return raw


def _clamp(ratio: float | None) -> float | None:
    return None if ratio is None else min(max(ratio, 0.0), 1.0)
