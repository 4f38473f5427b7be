"""Owns keeping torch's compiler out of processes that only count or redirect operators. Never used with torch.compile.

torch wraps the dispatch of every mode so that its first use imports torch._dynamo, one to two seconds that each fork
would pay. A mode of a referee is never compiled, so the wrapper is told that there is nothing to turn off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

_MARK = "__dynamo_disable"
"""Where torch._compile keeps what it made of a function on first use."""


def keep_compiler_out() -> None:
    """Mark the dispatch of every mode that exists by now. Where torch does it differently nothing changes."""
    for mode in _all_below(TorchDispatchMode):
        raw: Any = getattr(vars(mode).get("__torch_dispatch__"), "__wrapped__", None)
        if raw is not None and getattr(raw, _MARK, None) is None:
            setattr(raw, _MARK, raw)


def _all_below(kind: type) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for each in below:
        yield each
        yield from _all_below(each)
