"""Owns an evaluator for commands: the pool of this machine's cards, opened for the time of a block."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from server.config import Settings
from server.gpu_pool import GpuPool
from server.host import Host


@contextlib.asynccontextmanager
async def evaluator(host: Host, python: str = "", device: str = "auto") -> AsyncIterator[GpuPool]:
    """A pool that ends with the block, with every process that it started."""
    pool = GpuPool(host, lambda: None)
    pool.configure(Settings(python=python, device=device))
    try:
        yield pool
    finally:
        await pool.close()
