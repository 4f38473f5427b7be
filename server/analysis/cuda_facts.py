"""Owns reading one piece of CUDA C++: its __global__ functions and `<<<>>>` launches. Half-typed text is normal.

All offsets are relative to the piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node

from server.analysis.syntax import parse_cuda, source, walk

_NAME = re.compile(
    rb"__global__(?P<between>[^;{}]{0,400}?)\b(?P<name>[A-Za-z_]\w*)\s*\((?!\s*\d+\s*(?:,\s*\d+\s*)*\)\s*[A-Za-z_])"
)
_BOUNDS = re.compile(rb"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|__cluster_dims__\s*\([^()]*\)")
_NOT_NAMES = {b"__launch_bounds__", b"__attribute__", b"__cluster_dims__", b"if", b"for", b"while", b"defined"}
_COMMENT = re.compile(rb"//[^\n\r]*|/\*.*?(?:\*/|\Z)", re.S)
_MOST_HEAD = 600
"""Bytes before `__global__` in which its `template <...>` is looked for."""
_TEMPLATE = re.compile(rb"(?:extern\s*\"C\"\s*|template\s*<[^;{}()]*>\s*|static\s+|inline\s+)*\Z", re.S)


@dataclass(slots=True)
class CudaParam:
    """A parameter of a __global__ function."""

    name: str
    start: int
    end: int
    type: str


@dataclass(slots=True)
class CudaKernel:
    """A __global__ function with its offsets."""

    name: str
    start: int
    end: int
    name_start: int
    name_end: int
    signature_start: int
    signature_end: int
    params: list[CudaParam]
    template: bool
    complete: bool


@dataclass(slots=True)
class CudaLaunchFacts:
    """One `kernel<<<grid, block>>>(args)`."""

    kernel: str
    start: int
    end: int
    config: str
    args: tuple[str, ...]
    owner: str


@dataclass(slots=True)
class CudaFacts:
    """What one piece holds."""

    kernels: list[CudaKernel] = field(default_factory=list)
    launches: list[CudaLaunchFacts] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    broken: bool = False


def read_cuda(data: bytes) -> CudaFacts:
    """The facts of one piece. Kernels are found by words, so that macros and half-typed bodies do not hide them."""
    facts = CudaFacts()
    facts.includes = [
        found.decode("utf-8", "replace") for found in re.findall(rb"#\s*include\s*[<\"]([^>\"\n]+)", data)
    ]
    if b"__global__" not in data and b"<<<" not in data:
        return facts
    clean = _COMMENT.sub(lambda match: re.sub(rb"[^\n\r]", b" ", match.group()), data)
    clean = _BOUNDS.sub(lambda match: b" " * len(match.group()), clean)
    tree = parse_cuda(data)
    facts.broken = tree.root_node.has_error
    ends = _body_ends(clean)
    for match in _NAME.finditer(clean):
        if match["name"] not in _NOT_NAMES:
            facts.kernels.append(_kernel(clean, match, ends))
    if b"<<<" in data:
        _launches(tree.root_node, facts)
    return facts


def _kernel(clean: bytes, match: re.Match[bytes], ends: dict[int, int]) -> CudaKernel:
    head = _TEMPLATE.search(clean, max(match.start() - _MOST_HEAD, 0), match.start())
    start = head.start() if head else match.start()
    while start < match.start() and clean[start : start + 1].isspace():
        start += 1
    close = _matching(clean, match.end() - 1)
    opened = clean.find(b"{", close) if close >= 0 else -1
    semicolon = clean.find(b";", close) if close >= 0 else -1
    prototype = close >= 0 and semicolon >= 0 and (opened < 0 or semicolon < opened)
    end = semicolon + 1 if prototype else ends.get(opened, len(clean.rstrip()))
    signature_end = close + 1 if close >= 0 else match.end()
    return CudaKernel(
        name=match["name"].decode("utf-8", "replace"), start=start, end=max(end, match.end()),
        name_start=match.start("name"), name_end=match.end("name"),
        signature_start=start, signature_end=signature_end,
        params=_params(clean, match.end(), close), template=b"template" in clean[start : match.start()],
        complete=prototype or opened in ends,
    )  # fmt: skip


def _matching(data: bytes, opened: int) -> int:
    """The `)` that closes the `(` at `opened`, or -1."""
    depth = 0
    for index in range(opened, len(data)):
        byte = data[index]
        if byte == 0x28:
            depth += 1
        elif byte == 0x29:
            depth -= 1
            if depth == 0:
                return index
        elif byte == 0x7B:
            return -1
    return -1


def _body_ends(clean: bytes) -> dict[int, int]:
    """Position of each `{` -> position after its `}`; an unclosed one has no entry."""
    ends: dict[int, int] = {}
    stack: list[int] = []
    for match in re.finditer(rb"[{}]|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", clean):
        if match.group() == b"{":
            stack.append(match.start())
        elif match.group() == b"}" and stack:
            ends[stack.pop()] = match.end()
    return ends


def _params(clean: bytes, start: int, close: int) -> list[CudaParam]:
    if close < 0:
        return []
    found: list[CudaParam] = []
    depth = 0
    piece = start
    for index in range(start, close + 1):
        byte = clean[index]
        if byte in b"(<[":
            depth += 1
        elif byte in b">]" or (byte == 0x29 and index < close):
            depth -= 1
        elif (byte == 0x2C and depth == 0) or index == close:
            param = _param(clean, piece, index)
            if param is not None:
                found.append(param)
            piece = index + 1
    return found


def _param(clean: bytes, start: int, end: int) -> CudaParam | None:
    text = clean[start:end].split(b"=")[0]
    words = re.search(rb"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$", text)
    if words is None or not text[: words.start()].strip():
        return None
    kind = b" ".join(text[: words.start()].split()).decode("utf-8", "replace")
    return CudaParam(words.group(1).decode("utf-8", "replace"), start + words.start(1), start + words.end(1), kind)


def _launches(root: Node, facts: CudaFacts) -> None:
    for node in walk(root):
        if node.type != "call_expression":
            continue
        config = next((each for each in node.children if each.type == "kernel_call_syntax"), None)
        if config is None:
            continue
        function = node.child_by_field_name("function")
        holder = node.child_by_field_name("arguments")
        args = tuple(source(each) for each in holder.named_children) if holder is not None else ()
        name = re.split(r"<", source(function), maxsplit=1)[0].strip().rsplit("::", 1)[-1]
        facts.launches.append(
            CudaLaunchFacts(name, node.start_byte, node.end_byte, source(config).strip("<> "), args, _owner(node))
        )


def _owner(node: Node) -> str:
    parent = node.parent
    while parent is not None and parent.type != "function_definition":
        parent = parent.parent
    if parent is None:
        return ""
    declarator = parent.child_by_field_name("declarator")
    while declarator is not None and declarator.child_by_field_name("declarator") is not None:
        declarator = declarator.child_by_field_name("declarator")
    return source(declarator)
