"""Owns 'cuda' on a machine without one: torch calls of unmodified user code that ask for a GPU are done on the CPU.

A TorchFunctionMode maps device arguments, `.cuda()`, and answers `is_cuda` and `.device` as a GPU would. It is on while
the person's Python runs and off while Triton's interpreter does. Never used where a GPU does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

GPU = torch.device("cuda", 0)
_CPU = torch.device("cpu")

def as_cpu(device: Any) -> Any:
    """A device argument with every CUDA device replaced by the CPU; anything else as it is."""
    if isinstance(device, str) and device.startswith("cuda"):
        return _CPU
    if isinstance(device, torch.device) and device.type == "cuda":
        return _CPU
    return device


class CpuForCuda(TorchFunctionMode):
    """Does on the CPU what user code asks of a GPU."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        special = _SPECIAL.get(func)
        if special is not None:
            return special(*args, **kwargs)
        if "device" in kwargs:
            device = as_cpu(kwargs["device"])
            if isinstance(device, int) and not isinstance(device, bool):
                device = _CPU
            kwargs = {**kwargs, "device": device}
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if any(isinstance(one, torch.device) and one.type == "cuda" for one in args):
            args = tuple(as_cpu(one) for one in args)
        return func(*args, **kwargs)


def _answer_is_cuda(tensor: torch.Tensor) -> bool:
    return not tensor.is_meta


def _answer_device(tensor: torch.Tensor) -> torch.device:
    return tensor.device if tensor.is_meta else GPU


def _answer_get_device(tensor: torch.Tensor) -> int:
    return 0


def _same(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    memory_format = kwargs.get("memory_format")
    return tensor if memory_format is None else tensor.contiguous(memory_format=memory_format)


def _no(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> bool:
    return False


def _nothing(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    return None


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Tensor.to with its device, where it has one, on the CPU. An int in the first place is a CUDA index."""
    rest = [as_cpu(one) for one in args]
    if rest and isinstance(rest[0], int) and not isinstance(rest[0], bool):
        rest[0] = _CPU
    if "device" in kwargs:
        device = kwargs["device"]
        kwargs = {**kwargs, "device": _CPU if isinstance(device, int) else as_cpu(device)}
    return tensor.to(*rest, **kwargs)


# keyed by the descriptors' getters, which compare equal although each access makes a new one
_SPECIAL: dict[Any, Callable[..., Any]] = {
    torch.Tensor.is_cuda.__get__: _answer_is_cuda,  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: _no,  # type: ignore[attr-defined]
    torch.Tensor.device.__get__: _answer_device,  # type: ignore[attr-defined]
    torch.Tensor.get_device: _answer_get_device,
    torch.Tensor.cuda: _same,
    torch.Tensor.pin_memory: _same,
    torch.Tensor.is_pinned: _no,
    torch.Tensor.record_stream: _nothing,
    torch.Tensor.to: _to,
}


_depth = 0
_mode = CpuForCuda()


@contextmanager
def pretend_cuda() -> Iterator[None]:
    """On while user code runs; nested use counts once."""
    global _depth
    if _depth:
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
        return
    with _mode:
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1


@contextmanager
def plain_torch() -> Iterator[None]:
    """Off inside `pretend_cuda`, for our own code and Triton's interpreter."""
    with torch._C.DisableTorchFunction():
        yield
