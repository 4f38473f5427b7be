"""Owns Triton's launch stubs: small C modules, one per kernel signature, that some versions compile on first launch.

Each case has a compile cache of its own, so each would run a C compiler again for the signature that the last save had.
What may be shared without trust is what we make ourselves: from the signature, which is data, in a process that runs
nobody's code. Never takes a compiled file from a case.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

_DRIVER = "triton.backends.nvidia.driver"
_PLAIN = re.compile(r"\*{0,2}k?[a-z][a-z0-9]{0,15}")
_MOST_ARGUMENTS = 256
_FAULTS = (ImportError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, OSError, AssertionError)

Signature = tuple[str, ...]


def is_plain(signature: Any) -> bool:
    """Whether this is a signature of plain argument types, as words; anything else is left to the case itself."""
    return (
        isinstance(signature, (list, tuple))
        and len(signature) <= _MOST_ARGUMENTS
        and all(isinstance(each, str) and _PLAIN.fullmatch(each) for each in signature)
    )


def watch_launchers() -> list[Signature]:
    """From now on the signature of every kernel that is made ready to launch is added to the list. [] stays empty where
    this Triton compiles no stubs."""
    seen: list[Signature] = []
    with contextlib.suppress(*_FAULTS):
        driver = importlib.import_module(_DRIVER)
        launcher = driver.CudaLauncher if hasattr(driver, "make_launcher") else None
        if launcher is not None:
            launcher.__init__ = _noting(launcher.__init__, seen)
    return seen


def _noting(original: Any, seen: list[Signature]) -> Any:
    def init(self: Any, src: Any, metadata: Any) -> None:
        original(self, src, metadata)
        signature = tuple(src.signature.values())
        if is_plain(signature) and not getattr(metadata, "tensordesc_meta", None) and signature not in seen:
            seen.append(signature)

    return init


def build(signatures: Iterable[Sequence[str]]) -> int:
    """Compile the stubs of plain signatures into this process's Triton cache. Returns how many there are now."""
    made = 0
    for signature in signatures:
        with contextlib.suppress(*_FAULTS):
            _build(importlib.import_module(_DRIVER), tuple(signature))
            made += 1
    return made


def _build(driver: Any, signature: Signature) -> None:
    by_name = {"constants": {}, "signature": dict(enumerate(signature)), "tensordesc_meta": None, "ids": {}}
    wanted = inspect.signature(driver.make_launcher).parameters
    source = driver.make_launcher(**{name: by_name[name] for name in wanted})
    compile_module = driver.compile_module_from_src
    options = {"library_dirs": driver.library_dirs, "include_dirs": driver.include_dirs, "libraries": driver.libraries}
    given = inspect.signature(compile_module).parameters
    chosen = {name: value for name, value in options.items() if name in given}
    chosen = {name: value() if callable(value) else value for name, value in chosen.items()}
    compile_module(src=source, name="__triton_launcher", **chosen)
