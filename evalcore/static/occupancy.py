"""Owns theoretical occupancy: how many warps of a kernel fit on one multiprocessor. From limits in the CUDA guide."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one multiprocessor of an architecture holds."""

    threads: int
    blocks: int
    shared_bytes: int
    shared_per_block_bytes: int
    registers: int = 65536


_LIMITS = {
    75: Limits(threads=1024, blocks=16, shared_bytes=65536, shared_per_block_bytes=65536),
    80: Limits(threads=2048, blocks=32, shared_bytes=167936, shared_per_block_bytes=166912),
    86: Limits(threads=1536, blocks=16, shared_bytes=102400, shared_per_block_bytes=101376),
    89: Limits(threads=1536, blocks=24, shared_bytes=102400, shared_per_block_bytes=101376),
    90: Limits(threads=2048, blocks=32, shared_bytes=233472, shared_per_block_bytes=232448),
    100: Limits(threads=2048, blocks=32, shared_bytes=233472, shared_per_block_bytes=232448),
    103: Limits(threads=2048, blocks=32, shared_bytes=233472, shared_per_block_bytes=232448),
    120: Limits(threads=1536, blocks=24, shared_bytes=102400, shared_per_block_bytes=101376),
}
_WARP = 32
_REGISTERS_PER_WARP_STEP = 256
_PARTITIONS = 4
_RESERVED_SHARED_BYTES = 1024
"""Per block, from sm_80 on."""


def limits(arch: int) -> Limits | None:
    """Limits of an architecture such as 90, None where this table does not know it."""
    return _LIMITS.get(arch)


def theoretical_occupancy(
    arch: int, registers: int | None, shared_bytes: int | None, warps: int | None
) -> float | None:
    """Warps that fit over the most that could, 0..1; None where a figure or the architecture is unknown.

    registers: per thread. shared_bytes: static and dynamic, per block. warps: per block.
    """
    limit = limits(arch)
    if limit is None or registers is None or shared_bytes is None or not warps:
        return None
    most_warps = limit.threads // _WARP
    by_blocks = limit.blocks
    by_threads = most_warps // warps
    per_warp = -(-registers * _WARP // _REGISTERS_PER_WARP_STEP) * _REGISTERS_PER_WARP_STEP
    warps_by_registers = (limit.registers // _PARTITIONS // per_warp) * _PARTITIONS if per_warp else most_warps
    by_registers = warps_by_registers // warps
    reserved = _RESERVED_SHARED_BYTES if arch >= 80 else 0
    by_shared = limit.shared_bytes // (shared_bytes + reserved) if shared_bytes + reserved else by_blocks
    blocks = min(by_blocks, by_threads, by_registers, by_shared)
    return blocks * warps / most_warps
