"""Owns a program seen as its gradients: called with inputs, it answers with what flows back into them. Never compares.

Reference and candidate are seen the same way, with the same seeded gradient put in at their outputs, so that a key and
a comparison for gradients are the ones that serve outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from evalcore.gpu.faults import CandidateFault, locate
from evalcore.gpu.inputs import flat_values
from evalcore.gpu.loading import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradients:
    """Gradients of a loaded program with respect to some inputs and parameters."""

    program: Loaded
    inputs: tuple[int, ...]
    """Flat positions of the inputs whose gradients are wanted."""
    parameters: tuple[str, ...]
    """Names of parameters, the same on both sides."""
    seed: int
    """Of what is put in at the outputs."""

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """The program's parameters."""
        return self.program.state

    def call(self, inputs: list[Any]) -> dict[str, torch.Tensor | None]:
        """One forward and one backward pass. Raises CandidateFault where either fails."""
        values = flat_values(inputs)
        wanted = {f"input {index}": values[index].detach().requires_grad_() for index in self.inputs}
        fresh = _with(inputs, [wanted.get(f"input {index}", value) for index, value in enumerate(values)])
        wanted |= {name: self.program.state[name] for name in self.parameters}
        with torch.enable_grad():
            out = self.program.call(fresh)
            outputs = [each for each in tree_leaves(out) if isinstance(each, torch.Tensor) and each.requires_grad]
            if not outputs:
                return {f"grad {name}": None for name in wanted}
            try:
                found = torch.autograd.grad(
                    outputs, list(wanted.values()), grad_outputs=self._put_in(outputs), allow_unused=True
                )
            except (Exception, SystemExit) as fault:
                raise CandidateFault(locate(fault, self.program.program)) from fault
        return {f"grad {name}": value for name, value in zip(wanted, found, strict=True)}

    def _put_in(self, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The gradient at the outputs: normal numbers from the seed, made in float32 whatever the outputs are."""
        generator = torch.Generator().manual_seed(self.seed)
        return [
            torch.randn(each.shape, generator=generator).to(device=each.device, dtype=each.dtype) for each in outputs
        ]


def _with(values: Any, leaves: list[Any]) -> Any:
    """The argument list with its flat values replaced, in the order of `flat_values`."""
    found = iter(leaves)

    def place(value: Any) -> Any:
        if isinstance(value, torch.Tensor) or not _holds_tensor(value):
            return next(found)
        if isinstance(value, dict):
            return {key: place(each) for key, each in value.items()}
        return [place(each) for each in value]

    return [place(value) for value in values]


def _holds_tensor(value: Any) -> bool:
    return any(isinstance(each, torch.Tensor) for each in tree_leaves(value))
