"""Owns reading C++ types and names in host code, as far as such code needs them. Never translates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.gpu.host_runtime import DTYPES
from evalcore.gpu.host_tokens import Token

_NAMESPACES = ("torch::", "at::", "c10::", "std::", "cuda::", "::")
TYPE_WORDS = {"const", "unsigned", "signed", "long", "int", "short", "char", "float", "double", "bool", "void", "auto"}


@dataclass(frozen=True, slots=True)
class CppType:
    """A type as far as host code needs it."""

    name: str
    pointer: bool = False
    inner: str = ""
    """What stands in angle brackets."""


def bare(name: str) -> str:
    """A name without the namespaces that host code writes."""
    changed = True
    while changed:
        changed = False
        for prefix in _NAMESPACES:
            if name.startswith(prefix) and name not in DTYPES:
                name, changed = name[len(prefix) :], True
    return name


def read_type(tokens: Sequence[Token], index: int) -> tuple[CppType, int] | None:
    """The type that starts at `index` and where it ends, or None where none does."""
    words: list[str] = []
    inner = ""
    while index < len(tokens) and tokens[index].kind == "name":
        text = tokens[index].text
        if text in {"const", "static", "constexpr", "volatile", "typename", "__restrict__", "inline"}:
            index += 1
        elif not words or (text in TYPE_WORDS and all(word in TYPE_WORDS for word in words)):
            words.append(text)
            index += 1
        else:
            break
    if not words:
        return None
    if index < len(tokens) and tokens[index].text == "<":
        close = angle(tokens, index)
        if close is None:
            return None
        inner = "".join(token.text for token in tokens[index + 1 : close])
        index = close + 1
    pointer = False
    while index < len(tokens) and tokens[index].text in {"*", "&", "&&", "const", "__restrict__"}:
        pointer |= tokens[index].text == "*"
        index += 1
    return CppType(bare(" ".join(words)), pointer, inner), index


def angle(tokens: Sequence[Token], index: int) -> int | None:
    """Index of the `>` that closes the `<` at `index`, None where it is a comparison."""
    depth = 0
    for place in range(index, len(tokens)):
        text = tokens[place].text
        if text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return place
        elif text in {";", "{", "}", "&&", "||", "<<<"}:
            return None
    return None
