"""Owns finding a kernel's tunable literals in its source text: tile sizes, warps, stages, CUDA block sizes.

Read with `ast` and regular expressions; nothing is run. A Knob is a literal at exact character offsets, so that a move
changes those characters and nothing else: the source keeps its formatting.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One integer literal that may be turned."""

    name: str
    """As a person knows it: 'num_warps', 'BLOCK_SIZE', 'block', 'Config 2 BLOCK_M'."""
    kind: str
    """'warps' | 'stages' | 'tile' | 'cuda_block'."""
    value: int
    start: int
    end: int
    """Character offsets of the literal, half open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """An option that the launch does not name yet."""

    name: str
    kind: str
    at: int
    """Character offset at which ', name=value' goes."""


def find_knobs(text: str, kernels: tuple[str, ...]) -> tuple[list[Knob], list[Insertion]]:
    """Tunable literals of the launches of `kernels` in Python text. Half-typed text has none."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return [], []
    offsets = _line_offsets(text)
    constexprs = _constexpr_names(tree, kernels)
    knobs: list[Knob] = []
    insertions: list[Insertion] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if _launched_kernel(node) in kernels:
                found = _launch_knobs(node, text, offsets, constexprs)
                knobs += found
                insertions += _missing_options(node, text, offsets, {knob.name for knob in found})
            elif _is_config(node):
                knobs += _config_knobs(node, text, offsets)
    return _named_apart(knobs), insertions if not any(_is_config(n) for n in ast.walk(tree)) else []


def find_cuda_knobs(text: str) -> list[Knob]:
    """Tunable literals of CUDA text: a block size in an '// odyssey:' comment or `const int threads = 256`."""
    knobs = []
    for match in re.finditer(r"//\s*odyssey:.*?\bblock=\(?\s*(\d+)", text):
        knobs.append(Knob(name="block", kind="cuda_block", value=int(match[1]), start=match.start(1), end=match.end(1)))
    pattern = r"\b(?:const(?:expr)?\s+)?int\s+((?:num_?)?threads\w*|block_?size|BLOCK\w*)\s*=\s*(\d+)\s*;"
    for match in re.finditer(pattern, text, re.IGNORECASE):
        knobs.append(
            Knob(name=match[1], kind="cuda_block", value=int(match[2]), start=match.start(2), end=match.end(2))
        )
    return knobs


def _line_offsets(text: str) -> list[int]:
    offsets, position = [0], 0
    for line in text.splitlines(keepends=True):
        position += len(line)
        offsets.append(position)
    return offsets


def _offset(text: str, offsets: list[int], line: int, utf8_column: int) -> int:
    """ast counts columns in UTF-8 bytes; we count characters."""
    start = offsets[line - 1]
    end = offsets[line] if line < len(offsets) else len(text)
    return start + len(text[start:end].encode()[:utf8_column].decode(errors="ignore"))


def _launched_kernel(call: ast.Call) -> str:
    """`name` of `name[grid](...)`, or ''."""
    function = call.func
    if isinstance(function, ast.Subscript) and isinstance(function.value, ast.Name):
        return function.value.id
    return ""


def _is_config(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (isinstance(function, ast.Attribute) and function.attr == "Config") or (
        isinstance(function, ast.Name) and function.id == "Config"
    )


def _constexpr_names(tree: ast.Module, kernels: tuple[str, ...]) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                if argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation):
                    names.add(argument.arg)
    return names


def _knob(name: str, kind: str, value: ast.expr, text: str, offsets: list[int]) -> Knob | None:
    if not (isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0):
        return None
    start = _offset(text, offsets, value.lineno, value.col_offset)
    end = _offset(text, offsets, value.end_lineno or value.lineno, value.end_col_offset or value.col_offset)
    return Knob(name=name, kind=kind, value=value.value, start=start, end=end)


def _kind(option: str) -> str:
    return {"num_warps": "warps", "num_stages": "stages"}.get(option, "tile")


def _launch_knobs(call: ast.Call, text: str, offsets: list[int], constexprs: set[str]) -> list[Knob]:
    found = []
    for keyword in call.keywords:
        name = keyword.arg or ""
        if name in ("num_warps", "num_stages") or (name in constexprs and _looks_like_a_tile(name)):
            knob = _knob(name, _kind(name), keyword.value, text, offsets)
            if knob is not None:
                found.append(knob)
    return found


def _looks_like_a_tile(name: str) -> bool:
    return bool(re.match(r"(?i)^(x|y|z|r)?(block|tile|group|chunk)", name))


def _missing_options(call: ast.Call, text: str, offsets: list[int], named: set[str]) -> list[Insertion]:
    given = {keyword.arg for keyword in call.keywords}
    if None in given or not (call.args or call.keywords):
        return []
    last = max(
        [*call.args, *(k.value for k in call.keywords)], key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0)
    )
    at = _offset(text, offsets, last.end_lineno or last.lineno, last.end_col_offset or last.col_offset)
    return [
        Insertion(name=name, kind=_kind(name), at=at)
        for name in ("num_warps", "num_stages")
        if name not in given and name not in named
    ]


def _config_knobs(call: ast.Call, text: str, offsets: list[int]) -> list[Knob]:
    found = []
    if call.args and isinstance(call.args[0], ast.Dict):
        for key, value in zip(call.args[0].keys, call.args[0].values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                knob = _knob(f"Config {key.value}", "tile", value, text, offsets)
                found += [knob] if knob else []
    for keyword in call.keywords:
        if keyword.arg in ("num_warps", "num_stages"):
            knob = _knob(f"Config {keyword.arg}", _kind(keyword.arg), keyword.value, text, offsets)
            found += [knob] if knob else []
    return found


def _named_apart(knobs: list[Knob]) -> list[Knob]:
    """Several configs have knobs of one name: number them in order of the text."""
    seen: dict[str, int] = {}
    total: dict[str, int] = {}
    for knob in knobs:
        total[knob.name] = total.get(knob.name, 0) + 1
    named = []
    for knob in sorted(knobs, key=lambda k: k.start):
        seen[knob.name] = seen.get(knob.name, 0) + 1
        name = f"{knob.name} #{seen[knob.name]}" if total[knob.name] > 1 else knob.name
        named.append(Knob(name=name, kind=knob.kind, value=knob.value, start=knob.start, end=knob.end))
    return named
