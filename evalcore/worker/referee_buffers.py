"""Owns what a case lends to a referee and hands over: storage to fill, outputs to copy. Never trusts a claim about size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from evalcore.gpu.inputs import Buffers, raw_bytes, view
from evalcore.gpu.outputs import Output
from evalcore.gpu.transfer import Importer, TransferError
from evalcore.problem import TensorSpec

Body = dict[str, Any]


class Borrowed:
    """Storage of cases, opened by owner and name, and let go of by owner."""

    def __init__(self, device: str) -> None:
        self._importer = Importer(device)
        self._raws: dict[tuple[str, str], list[torch.Tensor]] = {}

    def lend(self, body: Body, descriptors: list[int]) -> None:
        """Open storage under a name. Raises TransferError where a handle lies."""
        owner = body["owner"]
        self._raws[owner, body["name"]] = self._importer.open(owner, body["handles"], descriptors)

    def laid(self, owner: str, fill: Body, specs: Sequence[TensorSpec]) -> Buffers:
        """The specs' tensors over the storage lent under `fill["name"]`, at its offset; `only` names some of them."""
        raws = self._raws.get((owner, fill["name"]))
        if raws is None:
            raise TransferError("storage that nobody lent, or that was given back")
        chosen = [index for index, spec in enumerate(specs) if spec.is_tensor]
        wanted = fill.get("only")
        if wanted is not None:
            chosen = [index for index in chosen if specs[index].name in wanted]
        if len(raws) != len(chosen):
            raise TransferError("other storage than what should go into it")
        tensors: list[torch.Tensor | None] = [None] * len(specs)
        offset = int(fill.get("offset", 0))
        for raw, index in zip(raws, chosen, strict=True):
            if offset + raw_bytes(specs[index]) > raw.numel():
                raise TransferError("storage that is too small for what should go into it")
            tensors[index] = view(specs[index], raw[offset : offset + raw_bytes(specs[index])])
        return Buffers(specs=tuple(specs), tensors=tensors)

    def outputs(self, body: Body, descriptors: list[int]) -> list[Output]:
        """A copy of our own of everything that a case returned: what it writes later changes nothing."""
        raws = self._importer.open(body["owner"], body["handles"], descriptors)
        return [_output(described, raws) for described in body["outputs"]]

    def close(self, owner: str) -> None:
        """Let go of all that one case lent or exported."""
        self._raws = {key: raws for key, raws in self._raws.items() if key[0] != owner}
        self._importer.close(owner)


def _output(described: Body, raws: list[torch.Tensor]) -> Output:
    stride = described.get("stride")
    return Output(
        name=described["name"],
        tensor=_tensor(described, raws) if described.get("handle") is not None else None,
        problem=described.get("problem"),
        stride=tuple(stride) if stride is not None else None,
        device=described.get("device", ""),
        number=bool(described.get("number")),
    )


def _tensor(described: Body, raws: list[torch.Tensor]) -> torch.Tensor:
    dtype = getattr(torch, described["dtype"], None)
    if not isinstance(dtype, torch.dtype):
        raise TransferError(f"an unknown dtype {described['dtype'][:40]!r}")
    raw = raws[described["handle"]]
    if raw.numel() != math.prod(described["shape"]) * dtype.itemsize:
        raise TransferError("a shape that does not fit its bytes")
    return raw.clone().view(dtype).reshape(described["shape"])
