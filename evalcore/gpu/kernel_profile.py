"""Owns RawProfile: what a call's kernels did on the device. Never judges.

Kernel times come from the clock's own recorder; registers, shared memory and blocks from the same records, so that CUDA
kernels have them too. Stalls come from `evalcore.gpu.stalls`, in a process of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from evalcore.facts import KernelFacts, RawProfile
from evalcore.gpu.activity import Launch
from evalcore.gpu.arch_limits import WARP, theoretical_occupancy


def from_launches(calls: Sequence[Sequence[Launch]], timer: str) -> RawProfile:
    """Per-kernel times summed over `calls`, in the order in which the kernels first ran."""
    rows: dict[str, tuple[int, float]] = {}
    for launch in (each for call in calls for each in call):
        count, total = rows.get(launch.name, (0, 0.0))
        rows[launch.name] = (count + launch.count, total + launch.device_us)
    spans = [_span_us(call) for call in calls if call and all(each.start_ns for each in call)]
    metrics: dict[str, Any] = {"calls": len(calls), "origin": f"measured by {timer}"}
    if spans:
        metrics["span_us"] = sorted(spans)[len(spans) // 2]
    return RawProfile(
        profiler=timer, kernels=tuple((name, count, total) for name, (count, total) in rows.items()), metrics=metrics
    )


def _span_us(call: Sequence[Launch]) -> float:
    """From the first start to the last end, gaps between kernels included."""
    end = max(each.start_ns / 1e3 + each.device_us for each in call)
    return end - min(each.start_ns for each in call) / 1e3


def launched_kernels(calls: Sequence[Sequence[Launch]], arch: str) -> tuple[KernelFacts, ...]:
    """Facts of each kernel that really ran, as the driver recorded them; for kernels whose compiler told us nothing."""
    facts: dict[tuple[Any, ...], KernelFacts] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for launch in (each for call in calls for each in call):
        if launch.block is None:
            continue
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        key = (launch.name, launch.block, launch.shared_bytes, launch.registers)
        counts[key] = counts.get(key, 0) + launch.count
        facts[key] = KernelFacts(
            name=launch.name,
            registers=launch.registers,
            shared_bytes=launch.shared_bytes,
            warps=-(-threads // WARP),
            theoretical_occupancy=theoretical_occupancy(
                arch, threads=threads, registers=launch.registers, shared_bytes=launch.shared_bytes
            ),
            config=f"grid {launch.grid}, block {launch.block}",
            launches=counts[key],
            origin="recorded launch",
        )
    return tuple(facts.values())


def with_occupancy(kernels: Iterable[KernelFacts], arch: str) -> tuple[KernelFacts, ...]:
    """The same facts with the theoretical occupancy worked out where registers and warps are known."""
    made = []
    for kernel in kernels:
        if kernel.theoretical_occupancy is None and kernel.warps:
            share = theoretical_occupancy(
                arch, threads=kernel.warps * WARP, registers=kernel.registers, shared_bytes=kernel.shared_bytes
            )
            kernel = dataclasses.replace(kernel, theoretical_occupancy=share)
        made.append(kernel)
    return tuple(made)


def merge(time: RawProfile, stalls: RawProfile | None) -> RawProfile:
    """One profile from two: kernel times of the first, stalls of the second."""
    if stalls is None:
        return time
    return RawProfile(
        profiler=f"{time.profiler} + {stalls.profiler}",
        kernels=time.kernels,
        stalls=stalls.stalls,
        metrics={**time.metrics, **stalls.metrics},
    )
