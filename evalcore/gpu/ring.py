"""Owns the local ring of input buffers for what we time ourselves (references, opponents, ceilings). Never times.

A timed call gets new values at new addresses: a memo keyed by pointer, or a replayed output, is then wrong. The ring
has at most four buffer sets; each visit of a slot lies 256 bytes further on, so that addresses do not repeat for 64
calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

SLOTS = 4
SHIFTS = 16
SHIFT_BYTES = 256
"""Keeps every alignment that a kernel may rely on (16 bytes for vectors and TMA, 128 for a line)."""

MEMORY_SHARE = 4
"""Together the slots take at most this part (1/4) of the card's free memory."""


class Ring(Protocol):
    """A source of inputs for timed calls."""

    def next(self, index: int) -> list[Any]:
        """Inputs of call `index`: fresh values, other addresses than the call before. The same index gives the same."""


def slots_for(set_bytes: int, free_bytes: int) -> int:
    """How many buffer sets fit: at most SLOTS, at least one."""
    if set_bytes <= 0:
        return SLOTS
    return max(1, min(SLOTS, free_bytes // MEMORY_SHARE // set_bytes))


def place(index: int, slots: int) -> tuple[int, int]:
    """(slot, byte offset in it) of call `index`."""
    return index % slots, (index // slots % SHIFTS) * SHIFT_BYTES


class LocalRing:
    """A ring over given inputs. Values change by rotating each floating tensor.

    Integer tensors (indices, offsets, labels) are copied as they are, because a rotation may break what they mean.
    """

    def __init__(self, inputs: Sequence[Any], *, free_bytes: int | None = None, refill: Refill | None = None) -> None:
        import torch

        self._torch = torch
        self._inputs = list(inputs)
        self._refill = refill
        tensors = [value for value in self._inputs if isinstance(value, torch.Tensor)]
        total = sum(_span_bytes(value) for value in tensors)
        if free_bytes is None:
            on_card = any(value.is_cuda for value in tensors)
            free_bytes = torch.cuda.mem_get_info()[0] if on_card else total * MEMORY_SHARE * SLOTS
        self.slots = slots_for(total, free_bytes)
        self._storages = [[self._storage(value) for value in self._inputs] for _ in range(self.slots)]

    def _storage(self, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor):
            return None
        size = _span_bytes(value) + SHIFTS * SHIFT_BYTES
        return self._torch.empty(size, dtype=self._torch.uint8, device=value.device)

    def next(self, index: int) -> list[Any]:
        """Inputs of call `index`, refilled on the current stream."""
        slot, offset = place(index, self.slots)
        values = []
        for position, (value, storage) in enumerate(zip(self._inputs, self._storages[slot], strict=True)):
            if storage is None:
                values.append(value)
                continue
            view = self._view(value, storage, offset)
            with self._torch.no_grad():
                if self._refill is not None:
                    self._refill(index, position, view)
                else:
                    _rotate(view, value, index)
            values.append(view.requires_grad_(value.requires_grad) if value.requires_grad else view)
        return values

    def _view(self, like: Any, storage: Any, offset: int) -> Any:
        """A tensor of the shape, dtype and strides of `like` in `storage` at `offset` bytes.

        Not a view in torch's sense: torch.compile would look at its base.
        """
        fresh = self._torch.empty(0, dtype=like.dtype, device=like.device)
        return fresh.set_(storage.untyped_storage(), offset // like.element_size(), like.shape, like.stride())


Refill = Callable[[int, int, Any], None]
"""(call index, position of the input, tensor to fill in place)."""


def _span_bytes(tensor: Any) -> int:
    """Bytes from the first to past the last element, as strided; at least one element."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 0)
    return int(last + 1) * int(tensor.element_size())


def _rotate(view: Any, source: Any, index: int) -> None:
    if not source.is_floating_point() or source.numel() < 2 or index == 0:
        view.copy_(source)
        return
    flat = source.reshape(-1)
    shift = (index * 40503) % flat.numel()
    target = view.reshape(-1) if view.is_contiguous() else None
    if target is None:
        view.copy_(flat.roll(shift).reshape(view.shape))
        return
    target[shift:].copy_(flat[: flat.numel() - shift])
    target[:shift].copy_(flat[flat.numel() - shift :])
