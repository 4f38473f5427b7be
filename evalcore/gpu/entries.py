"""Owns the step from a module to something callable: its class built and on the device, its function, its expression.

Also how values get onto the device, and the seeds that both sides share. Never loads a module itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import torch

from evalcore.facts import Place
from evalcore.gpu.faults import fault
from evalcore.problem import Inputs, Problem, Program, ProgramKind

_INPUT_GLOBALS = ("torch", "math", "random")


def entry_of(
    module: ModuleType,
    problem: Problem,
    program: Program,
    *,
    device: str,
    seed: int,
    init_inputs: list[Any] | None,
) -> tuple[Callable[..., Any], dict[str, torch.Tensor]]:
    if program.kind is ProgramKind.EXPRESSION:
        return _expression(module, problem.inputs, program), {}
    target: Any = attribute(module, program.entry)
    if program.kind is ProgramKind.FUNCTION:
        is_autograd = isinstance(target, type) and issubclass(target, torch.autograd.Function)
        return (getattr(target, "apply") if is_autograd else target), {}  # noqa: B009  (mypy knows no such attribute)
    if init_inputs is None:
        own = vars(module).get(problem.inputs.init_function or "")
        init_inputs = in_order(own(), ()) if own is not None else []
    return _module(target, device, seed, init_inputs)


def attribute(module: ModuleType, dotted: str) -> Any:
    target: Any = module
    for part in dotted.split("."):
        there = part in vars(module) if target is module else hasattr(target, part)
        if not there:
            path = getattr(module, "__file__", "") or ""
            raise fault(
                "compile", f"{os.path.basename(path)} has no {dotted!r}", Place(path=path, line=1) if path else None
            )
        target = getattr(target, part)
    return target


def _module(
    kind: Any, device: str, seed: int, arguments: list[Any]
) -> tuple[Callable[..., Any], dict[str, torch.Tensor]]:
    """An instance on `device`, built after the same seed as its counterpart, and its parameters and buffers."""

    def build() -> Any:
        seed_everything(seed)
        return kind(*[to_device(one, device) for one in arguments])

    instance = on_device(build, device, seed)
    if isinstance(instance, torch.nn.Module):
        instance = instance.to(device)
        return instance, dict(instance.state_dict(keep_vars=True))
    return (instance if callable(instance) else instance.forward), {}


def _expression(module: ModuleType, inputs: Inputs, program: Program) -> Callable[..., Any]:
    names = inputs.names
    namespace = with_globals(module.__dict__)
    code = compile(f"lambda {', '.join(names)}: (\n{program.call}\n)", "<expression>", "eval", dont_inherit=True)
    function: Callable[..., Any] = eval(code, namespace)
    return function


def seed_everything(seed: int) -> None:
    """Seeds every generator that user code commonly draws from."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def with_globals(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a module's names, with the modules that expressions and input recipes take for granted."""
    made = dict(namespace)
    for name in _INPUT_GLOBALS:
        if name not in made:
            made[name] = __import__(name)
    triton = sys.modules.get("triton")
    if triton is not None:
        made.setdefault("triton", triton)
    return made


@contextlib.contextmanager
def _default_device(device: str) -> Iterator[None]:
    if device == "cpu":
        yield
        return
    with torch.device(device):
        yield


def on_device(make: Callable[[], Any], device: str, seed: int) -> Any:
    """`make()` with `device` as the default, faster than moving; where that fails, made on the CPU and moved."""
    try:
        with _default_device(device):
            made = make()
    except (RuntimeError, TypeError, ValueError):
        if device == "cpu":
            raise
        seed_everything(seed)
        made = make()
    return to_device(made, device)


def to_device(value: Any, device: str) -> Any:
    """`value` with every tensor in it, also in lists, tuples and dicts, on `device`."""
    if isinstance(value, torch.Tensor):
        return value if device == "cpu" else value.to(device)
    if isinstance(value, (list, tuple)):
        moved = [to_device(one, device) for one in value]
        if isinstance(value, tuple):
            return type(value)(*moved) if hasattr(value, "_fields") else tuple(moved)
        return moved
    if isinstance(value, dict):
        return {key: to_device(one, device) for key, one in value.items()}
    return value


def in_order(made: Any, names: tuple[str, ...]) -> list[Any]:
    """An argument list out of what an input function returned: a list, a dict by name, or one value."""
    if isinstance(made, dict):
        return [made[name] for name in names] if names and all(name in made for name in names) else list(made.values())
    return list(made) if isinstance(made, (list, tuple)) else [made]
