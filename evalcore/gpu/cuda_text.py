"""Owns reading CUDA C++ text by scanning: kernels, launch sites, and blanking of host code for NVRTC.

NVRTC refuses host functions, so they become spaces, which keeps every line and column. No parser: a scanner that knows
comments, strings, preprocessor lines and brackets, which is enough for text that a compiler judges afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SKIP = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|R"([^()\\\s]{0,16})\(.*?(?:\)\1"|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_ON_DEVICE = re.compile(r"__(?:global|device|constant|shared|managed)__")
_TRANSPARENT = re.compile(r'^(?:inline\s+)?namespace\b|^extern\s*"')
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b[^()]*$")
_HOST_ONLY = re.compile(
    r"torch::|\bat::Tensor|c10::|ATen|<<<|\bcuda[A-Z]\w*\(|\bcu[A-Z]\w+\(|std::(?!min|max|numeric_limits|is_same)|"
    r"\bTORCH_|\bAT_|\bprintf\(|\bPy|\bpy::|\bpybind11|\bmalloc\(|\bnew\b|__host__"
)
_KERNEL = re.compile(
    r"__global__\s+(?:static\s+|inline\s+)*(?:__launch_bounds__\s*\([^)]*\)\s*)?(?:static\s+|inline\s+)*"
    r"void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\("
)
_LAUNCH = re.compile(r"([A-Za-z_][\w:]*)\s*(<(?:[^<>;{}]|<[^<>]*>)*>)?\s*<<<")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """One __global__ function as it stands in the text."""

    name: str
    offset: int
    """Index of the name."""
    parameters: tuple[str, ...]
    template: tuple[str, ...] = ()
    """Template parameters as written, such as 'typename scalar_t' or 'int N'."""


def plain(text: str) -> str:
    """The text with comments and string contents as spaces, same length, same lines."""
    return _SKIP.sub(lambda match: _spaces(match[0]), text)


def _spaces(piece: str) -> str:
    return re.sub(r"[^\r\n]", " ", piece)


def kernels(text: str) -> list[KernelText]:
    """Every __global__ function that the text defines or declares, in order, each name once."""
    bare = plain(text)
    found: dict[str, KernelText] = {}
    for match in _KERNEL.finditer(bare):
        close = _matching(bare, match.end() - 1, "()")
        inside = bare[match.end() : close]
        parameters = tuple(part.strip() for part in _split(inside) if part.strip() and part.strip() != "void")
        template = _template_before(bare, match.start())
        name = match[1]
        found.setdefault(
            name, KernelText(name=name, offset=match.start(1), parameters=parameters, template=template)
        )
    return list(found.values())


def _template_before(bare: str, index: int) -> tuple[str, ...]:
    """Parameters of the `template <...>` that stands right before `index`."""
    end = len(bare[:index].rstrip())
    if end == 0 or bare[end - 1] != ">":
        return ()
    depth = 0
    for start in range(end - 1, -1, -1):
        depth += {">": 1, "<": -1}.get(bare[start], 0)
        if depth == 0:
            if bare[:start].rstrip().endswith("template"):
                return tuple(part.strip() for part in _split(bare[start + 1 : end - 1]))
            return ()
    return ()


def launches(text: str) -> list[tuple[str, str]]:
    """(kernel, template arguments in angle brackets or '') of each `<<<` in the text."""
    return [(match[1].split("::")[-1], match[2] or "") for match in _LAUNCH.finditer(plain(text))]


def _split(text: str) -> list[str]:
    """Splits at commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _matching(text: str, index: int, pair: str) -> int:
    """Index of the bracket that closes the one at `index`; the text's end where it is missing."""
    depth = 0
    for place in range(index, len(text)):
        if text[place] == pair[0]:
            depth += 1
        elif text[place] == pair[1]:
            depth -= 1
            if depth == 0:
                return place
    return len(text)


# ------------------------------------------------------------------------------------------------------------- blanking


def device_only(text: str) -> str:
    """The text with host functions, host declarations and bindings as spaces."""
    bare = _DIRECTIVE.sub(lambda match: _spaces(match[0]), plain(text))
    chars = list(text)
    for start, end in _host_pieces(bare, 0, len(bare)):
        for index in range(start, end):
            if chars[index] not in "\r\n":
                chars[index] = " "
    return "".join(chars)


def _host_pieces(bare: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans between `start` and `end` that only a host compiler can read."""
    piece = start
    index = start
    while index < end:
        char = bare[index]
        if char == ";":
            if _host_declaration(bare[piece:index]):
                yield _trimmed(bare, piece, index + 1)
            piece = index + 1
        elif char == "(":
            index = min(_matching(bare, index, "()"), end - 1)
        elif char == "{":
            close = min(_matching(bare, index, "{}"), end)
            header = bare[piece:index].strip()
            if _TRANSPARENT.search(header):
                yield from _host_pieces(bare, index + 1, close)
                piece = close + 1
            elif _host_definition(header, bare[index:close]):
                yield _trimmed(bare, piece, min(close + 1, end))
                piece = close + 1
            elif "(" in header and not _is_initialiser(header):
                piece = close + 1
            index = close
        index += 1


def _trimmed(bare: str, start: int, end: int) -> tuple[int, int]:
    while start < end and bare[start].isspace():
        start += 1
    return start, end


def _is_initialiser(header: str) -> bool:
    return header.endswith("=") or bool(_TYPE.search(header))


def _host_definition(header: str, body: str) -> bool:
    """True for a function, or a macro with a body, that is not for the device."""
    if _ON_DEVICE.search(header) or "(" not in header or _is_initialiser(header):
        return False
    simple = header.startswith(("constexpr", "template", "inline", "static constexpr", "static inline"))
    return not simple or bool(_HOST_ONLY.search(header + body))


def _host_declaration(statement: str) -> bool:
    statement = statement.strip()
    if not statement or _ON_DEVICE.search(statement):
        return False
    if statement.startswith(("static_assert", "using", "typedef", "template struct", "template class", "friend")):
        return bool(re.search(r"torch::|\bat::Tensor|c10::|std::vector", statement))
    if _HOST_ONLY.search(statement):
        return True
    head = statement.split("=", 1)[0]
    return "(" in head and not re.search(r"\b(?:struct|class|union|enum)\b", head)
