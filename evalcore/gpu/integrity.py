"""Owns noticing that functions were replaced while a candidate ran. Never prevents it, never trusts it alone.

A candidate in the same process can restore what it replaced or lie to us; the clock outside and the comparison in
another process are what holds. But most who patch a timer do not clean up.
"""

from __future__ import annotations

import builtins
import sys
import time
from typing import Any

import torch

_WATCHED: tuple[tuple[str, str], ...] = (
    ("torch", "allclose equal isclose isnan isfinite eq empty empty_like Event"),
    ("torch.cuda", "Event synchronize current_stream default_stream Stream Graph CUDAGraph"),
    ("torch.testing", "assert_close"),
    ("torch.Tensor", "allclose equal clone copy_ detach data_ptr contiguous cpu record_stream"),
    ("time", "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time sleep"),
    ("builtins", "print open isinstance type len abs min max sum all any __import__"),
    ("triton.testing", "do_bench do_bench_cudagraph"),
    ("os", "read write _exit fork"),
)
"""(owner, names): what a timer, a comparison or a report stands on."""
_Snapshot = dict[tuple[str, str], Any]


def _owner(name: str) -> Any:
    if name == "builtins":
        return builtins
    if name == "time":
        return time
    if name == "torch.Tensor":
        return torch.Tensor
    return sys.modules.get(name)


def snapshot() -> _Snapshot:
    """What the watched names stand for now, and every function of our own package. Taken before the candidate loads."""
    found: _Snapshot = {}
    for module, names in _WATCHED:
        owner = _owner(module)
        for name in names.split():
            if owner is not None and hasattr(owner, name):
                found[module, name] = _thing(owner, name)
    for module, owner in list(sys.modules.items()):
        if module.split(".")[0] == "evalcore" and owner is not None:
            for name, value in list(vars(owner).items()):
                if callable(value) and getattr(value, "__module__", "") == module:
                    found[module, name] = value
                    code = getattr(value, "__code__", None)
                    if code is not None:
                        found[module, f"{name}()"] = code
    return found


def _thing(owner: Any, name: str) -> Any:
    """The raw entry, so that a bound method made anew at each look is not taken for a change."""
    return vars(owner).get(name, getattr(owner, name)) if isinstance(owner, type) else getattr(owner, name)


def changed(before: _Snapshot) -> list[str]:
    """Dotted names that stand for something else now; [] when all is as it was."""
    hurt = []
    for (module, name), value in before.items():
        owner = _owner(module)
        if name.endswith("()"):
            now = getattr(getattr(owner, name[:-2], None), "__code__", None)
        elif owner is None or not hasattr(owner, name):
            now = None
        else:
            now = _thing(owner, name)
        if now is not value:
            hurt.append(f"{module}.{name}")
    return hurt
