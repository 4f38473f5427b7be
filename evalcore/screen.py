"""Owns the screen of a candidate's text: what in it tries to deceive, found by syntax. Never runs or imports it.

Three strengths. `note`: worth knowing, honest code does it too. `gate`: a hint to a person, a refusal for a model's
text. `proof`: nobody computes a kernel this way (patching the clock, calling the reference), a refusal for everyone.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from evalcore.screen_cuda import screen_cuda
from evalcore.screen_rules import RULES, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenHit:
    """One find. Line and column from 1; columns count Unicode code points."""

    rule: str
    line: int
    column: int
    message: str
    gate: bool
    """A model's text with this is refused; a person is told."""
    proof: bool = False
    """By itself proof of deceit, whoever wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceNames:
    """What the candidate must not call: the reference's entry, and the module it lives in."""

    entry: str = ""
    module: str = ""
    """Last part of the reference file's name without suffix; '' where reference and candidate share a file."""
    candidate: str = ""
    """The candidate's entry: what it reaches is judged, the rest of a shared file is the person's own business."""


def screen(text: str, language: str, reference: ReferenceNames | None = None) -> list[ScreenHit]:
    """Hits in reading order. `language` is 'triton' (Python text) or 'cuda'. Text that does not parse has none."""
    if language == "cuda":
        return sorted((_hit(*found) for found in screen_cuda(text)), key=_order)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = reference or ReferenceNames()
    source = Text(tree=tree, lines=text.splitlines(), entry=names.entry, module=names.module, candidate=names.candidate)
    hits: list[ScreenHit] = []
    for rule in RULES:
        for node, message in rule.find(source):
            line = getattr(node, "lineno", 1)
            column = _column(source.lines, line, getattr(node, "col_offset", 0))
            hits.append(
                ScreenHit(rule=rule.name, line=line, column=column, message=message, gate=rule.gate, proof=rule.proof)
            )
    for literal, line in source.cuda_strings():
        for name, offset, _column_there, message, gate in screen_cuda(literal):
            hits.append(ScreenHit(rule=name, line=line + offset - 1, column=1, message=message, gate=gate))
    return _first_of_each(sorted(hits, key=_order))


def _hit(rule: str, line: int, column: int, message: str, gate: bool) -> ScreenHit:
    return ScreenHit(rule=rule, line=line, column=column, message=message, gate=gate)


def _order(hit: ScreenHit) -> tuple[int, int, str]:
    return hit.line, hit.column, hit.rule


def _column(lines: list[str], line: int, byte_offset: int) -> int:
    """ast counts UTF-8 bytes; people and editors count characters."""
    if not 1 <= line <= len(lines):
        return 1
    return len(lines[line - 1].encode()[:byte_offset].decode("utf-8", "replace")) + 1


def _first_of_each(hits: list[ScreenHit]) -> list[ScreenHit]:
    seen: set[tuple[str, int]] = set()
    kept = []
    for hit in hits:
        if (hit.rule, hit.line) not in seen:
            seen.add((hit.rule, hit.line))
            kept.append(hit)
    return kept
