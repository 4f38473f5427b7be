"""Owns making a long text short for the compiler's front end: lines stay, definitions that kernels do not need go.

Looking at one kernel of a hundred would otherwise cost as much as looking at all. Never parses: it gets a text in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SHORT_BYTES = 16 << 10
"""A text up to here is looked at whole."""

_DEFINES = re.compile(rb"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_DEFINITION = re.compile(rb"(?:[ \t]*(?:#[^\r\n]*)?[\r\n]+)*(?:@|(?:async[ \t]+)?(?:def|class)[ \t])")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_CONTENT = re.compile(rb"[^\r\n]+")


def lean_text(pieces: Sequence[bytes], kernels: Iterable[str]) -> bytes:
    """The pieces joined, those blanked to empty lines that define nothing which `kernels` or their launchers need.

    Kept are the kernels, what they mention, the functions that mention them (they launch), and every piece that is no
    definition: imports, constants, other statements.
    """
    defined = [frozenset(_DEFINES.findall(piece)) for piece in pieces]
    words = [
        frozenset(_WORD.findall(piece)) if names else frozenset() for piece, names in zip(pieces, defined, strict=True)
    ]
    wanted = {kernel.encode() for kernel in kernels}
    launchers = {name for names, seen in zip(defined, words, strict=True) if seen & wanted for name in names}
    wanted |= _reached(wanted, defined, words) | launchers
    kept = (
        piece if names & wanted or not _DEFINITION.match(piece) else _CONTENT.sub(b"", piece)
        for piece, names in zip(pieces, defined, strict=True)
    )
    return b"".join(kept)


def _reached(start: set[bytes], defined: Sequence[frozenset[bytes]], words: Sequence[frozenset[bytes]]) -> set[bytes]:
    """Names of definitions that are mentioned by `start`, and so on."""
    homes: dict[bytes, list[int]] = {}
    for number, names in enumerate(defined):
        for name in names:
            homes.setdefault(name, []).append(number)
    found, pending = set(start), list(start)
    while pending:
        for number in homes.get(pending.pop(), ()):
            new = {word for word in words[number] if word in homes} - found
            found |= new
            pending += new
    return found
