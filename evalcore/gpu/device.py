"""Owns loading torch and triton without a context, and naming the machine's devices. Never calls cuInit in a loop.

`preload` is for the loop, which must be able to fork for ever after. `describe` is for a throw-away child.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import re
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_TRITON_LATER = (
    "triton.language",
    "triton.compiler.compiler",
    "triton.compiler.code_generator",
    "triton.backends.nvidia.driver",
    "triton.backends.nvidia.compiler",
    "triton.profiler",
    "numpy.random",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What this interpreter has. A version is None where the package cannot be imported; then `faults` says why."""

    torch: str | None
    triton: str | None
    faults: tuple[tuple[str, str], ...] = ()
    """(package, the import's own error)."""


def preload() -> Stack:
    """Import torch and triton, once, on one thread and without touching a card."""
    faults: list[tuple[str, str]] = []
    torch = _load("torch", faults)
    triton = _load("triton", faults)
    if torch is not None:
        _forget_absent_seeds(torch)
        with contextlib.suppress(ImportError):
            importlib.import_module("torch.utils.flop_counter")
    if triton is not None:
        # what a first launch would import lazily, once per child
        for name in _TRITON_LATER:
            with contextlib.suppress(ImportError, RuntimeError, OSError, AttributeError):
                importlib.import_module(name)
    return Stack(torch=_version(torch), triton=_version(triton), faults=tuple(faults))


def _load(name: str, faults: list[tuple[str, str]]) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception as fault:  # noqa: BLE001 - a broken package in the user's environment is a fact, not our crash
        faults.append((name, f"{type(fault).__name__}: {fault}"))
        for each in [each for each in sys.modules if each == name or each.startswith(name + ".")]:
            sys.modules.pop(each, None)
        return None


def _forget_absent_seeds(torch: Any) -> None:
    """Every seeding tells each backend that is not there as well, by noting down the whole call stack: a millisecond,
    several times per trial. A backend that this torch was built without has nothing to seed."""
    backend = getattr(torch, "xpu", None)
    compiled = getattr(backend, "_is_compiled", None)
    if backend is not None and compiled is not None and not compiled():
        backend.manual_seed_all = backend.manual_seed = _no_seed


def _no_seed(seed: int) -> None:
    """There is nothing to seed."""


def _version(module: ModuleType | None) -> str | None:
    return None if module is None else str(getattr(module, "__version__", "unknown"))


def describe() -> list[dict[str, Any]]:
    """Every CUDA device that torch can use: index, name, uuid, arch, memory, driver. Opens the driver: children only."""
    import torch

    if not torch.cuda.is_available():
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        found.append(
            {
                "index": index,
                "name": facts.name,
                "uuid": _uuid(facts, index),
                "arch": f"sm_{facts.major}{facts.minor}",
                "memory_bytes": int(facts.total_memory),
                "driver": driver_version(),
            }
        )
    return found


def _uuid(facts: Any, index: int) -> str:
    uuid = getattr(facts, "uuid", None)
    if uuid is None:
        return f"index-{index}-{facts.name}"
    text = str(uuid)
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def driver_version() -> str | None:
    """The kernel driver's version as it names itself, or None."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", file.read())
    except OSError:
        return None
    return found.group(1) if found else None


def why_no_device() -> str:
    """Why torch sees no card, in words for a person; to be asked in a throw-away child where `describe` found none."""
    import torch

    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return f"torch {torch.__version__} is built without CUDA"
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as fault:
        return str(fault).splitlines()[0]
    return "no CUDA device is visible"
