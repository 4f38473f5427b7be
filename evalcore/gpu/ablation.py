"""Owns runs in which a candidate's own kernels do nothing: a right answer there proves that they are for show.

Runs in the case, after everything else. Never touches library kernels: torch's own work goes on as before.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

_LAUNCHERS = (
    ("triton.runtime.jit", "JITFunction", "run"),
    ("triton.runtime.interpreter", "InterpretedFunction", "run"),
    ("evalcore.gpu.cuda_driver", "CudaFunction", "launch"),
)
"""(module, class, method): where launches of Triton, interpreter and NVRTC kernels pass, autotuned too."""


@contextlib.contextmanager
def ablated() -> Iterator[list[str]]:
    """While it lasts, launches return None at once. Yields a list that grows by a name for each launch left out."""
    left_out: list[str] = []
    undo: list[tuple[Any, str, Any]] = []
    for module, name, method in _LAUNCHERS:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None:
            undo.append((kind, method, getattr(kind, method)))
            setattr(kind, method, _nothing(left_out))
    try:
        yield left_out
    finally:
        for kind, method, original in undo:
            setattr(kind, method, original)


def _nothing(left_out: list[str]) -> Any:
    def nothing(self: Any, *args: Any, **kwargs: Any) -> None:
        left_out.append(str(getattr(self, "__name__", None) or getattr(self, "name", "kernel")))

    return nothing
