"""Owns which pieces of a text can change what is said about a kernel. Never evaluates anything.

A kernel's findings depend on its own piece, on the code that launches it, on that code's callers, and on the
module-level names that those read. Everything else may change without asking the rules again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from server.analysis.python_facts import PieceFacts

_WORD = re.compile(rb"[A-Za-z_]\w*")
_TARGET = re.compile(rb"^([A-Za-z_]\w*)(?:\s*,\s*[A-Za-z_]\w*)*\s*(?::[^=\n]*)?=(?!=)", re.M)
_LEVELS = 3
_SHORT = 200
"""Module-level assignments up to this length may be aliases (`layer_norm = LayerNorm.apply`) that callers use."""


@dataclass(slots=True)
class _Closure:
    """What one kernel depends on."""

    names: set[bytes]
    """A piece that mentions one of these takes part."""
    read: set[bytes]
    """A piece that binds one of these at module level takes part."""
    pieces: set[int]


class Reach:
    """The pieces of one text by what they mention and bind, kept up to date."""

    def __init__(self) -> None:
        self._pieces: dict[int, PieceFacts] = {}
        self._mentions: dict[bytes, set[int]] = {}
        self._givers: dict[bytes, int] = {}
        """Name -> how many pieces define it."""
        self._bound: dict[int, frozenset[bytes]] = {}
        self._closures: dict[str, _Closure] = {}

    def update(self, pieces: Iterable[PieceFacts], kernels: Iterable[str]) -> set[str]:
        """Take over the text's pieces; returns the kernels whose findings may have changed through others' code."""
        now = {id(facts): facts for facts in pieces}
        removed = self._pieces.keys() - now.keys()
        added = [facts for key, facts in now.items() if key not in self._pieces]
        for key in removed:
            self._remove(key)
        for facts in added:
            self._add(facts)
        self._pieces = now
        self._extend(added)
        changed = {name for name in kernels if self._touched(name, removed, added)}
        for name in changed:
            self._closures[name] = self._closure(name)
        return changed

    def _remove(self, key: int) -> None:
        facts = self._pieces[key]
        for name in words(facts) & self._mentions.keys():
            self._mentions[name].discard(key)
        for name in _defined(facts):
            self._givers[name] -= 1
            if not self._givers[name]:
                del self._givers[name]
                self._mentions.pop(name, None)
        self._bound.pop(key, None)

    def _add(self, facts: PieceFacts) -> None:
        key = id(facts)
        for name in words(facts) & self._mentions.keys():
            self._mentions[name].add(key)
        for name in _defined(facts):
            self._givers[name] = self._givers.get(name, 0) + 1
        bound = _bound(facts)
        if bound:
            self._bound[key] = bound

    def _extend(self, added: list[PieceFacts]) -> None:
        """Look everywhere for names that nobody asked about before."""
        fresh = {name for facts in added for name in _defined(facts)} - self._mentions.keys()
        if not fresh:
            return
        for name in fresh:
            self._mentions[name] = set()
        for key, facts in self._pieces.items():
            for name in words(facts) & fresh:
                self._mentions[name].add(key)

    def _touched(self, name: str, removed: set[int], added: list[PieceFacts]) -> bool:
        known = self._closures.get(name)
        if known is None or known.pieces & removed:
            return True
        return any(words(facts) & known.names or _bound(facts) & known.read for facts in added)

    def _closure(self, kernel: str) -> _Closure:
        found: set[int] = set()
        names: set[bytes] = {kernel.encode()}
        seen: set[bytes] = set()
        for _level in range(_LEVELS):
            fresh: set[int] = set()
            for name in names:
                fresh |= self._mentions.get(name, set())
            seen |= names
            fresh -= found
            found |= fresh
            names = {name for key in fresh for name in _defined(self._pieces[key])} - seen
        read = {word for key in found for word in words(self._pieces[key])}
        found.update(key for key, bound in self._bound.items() if bound & read)
        return _Closure(seen, read, found)


def words(facts: PieceFacts) -> frozenset[bytes]:
    """All identifiers in a piece, those in strings and comments too."""
    known = facts.memo.get("words")
    if not isinstance(known, frozenset):
        known = facts.memo["words"] = frozenset(_WORD.findall(facts.data))
    return known


def _defined(facts: PieceFacts) -> frozenset[bytes]:
    """Names of functions, classes and aliases that a piece gives: callers mention those."""
    known = facts.memo.get("defined")
    if not isinstance(known, frozenset):
        names = frozenset(part.encode() for each in facts.functions for part in each.qualname.split("."))
        known = facts.memo["defined"] = names | _bound(facts) if len(facts.data) < _SHORT else names
    return known


def _bound(facts: PieceFacts) -> frozenset[bytes]:
    """Names that a piece assigns at module level."""
    known = facts.memo.get("bound")
    if not isinstance(known, frozenset):
        known = facts.memo["bound"] = frozenset(match.group(1) for match in _TARGET.finditer(facts.data))
    return known
