"""Owns on which CPUs a timed process runs, and with how many threads. Never times anything."""

from __future__ import annotations

import contextlib
import os


def pick_cpus(allowed: frozenset[int], near: frozenset[int], wanted: int, offset: int) -> list[int]:
    """`wanted` neighbouring CPUs of those allowed, near the card where any are; `offset` keeps processes apart."""
    pool = sorted(allowed & near) or sorted(allowed)
    count = min(wanted, len(pool))
    first = offset * count % len(pool) if pool else 0
    return [pool[(first + step) % len(pool)] for step in range(count)]


def fix_threads(wanted: int, near: frozenset[int]) -> int:
    """Pin this thread and its later children to a few CPUs, and torch's threads to their number, which is recorded.

    A host of 192 threads left alone measures its own scheduler: it once turned 0.47 ms into 1.8 s.
    """
    import torch

    threads = min(wanted, os.cpu_count() or 1)
    if hasattr(os, "sched_getaffinity"):
        chosen = pick_cpus(frozenset(os.sched_getaffinity(0)), near, wanted, os.getpid())
        threads = len(chosen)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, chosen)
    torch.set_num_threads(threads)
    return threads
