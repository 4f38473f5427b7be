"""Owns how a child that runs somebody's code settles in: environment, sandbox, device. Never loads that code itself."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, replace

from evalcore.gpu import sandbox
from evalcore.worker.environment import case_environment
from evalcore.worker.processes import set_dumpable


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """Everything that a child needs to know before its first question."""

    device: str
    policy: sandbox.Policy
    sandboxed: bool = True
    cpu_threads: int = 1
    """Threads for tensor operations on the CPU: few, so that a many-core host does not measure its scheduler."""


def confine(settling: Settling) -> tuple[str, ...]:
    """Environment without secrets, then the sandbox. First of all in the child; returns the layers that hold."""
    # the loop is not dumpable; here that would make our own /proc/self unreadable and the uid map unwritable
    set_dumpable(True)
    scratch = settling.policy.scratch
    kept = case_environment(os.environ, scratch)
    for name in [name for name in os.environ if name not in kept]:
        del os.environ[name]
    os.environ.update(kept)
    tempfile.tempdir = None  # what the loop once looked up is no place where a child may write
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    os.chdir(os.path.join(scratch, "tmp"))
    layers: tuple[str, ...] = ("process", "no-secrets")
    if settling.sandboxed:
        layers += sandbox.apply(settling.policy)
    return layers


def open_device(settling: Settling) -> None:
    """Threads, and on a card the context and Triton's driver; without one what stands in for it."""
    import torch

    torch.set_num_threads(settling.cpu_threads)
    if settling.device != "cpu":
        from evalcore.gpu.warming import open_device as warm

        warm(settling.device)
        return
    from evalcore.gpu.loading import importing_interpreter

    if importing_interpreter():
        from evalcore.gpu import interpreter

        interpreter.install()
    else:
        from evalcore.gpu import fake_cuda

        fake_cuda.install_torch()


def policy(scratch: str, roots: tuple[str, ...], *, device: str, layers: tuple[str, ...]) -> sandbox.Policy:
    """The policy of a child for one project."""
    made = sandbox.Policy(scratch=scratch, readable=roots, cuda=device != "cpu")
    return replace(made, layers=layers)
