"""Owns the KernelBench format: class Model with get_inputs as reference, ModelNew as candidate. Never runs either.

The pair stands in one file, or the candidate's file has a sibling by name, by import, or named in a comment.
"""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from evalcore.bindings.binding import Binding, Reader, Source, loads, parse
from evalcore.bindings.calls import HostMap
from evalcore.bindings.constants import is_size, looks_like_batch, module_constants
from evalcore.bindings.root import project_root
from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind, Tolerance

FORMAT = "kernelbench"
_TOLERANCE = Tolerance(atol=1e-4, rtol=1e-4, origin="format")
"""KernelBench's own for float32 problems."""
_SUFFIXES = (
    "_new", "_triton", "_cuda", "_kernel", "_solution", "_answer", "_optimized", "_opt", "_fast", "_candidate", "_cute",
    "_tilelang", "_hip", "_thunderkittens", "_custom", "_generated", "_inline",
)  # fmt: skip
_FOLDERS = ("", "..", "../problems", "../reference", "../references", "../level1", "../KernelBench/level1", "problems")
_NAMED = re.compile(r"^\s*#.*?\b(?:problem|reference|kernelbench|task)\s*[:=]\s*[`'\"]?([\w./\\ -]+\.py)", re.I | re.M)
_FIXED = ("model.py", "reference.py", "problem.py", "ref.py")


def bind_kernelbench(source: Source, read: Reader, hosts: HostMap) -> list[Binding]:
    """The pair, where `source` has a ModelNew and a Model with get_inputs can be found; else an empty list."""
    new = hosts.classes.get("ModelNew")
    if new is None:
        return []
    if "Model" in hosts.classes and "get_inputs" in hosts.functions:
        return [_binding(source, source, read, hosts, "Model, get_inputs and ModelNew in one file", new.lineno)]
    for path, evidence in _siblings(source):
        text = read(path)
        if text is None or "get_inputs" not in text or "Model" not in text:
            continue
        reference = parse(path, text)
        if isinstance(reference, Source) and _is_problem(reference):
            return [_binding(source, reference, read, hosts, evidence, 0)]
    return []


def _is_problem(source: Source) -> bool:
    names = {node.name for node in source.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return {"Model", "get_inputs"} <= names


def _siblings(source: Source) -> list[tuple[str, str]]:
    """(absolute path, evidence) of files that may hold the problem, likeliest first."""
    here = PurePath(source.path)
    found: list[tuple[str, str]] = []

    def add(path: PurePath, evidence: str) -> None:
        normal = _normal(path)
        if normal != _normal(here) and all(normal != known for known, _why in found):
            found.append((normal, evidence))

    for named in _NAMED.findall(source.text):
        add(here.parent / named.strip().replace("\\", "/"), f"a comment names {named.strip()}")
    for module in _imported_model(source.tree):
        add(here.parent / f"{module}.py", f"Model is imported from {module}")
    for stem in _stems(here.stem):
        add(here.parent / f"{stem}.py", f"{stem}.py beside it holds Model and get_inputs")
    for name in _FIXED:
        add(here.parent / name, f"{name} beside it holds Model and get_inputs")
    for folder in _FOLDERS:
        for stem in (here.stem, *_stems(here.stem)):
            add(here.parent / folder / f"{stem}.py", f"{folder}/{stem}.py holds Model and get_inputs")
    return found


def _normal(path: PurePath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] not in ("..", path.anchor):
            parts.pop()
        elif part != ".":
            parts.append(part)
    return str(PurePath(*parts)) if parts else str(path)


def _stems(stem: str) -> list[str]:
    """'model_new_ex_add_triton' -> 'model_ex_add', ...: the name without what marks an answer."""
    found = []
    current = stem
    changed = True
    while changed:
        changed = False
        for suffix in _SUFFIXES:
            if current.endswith(suffix) and len(current) > len(suffix):
                current = current[: -len(suffix)]
                found.append(current)
                changed = True
    for each in (stem, *found):
        if "_new_" in each:
            found.append(each.replace("_new_", "_", 1))
        if each.startswith("new_"):
            found.append(each.removeprefix("new_"))
    return list(dict.fromkeys(name for name in found if name != stem))


def _imported_model(tree: ast.Module) -> list[str]:
    found = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == "Model" for alias in node.names):
            found.append(node.module.replace(".", "/"))
    return found


def _binding(source: Source, reference: Source, read: Reader, hosts: HostMap, evidence: str, line: int) -> Binding:
    kernels = hosts.reach_names({"ModelNew"}) or set(hosts.kernels)
    constants, batch = size_constants(reference)
    init = _has_function(reference, "get_init_inputs")
    problem = Problem(
        id=f"{source.name}::ModelNew",
        format=FORMAT,
        reference=Program(path=reference.path, text=reference.text, entry="Model", kind=ProgramKind.MODULE),
        candidate=Program(path=source.path, text=source.text, entry="ModelNew", kind=ProgramKind.MODULE),
        inputs=Inputs(
            kind=InputsKind.GET_INPUTS,
            init_function="get_init_inputs" if init else None,
            constants=constants,
            batch_like=batch,
        ),
        cases=(Case(name=_case_name(constants)),),
        tolerance=_TOLERANCE,
        kernels=hosts.launched(kernels) if kernels else (),
        project_root=project_root(source.path, read),
        reference_line=_line_of(reference, "Model"),
        notes=(evidence,),
    )
    return Binding(problem=problem, kernels=hosts.in_order(kernels), wrapper="ModelNew", evidence=evidence, line=line)


def _case_name(constants: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in constants) if 0 < len(constants) <= 4 else "as given"


def _has_function(source: Source, name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in source.tree.body)


def _line_of(source: Source, name: str) -> int:
    return next((node.lineno for node in source.tree.body if getattr(node, "name", "") == name), 0)


def size_constants(
    source: Source, function: str = "get_inputs", init: str = "get_init_inputs"
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """(constants, batch_like): whole-number module constants that `function` uses and `init` and the classes do not.

    Only plain `NAME = <whole number>` lines count, because only those can be overridden: a constant computed from
    another follows it by itself.
    """
    known = module_constants(source.tree.body)
    used = _used_by(source.tree, function)
    held = _used_by(source.tree, init) | _used_by_classes(source.tree)
    sizes = [
        (name, value)
        for name, value in known.items()
        if is_size(value) and name in used and name not in held and _is_independent(source.tree, name)
    ]
    return tuple(sizes), tuple(name for name, _value in sizes if looks_like_batch(name))


def _is_independent(tree: ast.Module, name: str) -> bool:
    """Whether a constant is written as a number (`2048 * 2` too), not computed from other names."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return not loads(node.value)
    return False


def _used_by(tree: ast.Module, function: str) -> set[str]:
    """Module names that a function needs, through other module-level assignments and functions too."""
    mentions: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            mentions.setdefault(node.name, set()).update(loads(node))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        mentions.setdefault(each.id, set()).update(loads(node.value))
    seen: set[str] = set()
    pending = [function]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending.extend(mentions.get(name, ()))
    return seen - {function}


def _used_by_classes(tree: ast.Module) -> set[str]:
    return set().union(*(loads(node) for node in tree.body if isinstance(node, ast.ClassDef)), set())
