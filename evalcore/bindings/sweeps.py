"""Owns reading `triton.testing.Benchmark` tables: which parameters are swept over which sizes. Never runs them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalcore.bindings.calls import HostMap
from evalcore.bindings.constants import UNKNOWN, evaluate, is_size
from evalcore.bindings.sizes import find_slots
from evalcore.names import dotted


@dataclass(slots=True)
class Sweep:
    """One benchmark function with the settings at which the file runs it."""

    function: ast.FunctionDef
    settings: list[dict[str, Any]] = field(default_factory=list)
    """Parameter -> value for each point of the table, fixed arguments included where they are literals."""
    dims: dict[str, list[str]] = field(default_factory=dict)
    """Tensor variable of the function -> its dimensions as parameter names."""
    line_arg: str = ""
    line_vals: list[str] = field(default_factory=list)


def find_sweeps(tree: ast.Module, hosts: HostMap, constants: Mapping[str, Any]) -> list[Sweep]:
    """All `@triton.testing.perf_report` functions of a module."""
    loose = [call for call in _benchmarks(tree) if not _in_decorator(call, hosts)]
    found: list[Sweep] = []
    for function in hosts.functions.values():
        if not isinstance(function, ast.FunctionDef):
            continue
        reports = [each for each in function.decorator_list if _is_report(each)]
        if not reports:
            continue
        tables = [call for each in reports for call in _benchmarks(each)] or loose
        sweep = Sweep(function, dims=_dims(function))
        for table in tables:
            _read(sweep, table, constants)
        found.append(sweep)
    return found


def _is_report(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).endswith("perf_report")


def _benchmarks(node: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Call) and dotted(each.func).endswith("Benchmark")]


def _in_decorator(call: ast.Call, hosts: HostMap) -> bool:
    return any(
        call is each
        for function in hosts.functions.values()
        for decorator in function.decorator_list
        for each in ast.walk(decorator)
    )


def _read(sweep: Sweep, table: ast.Call, constants: Mapping[str, Any]) -> None:
    words = {word.arg: word.value for word in table.keywords}
    names = evaluate(words.get("x_names"), constants)
    values = evaluate(words.get("x_vals"), constants)
    if not isinstance(names, (list, tuple)) or not isinstance(values, (list, tuple)):
        return
    fixed = evaluate(words.get("args"), constants)
    fixed = fixed if isinstance(fixed, dict) else {}
    line_arg = evaluate(words.get("line_arg"), constants)
    sweep.line_arg = line_arg if isinstance(line_arg, str) else sweep.line_arg
    lines = evaluate(words.get("line_vals"), constants)
    if isinstance(lines, list):
        sweep.line_vals += [each for each in lines if each not in sweep.line_vals]
    defaults = _defaults(sweep.function, constants)
    for value in values:
        point = list(value) if isinstance(value, (list, tuple)) else [value] * len(names)
        if len(point) == len(names):
            setting = {**defaults, **fixed, **dict(zip(names, point, strict=False))}
            if setting not in sweep.settings:
                sweep.settings.append(setting)


def _defaults(function: ast.FunctionDef, constants: Mapping[str, Any]) -> dict[str, Any]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found = {}
    for argument, node in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        value = evaluate(node, constants)
        if value is not UNKNOWN:
            found[argument.arg] = value
    return found


def _dims(function: ast.FunctionDef) -> dict[str, list[str]]:
    statements = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
    statements.sort(key=lambda each: each.lineno)
    found: dict[str, list[str]] = {}
    seen: set[tuple[str, int]] = set()
    for slot in find_slots(statements):
        if (slot.variable, slot.position) in seen:
            continue
        seen.add((slot.variable, slot.position))
        found.setdefault(slot.variable, []).append(slot.node.id if isinstance(slot.node, ast.Name) else "?")
    return found


def sweep_settings(sweep: Sweep, dims: Mapping[str, list[str]], constants: Mapping[str, int]) -> list[dict[str, int]]:
    """The sweep's points as sizes of `constants`, where its tensors and ours (`dims`) have the same names and ranks."""
    mapping: dict[str, str] = {}
    for variable, words in dims.items():
        theirs = sweep.dims.get(variable, [])
        if len(theirs) != len(words):
            continue
        for mine, other in zip(words, theirs, strict=False):
            if mine in constants and other != "?" and mapping.setdefault(mine, other) != other:
                return []
    swept = {name for setting in sweep.settings for name in setting}
    if not mapping or not set(mapping.values()) & swept:
        return []
    found = []
    for setting in sweep.settings:
        sizes = {mine: setting[other] for mine, other in mapping.items() if is_size(setting.get(other))}
        if sizes and sizes not in found:
            found.append(sizes)
    return found


def sweep_hints(sweeps: list[Sweep]) -> dict[str, list[str]]:
    """Dimension names by variable, from all benchmark functions, the first one winning."""
    found: dict[str, list[str]] = {}
    for sweep in sweeps:
        for variable, words in sweep.dims.items():
            found.setdefault(variable, ["" if word == "?" else word for word in words])
    return found
