"""Owns what an architecture fixes: resources of an SM and its peak operations per clock. Never holds a measured number.

Only for the arithmetic of occupancy and for the alarm on times that no card of this kind can reach. What a card really
does is measured by `evalcore.gpu.ceilings`.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchLimits:
    """Per streaming multiprocessor, from the CUDA programming guide's table of compute capabilities."""

    threads: int
    blocks: int
    shared_bytes: int
    """Shared memory of an SM, as blocks may use it together."""
    reserved_shared_bytes: int
    """What the system takes for itself in each block."""
    ops_per_clock: tuple[tuple[str, int], ...]
    """(dtype, floating-point operations per clock); a multiply-add counts two; dense, without sparsity."""
    registers: int = 65536
    register_unit: int = 256
    """Registers are given to a warp in units of this."""
    warp_unit: int = 4
    shared_unit_bytes: int = 128


def _ops(fp32: int, fp64: int, half: int, tf32: int | None = None) -> tuple[tuple[str, int], ...]:
    rows = [("float32", fp32), ("float64", fp64), ("float16", half), ("bfloat16", half)]
    return (*rows, ("tf32", tf32)) if tf32 else tuple(rows)


_KIB = 1024

ARCH_LIMITS: dict[str, ArchLimits] = {
    "sm_70": ArchLimits(
        threads=2048, blocks=32, shared_bytes=96 * _KIB, reserved_shared_bytes=0, ops_per_clock=_ops(128, 64, 1024)
    ),
    "sm_75": ArchLimits(
        threads=1024, blocks=16, shared_bytes=64 * _KIB, reserved_shared_bytes=0, ops_per_clock=_ops(128, 4, 1024)
    ),
    "sm_80": ArchLimits(
        threads=2048,
        blocks=32,
        shared_bytes=164 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(128, 128, 2048, 1024),
    ),
    "sm_86": ArchLimits(
        threads=1536,
        blocks=16,
        shared_bytes=100 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 4, 1024, 512),
    ),
    "sm_87": ArchLimits(
        threads=1536,
        blocks=16,
        shared_bytes=164 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 4, 1024, 512),
    ),
    "sm_89": ArchLimits(
        threads=1536,
        blocks=24,
        shared_bytes=100 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 4, 1024, 512),
    ),
    "sm_90": ArchLimits(
        threads=2048,
        blocks=32,
        shared_bytes=228 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 256, 4096, 2048),
    ),
    "sm_100": ArchLimits(
        threads=2048,
        blocks=32,
        shared_bytes=228 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 128, 8192, 4096),
    ),
    "sm_103": ArchLimits(
        threads=2048,
        blocks=32,
        shared_bytes=228 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 128, 8192, 4096),
    ),
    "sm_120": ArchLimits(
        threads=1536,
        blocks=24,
        shared_bytes=100 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 4, 1024, 512),
    ),
    "sm_121": ArchLimits(
        threads=1536,
        blocks=24,
        shared_bytes=100 * _KIB,
        reserved_shared_bytes=_KIB,
        ops_per_clock=_ops(256, 4, 1024, 512),
    ),
}


def theoretical_occupancy(arch: str, *, threads: int, registers: int | None, shared_bytes: int | None) -> float | None:
    """Share of an SM's warps that fit at once, 0..1, for a block of `threads`; None for an unknown architecture.

    `registers` are per thread, `shared_bytes` per block (static plus dynamic); None leaves that limit out.
    """
    limits = ARCH_LIMITS.get(arch)
    if limits is None or threads <= 0:
        return None
    most_warps = limits.threads // WARP
    warps = -(-threads // WARP)
    fit = min(limits.blocks, most_warps // warps)
    if registers:
        per_warp = -(-registers * WARP // limits.register_unit) * limits.register_unit
        warps_by_registers = limits.registers // per_warp // limits.warp_unit * limits.warp_unit
        fit = min(fit, warps_by_registers // warps)
    if shared_bytes is not None:
        needed = shared_bytes + limits.reserved_shared_bytes
        unit = limits.shared_unit_bytes
        needed = -(-needed // unit) * unit
        if needed:
            fit = min(fit, limits.shared_bytes // needed)
    return fit * warps / most_warps


def peak_tflops(arch: str, *, sm_count: int, clock_mhz: int) -> tuple[tuple[str, float], ...]:
    """(dtype, TFLOP/s) that SMs x clock x operations per clock allow; () for an unknown architecture."""
    limits = ARCH_LIMITS.get(arch)
    if limits is None:
        return ()
    return tuple((dtype, ops * sm_count * clock_mhz * 1e6 / 1e12) for dtype, ops in limits.ops_per_clock)
