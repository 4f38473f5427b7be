"""Owns counting what a reference must do: FLOPs by operator, bytes by unique storage. Never times anything.

Counts on tensors without memory where the reference allows that, else on a real run. Bytes are a lower bound for any
implementation: each input storage counts at most once, and only as many elements of it as operators really consume, so
that an embedding table of which four rows are read is not charged as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import FlopCounterMode

from evalcore.gpu.answer import Reference
from evalcore.gpu.faults import CandidateFault
from evalcore.problem import Work
from evalcore.work import OpCount, counted, estimated

_GATHERS = frozenset({"embedding", "index", "index_select", "gather", "take", "_embedding_bag"})
_NO_READ = frozenset(
    {"empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "rand_like", "randn_like"}
)
_REFUSED = (CandidateFault, RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError, IndexError)


class _Counter(TorchDispatchMode):
    """Sees every operator: names and sizes, and how many elements of each watched storage it consumes."""

    def __init__(self, watched: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.ops: list[OpCount] = []
        self._whole = {_storage(each): each.numel() * each.element_size() for each in watched}
        self._used: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        inputs = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        outputs = [each for each in tree_leaves(out) if isinstance(each, torch.Tensor)]
        if not _is_view(func, inputs, outputs) and name not in _NO_READ:
            produced = max((each.numel() for each in outputs), default=0)
            self.ops.append(OpCount(name, max((each.numel() for each in inputs), default=0), produced))
            for index, each in enumerate(inputs):
                elements = produced if name in _GATHERS and index == 0 else each.numel()
                self._use(each, elements * each.element_size())
        return out

    def _use(self, tensor: torch.Tensor, size_bytes: int) -> None:
        storage = _storage(tensor)
        if storage in self._whole:
            self._used[storage] = self._used.get(storage, 0) + size_bytes

    def bytes_read(self) -> int:
        """Bytes of watched storages that were consumed, each at most once."""
        return sum(min(whole, self._used.get(storage, 0)) for storage, whole in self._whole.items())


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _is_view(func: Any, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """An operator whose outputs all share storage with an input and that writes nothing moves no bytes."""
    if not outputs or func._schema.is_mutable:
        return False
    held = {_storage(each) for each in inputs}
    return all(_storage(each) in held for each in outputs)


def count(reference: Reference, inputs: list[Any]) -> Work:
    """The least work of one call of `reference` on `inputs`, which are left as they are.

    Falls back from counting without memory to counting a real run, and from there to bytes of inputs and outputs alone.
    Raises CandidateFault where the reference itself fails.
    """
    state = dict(getattr(reference, "state", None) or {})
    meta_call = _meta_call(reference, state)
    if meta_call is not None:
        meta_state = {name: value.detach().to("meta") for name, value in state.items()}
        meta_inputs = tree_map(_to_meta, inputs)
        try:
            return _count(lambda: meta_call(meta_state, meta_inputs), meta_inputs, meta_state)
        except _REFUSED:
            pass
    copies = tree_map(lambda each: each.detach().clone() if isinstance(each, torch.Tensor) else each, inputs)
    try:
        return _count(lambda: reference.call(copies), copies, state)
    except _REFUSED:
        outputs = reference.call(copies)
        leaves = [each for each in tree_leaves(outputs) if isinstance(each, torch.Tensor)]
        return estimated(bytes_read=_bytes(tree_leaves(inputs)), bytes_written=_bytes(leaves), dtype=_dtype(leaves))


def _to_meta(value: Any) -> Any:
    return value.detach().to("meta") if isinstance(value, torch.Tensor) else value


def _meta_call(reference: Reference, state: dict[str, torch.Tensor]) -> Callable[[Any, Any], Any] | None:
    function = getattr(reference, "function", None)
    if isinstance(function, torch.nn.Module):
        module = function
        return lambda meta_state, args: torch.func.functional_call(module, meta_state, tuple(args))
    return None if function is None else lambda _state, args: function(*args)


def _count(run: Callable[[], Any], inputs: Any, state: dict[str, torch.Tensor]) -> Work:
    watched = [each for each in tree_leaves(inputs) if isinstance(each, torch.Tensor)] + list(state.values())
    flops = FlopCounterMode(display=False)
    counter = _Counter(watched)
    with torch.no_grad(), flops, counter:
        made = run()
    outputs = [each for each in tree_leaves(made) if isinstance(each, torch.Tensor)]
    held = {_storage(each) for each in watched}
    fresh = {_storage(each): each for each in outputs}
    written = _bytes([each for storage, each in fresh.items() if storage not in held])
    in_place = [each for storage, each in fresh.items() if storage in held]
    return counted(
        matrix_flops=int(flops.get_total_flops()),
        ops=counter.ops,
        bytes_read=counter.bytes_read(),
        bytes_written=written + _bytes(in_place),
        dtype=_dtype(outputs or watched),
    )


def _bytes(values: Sequence[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in values if isinstance(each, torch.Tensor))


def _dtype(values: Sequence[torch.Tensor]) -> str:
    """The dtype that names the lane: that of the largest floating tensor, float32 where there is none."""
    floats = [each for each in values if each.is_floating_point()]
    largest = max(floats, key=lambda each: each.numel(), default=None)
    return "float32" if largest is None else str(largest.dtype).removeprefix("torch.")
