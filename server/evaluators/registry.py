"""Owns the literal table of adapters. Adding one is a file in adapters/ and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from server.evaluators.adapters import flashinfer, gpumode, kernelbench, script
from server.evaluators.reading import Reading
from server.evaluators.running import Plan, Ran
from server.evaluators.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """How one kind of evaluator is fed and read."""

    plan: Callable[[Task, str], Plan]
    read: Callable[[Task, Ran], Reading]


ADAPTERS: dict[str, Adapter] = {
    "script": Adapter(plan=script.plan, read=script.read),
    "gpumode": Adapter(plan=gpumode.plan, read=gpumode.read),
    "flashinfer": Adapter(plan=flashinfer.plan, read=flashinfer.read),
    "kernelbench": Adapter(plan=kernelbench.plan, read=kernelbench.read),
}
