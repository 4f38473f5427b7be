"""Owns the measured roofs of a card: bandwidth and matrix rates, by the kernels' own timer and flush. Never a table.

Peaks that the card itself reports (memory clock x bus width, SMs x clock x operations per clock) stand beside them, for
the alarm on impossible times only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalcore.facts import Ceilings
from evalcore.gpu.arch_limits import peak_tflops
from evalcore.gpu.figures import Run, device_figure, events_figure, quiet
from evalcore.gpu.nvml import CardFacts, Nvml
from evalcore.gpu.timing import Clock, ClockOptions
from evalcore.wire import WireError, decode, encode

VERSION = 1
"""Part of the cache's key: raised when the way of measuring changes."""

LEAST_BYTES = 512 << 20
"""Size of one stream's buffer, where 4x the L2 is less; small buffers show ramp and tail instead of the roof."""
STREAM_CALLS = 8
MATRIX_CALLS = 6
MATRIX_SIZES = (
    ("float16", 8192),
    ("bfloat16", 8192),
    ("tf32", 8192),
    ("float32", 4096),
    ("float64", 4096),
)
"""Square sizes that keep all SMs busy for one to three milliseconds."""


class _Fixed:
    """A ring of one: roofs are about streams of bytes, not about memos."""

    def __init__(self, inputs: list[Any]) -> None:
        self._inputs = inputs

    def next(self, index: int) -> list[Any]:
        return self._inputs


def peak_gb_per_s(facts: CardFacts) -> float | None:
    """Memory clock x bus width x 2 transfers per clock, GB/s; None where the driver does not tell."""
    if not facts.max_memory_clock_mhz or not facts.memory_bus_bits:
        return None
    return facts.max_memory_clock_mhz * 1e6 * 2 * facts.memory_bus_bits / 8 / 1e9


def cache_key(facts: CardFacts) -> str:
    """Everything on which the roofs depend, in one word for a file name."""
    parts = (VERSION, facts.uuid, facts.driver, facts.power_limit_w, facts.max_sm_clock_mhz, facts.max_memory_clock_mhz)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def cached(facts: CardFacts, folder: str) -> Ceilings | None:
    """What was measured before on this very card, driver and limits; None where nothing usable lies there."""
    if not folder or facts.uuid is None:
        return None
    try:
        text = Path(folder, f"ceilings-{cache_key(facts)}.json").read_text(encoding="utf-8")
        return decode(Ceilings, json.loads(text))
    except (OSError, ValueError, WireError):
        return None


def store(ceilings: Ceilings, facts: CardFacts, folder: str) -> None:
    """Write the cache's file whole or not at all. A folder that cannot be written is no fault."""
    if not folder or facts.uuid is None:
        return
    target = Path(folder, f"ceilings-{cache_key(facts)}.json")
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(encode(ceilings)), encoding="utf-8")
        os.replace(part, target)


def measure_ceilings(device: str, *, cache_folder: str = "", clock: Clock | None = None) -> Ceilings:
    """The card's roofs, from the cache or measured (about 2 s). Opens a CUDA context: only in a throw-away child.

    `device` is 'cuda:N' in this process's order. Raises RuntimeError where torch cannot use it.
    """
    import torch

    begin = time.perf_counter()
    properties = torch.cuda.get_device_properties(device)
    uuid = str(getattr(properties, "uuid", ""))
    card = Nvml().card_by_uuid(uuid)
    facts = card.facts() if card is not None else CardFacts(index=0, uuid=uuid or None)
    known = cached(facts, cache_folder)
    if known is not None:
        return known
    with torch.cuda.device(device):
        clock = clock or Clock(device, ClockOptions())
        clock.warm()
        with quiet():
            clock.ramp()
            streams = dict(_streams(clock, device))
            matrices = dict(_matrices(clock, device))
    clock_mhz = facts.max_sm_clock_mhz
    arch = facts.arch or f"sm_{properties.major}{properties.minor}"
    ceilings = Ceilings(
        card=facts.name or properties.name,
        uuid=facts.uuid or uuid,
        copy_gb_per_s=max(streams.values(), default=None),
        tflops=tuple(matrices.items()),
        l2_bytes=int(getattr(properties, "L2_cache_size", 0)) or None,
        sm_count=properties.multi_processor_count,
        peak_gb_per_s=peak_gb_per_s(facts),
        peak_tflops=peak_tflops(arch, sm_count=properties.multi_processor_count, clock_mhz=clock_mhz)
        if clock_mhz
        else (),
        detail={
            "streams_gb_per_s": streams,
            "timer": clock.timer,
            "driver": facts.driver,
            "arch": arch,
            "power_limit_w": facts.power_limit_w,
            "max_sm_clock_mhz": clock_mhz,
            "seconds": round(time.perf_counter() - begin, 3),
            "notes": list(clock.notes),
        },
    )
    store(ceilings, facts, cache_folder)
    return ceilings


def _best_us(clock: Clock, call: Callable[[list[Any]], Any], inputs: list[Any], n: int) -> float | None:
    """Least device time of a call, microseconds: a roof is what the card can do, not what it does on average."""
    run = Run(call=call, ring=_Fixed(inputs), n=n)
    figure = device_figure if clock.bench.recorder is not None else events_figure
    values = figure(clock.bench, run).values
    return min(values) if values else None


def _streams(clock: Clock, device: str) -> Iterator[tuple[str, float]]:
    """(name, GB/s) of copy, read, write and triad on buffers of at least 4x the L2."""
    import torch

    l2_bytes = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
    size = max(4 * l2_bytes, LEAST_BYTES)
    size = min(size, torch.cuda.mem_get_info(device)[0] // 8)
    a = torch.randn(size // 4, device=device)
    b, c = torch.randn_like(a), torch.empty_like(a)
    total = torch.empty((), device=device)
    bodies: tuple[tuple[str, int, Callable[[list[Any]], Any]], ...] = (
        ("copy", 2, lambda i: torch.neg(i[0], out=i[2])),
        ("read", 1, lambda i: torch.sum(i[0], dim=0, out=total)),
        ("write", 1, lambda i: i[2].fill_(1.0)),
        ("triad", 3, lambda i: torch.add(i[0], i[1], alpha=0.5, out=i[2])),
    )
    for name, streams, body in bodies:
        took = _best_us(clock, body, [a, b, c], STREAM_CALLS)
        if took:
            yield name, streams * a.numel() * 4 / took / 1e3


def _matrices(clock: Clock, device: str) -> Iterator[tuple[str, float]]:
    """(dtype or lane, TFLOP/s) of a square matrix product on random data."""
    import torch

    was = torch.backends.cuda.matmul.allow_tf32
    try:
        for lane, size in MATRIX_SIZES:
            dtype = torch.float32 if lane == "tf32" else getattr(torch, lane)
            torch.backends.cuda.matmul.allow_tf32 = lane == "tf32"
            a = torch.randn(size, size, device=device).to(dtype)
            b = torch.randn(size, size, device=device).to(dtype)
            out = torch.empty_like(a)
            took = _best_us(clock, lambda i: torch.mm(i[0], i[1], out=i[2]), [a, b, out], MATRIX_CALLS)
            if took:
                yield lane, 2 * size**3 / took / 1e6
            del a, b, out
    finally:
        torch.backends.cuda.matmul.allow_tf32 = was
