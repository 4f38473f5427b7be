"""Owns what is paid before it is needed: caches of the loop before it forks, context and driver of a spare after.

`before_fork` runs in the loop and touches no card. `open_device` runs in a child. Never runs anybody's code.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any

_FAULTS = (ImportError, RuntimeError, OSError, AttributeError, TypeError, ValueError, AssertionError)


def before_fork() -> None:
    """Fill the per-process caches that every compile asks first: Triton's own key and its assembler's version."""
    for module, name, arguments in (
        ("triton.runtime.cache", "triton_key", ()),
        ("triton.compiler.compiler", "triton_key", ()),
        ("triton.backends.nvidia.compiler", "get_ptxas_version", (90,)),
        ("triton.backends.nvidia.compiler", "get_ptxas_version", ()),
        ("triton.backends.nvidia.driver", "libcuda_dirs", ()),
    ):
        with contextlib.suppress(*_FAULTS):
            getattr(importlib.import_module(module), name)(*arguments)


def open_device(device: str) -> None:
    """Open the context, load what a first kernel loads, and let Triton find its driver by one trivial launch."""
    import torch

    torch.cuda.set_device(device)
    probe = torch.zeros(64, device=device)
    probe.add_(1.0)
    torch.cuda.synchronize()
    with contextlib.suppress(*_FAULTS):
        _launch_trivial(probe)
    torch.cuda.synchronize()


def _launch_trivial(probe: Any) -> None:
    from evalcore.gpu import trivial

    # a salt of its own, so that the compiler itself is warmed and not its cache
    trivial.increment[(1,)](probe, 64, SALT=float(os.getpid()), BLOCK=64)
