"""Owns the shas that verdicts hang on: a text's, a problem's, and the evaluator's own. Never runs what it hashes.

A problem's sha must not move when only the candidate is edited, also where reference and candidate stand in one file.
So of a shared file only those statements count that the reference and the inputs need, found by syntax.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path, PurePath

from evalcore.problem import Problem
from evalcore.wire import encode

_PACKAGE = Path(__file__).resolve().parent


def sha256_text(text: str) -> str:
    """The sha256 of a text as UTF-8, in hex. Lone surrogates (from undecodable bytes) are kept apart, not refused."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def problem_sha(problem: Problem) -> str:
    """What the reference computes, on which inputs, within which tolerance. Independent of the candidate's text."""
    reference = problem.reference
    shared = reference.path == problem.candidate.path
    needed = needed_text(reference.text, _roots(problem)) if shared else reference.text
    facts = {
        "format": problem.format,
        "reference": [reference.entry, reference.kind.value, reference.call, encode(reference.launch), needed],
        "inputs": encode(problem.inputs),
        "cases": encode(problem.cases),
        "tolerance": encode(problem.tolerance),
        "backward": problem.backward,
        "overlays": sorted(_reference_overlays(problem, needed)),
        "launch": encode(problem.candidate.launch),
    }
    return sha256_text(json.dumps(facts, sort_keys=True, separators=(",", ":")))


def evaluator_sha() -> tuple[str, str]:
    """(sha256, md5) over every source file of evalcore, names included, in a fixed order."""
    strong = hashlib.sha256()
    weak = hashlib.md5(usedforsecurity=False)
    for path in sorted(_PACKAGE.rglob("*.py")):
        part = path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
        strong.update(part)
        weak.update(part)
    return strong.hexdigest(), weak.hexdigest()


def needed_text(text: str, roots: Iterable[str]) -> str:
    """The top-level statements that `roots` need, directly or through others, without blank lines and trailing space.

    Positions do not count, so an edit above the reference does not change the result. A text that does not parse
    comes back whole: then nothing better is known.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return text
    binders: dict[str, list[int]] = {}
    for index, node in enumerate(body):
        for name in _bound(node):
            binders.setdefault(name, []).append(index)
    wanted: set[int] = set()
    pending = list(roots)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for index in binders.get(name, ()):
            if index not in wanted:
                wanted.add(index)
                pending.extend(_used(body[index]))
    lines = text.splitlines()
    kept: list[str] = []
    for index in sorted(wanted):
        node = body[index]
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        kept.extend(line.rstrip() for line in lines[first - 1 : node.end_lineno] if line.strip())
    return "\n".join(kept)


def _roots(problem: Problem) -> set[str]:
    inputs = problem.inputs
    roots = {problem.reference.entry, inputs.function, inputs.init_function or ""}
    roots |= _words(problem.reference.call) | _words(inputs.statements)
    roots |= {name for name, _value in inputs.constants}
    return roots - {""}


def _words(source: str) -> set[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return _used(tree)


def _used(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    for each in ast.walk(node):
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.split(".")[0] for alias in each.names}
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(each.name)
    return names


def _reference_overlays(problem: Problem, needed: str) -> list[tuple[str, str]]:
    """Unsaved helper modules that the reference's statements seem to import, by the last part of their path."""
    words = _imported_words(needed)
    found = []
    for path, text in problem.overlays:
        if path == problem.candidate.path:
            continue
        stem = PurePath(path).stem
        if stem in words or (stem == "__init__" and PurePath(path).parent.name in words):
            found.append((path, sha256_text(text)))
    return found


def _imported_words(text: str) -> set[str]:
    words: set[str] = set()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return words
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                words.update(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            words.update((node.module or "").split("."))
            words.update(alias.name for alias in node.names)
    return words
