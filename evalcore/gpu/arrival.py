"""Owns the moment of a call: inputs that arrive late on the caller's stream, outputs taken the moment it returns.

Who works on a stream of his own without waiting for the caller's finds poison in the inputs; who is not waited for
leaves poison in the copy. Joined streams never notice. Used in trials, never while timing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from evalcore.gpu.outputs import Output

_DELAY_CYCLES = 2_000_000
"""About a millisecond: long against a launch, short against a trial."""
_MOST_BYTES = 1 << 30
"""Larger inputs or outputs are not copied for this."""
_ODD_BYTE = 0xFF
"""NaN in every floating type, -1 in integers."""


def arrive_late(raws: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Poison guarded buffers and queue their true bytes behind a delay on the current stream.

    Returns what must stay alive until the stream is drained; [] on a CPU or where the buffers are too large.
    """
    if not raws or not raws[0].is_cuda or sum(raw.numel() for raw in raws) > _MOST_BYTES:
        return []
    kept = [raw.clone() for raw in raws]
    for raw in raws:
        raw.fill_(_ODD_BYTE)
    torch.cuda.synchronize()
    torch.cuda._sleep(_DELAY_CYCLES)
    for raw, true in zip(raws, kept, strict=True):
        raw.copy_(true)
    return kept


def take(outputs: Sequence[Output]) -> list[Output]:
    """Copies queued on the current stream right behind the call, before anybody waits for other streams."""
    size = sum(each.tensor.numel() * each.tensor.element_size() for each in outputs if each.tensor is not None)
    if size > _MOST_BYTES:
        return list(outputs)
    return [
        replace(each, tensor=each.tensor.clone()) if each.tensor is not None and each.tensor.is_cuda else each
        for each in outputs
    ]
