"""Owns giving uninitialised memory a value that no right answer has, while trials run. Never used while timing.

torch fills what `empty` and its kin return (NaN, the largest integer) when it is told to be deterministic; that works
below Python, so also for tensors that a C++ extension allocates. Ops without a deterministic form only warn.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """While it lasts, tensors begin as poison. What the program had set is set again afterwards."""
    was_on = torch.are_deterministic_algorithms_enabled()
    was_soft = torch.is_deterministic_algorithms_warn_only_enabled()
    was_filling = torch.utils.deterministic.fill_uninitialized_memory
    _be_deterministic(True, soft=not was_on or was_soft)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = was_filling
        _be_deterministic(was_on, soft=was_soft)


def _be_deterministic(on: bool, *, soft: bool) -> None:
    """What torch.use_deterministic_algorithms does for eager code; the public one imports torch's compiler as well, which
    takes each fresh process most of a second."""
    try:
        torch._C._set_deterministic_algorithms(on, warn_only=soft)
    except (AttributeError, TypeError):
        torch.use_deterministic_algorithms(on, warn_only=soft)
