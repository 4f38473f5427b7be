"""Owns reading one piece of Python: its functions, kernels, launches and CUDA strings. Half-typed text is normal.

All offsets are relative to the piece, so that a piece's facts stay good when text above it changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_sitter import Node, Tree

from server.analysis.strings import Literal, cuda_text, literals
from server.analysis.syntax import arguments, dotted, parse_python, source, unwrap

_JIT = {"triton.jit", "jit", "gluon.jit", "triton.language.jit"}
_TUNERS = {
    "triton.autotune": "autotune",
    "autotune": "autotune",
    "triton.heuristics": "heuristics",
    "heuristics": "heuristics",
}
_MAKERS = {"load_inline", "load", "RawKernel", "RawModule", "_compile_kernel", "SourceModule", "ElementwiseKernel"}
_HALF_TYPED = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.M)
_JIT_LINE = re.compile(rb"^[ \t]*@(?:triton\.|gluon\.)?(?:jit|autotune|heuristics)\b", re.M)


@dataclass(slots=True)
class ParamFacts:
    """A parameter with offsets in the piece."""

    name: str
    start: int
    end: int
    constexpr: bool
    annotation: str
    default: str


@dataclass(slots=True)
class DecoratorFacts:
    """A decorator with offsets in the piece."""

    name: str
    kind: str
    start: int
    end: int
    node: Node


@dataclass(slots=True)
class FunctionFacts:
    """A function of any kind."""

    name: str
    qualname: str
    start: int
    end: int
    name_start: int
    name_end: int
    signature_end: int
    decorators: list[DecoratorFacts]
    params: list[ParamFacts]
    kernel: bool
    node: Node | None
    """The function_definition; None where it is half-typed."""

    @property
    def signature_start(self) -> int:
        """Where `def` stands, as far as names go."""
        return self.node.start_byte if self.node is not None else self.name_start


@dataclass(slots=True)
class LaunchFacts:
    """A launch of something by subscript."""

    kernel: str
    start: int
    end: int
    owner: str
    node: Node
    grid: str
    args: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class PieceFacts:
    """What one piece holds."""

    tree: Tree
    data: bytes
    functions: list[FunctionFacts] = field(default_factory=list)
    launches: list[LaunchFacts] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    strings: list[tuple[Literal, bytes]] = field(default_factory=list)
    """String literals with CUDA text in them, and that text."""
    makers: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """(load_inline and the like, names that its arguments mention)."""
    broken: bool = False
    memo: dict[str, object] = field(default_factory=dict)
    """Results of rules and readers about this piece."""
    only_kernels: bool = False
    """Whether the piece is one kernel and nothing else: it then tells nothing about sizes."""

    def is_only_kernels(self) -> bool:
        """What `only_kernels` is to be, from the rest."""
        return (
            bool(self.functions)
            and not self.broken
            and all(each.kernel for each in self.functions)
            and (self.tree.root_node.named_child_count == 1)
        )


def read_piece(data: bytes) -> PieceFacts:
    """The facts of one piece of Python."""
    tree = parse_python(data)
    facts = PieceFacts(tree, data, broken=tree.root_node.has_error)
    try:
        _visit(tree.root_node, facts, "", "")
    except RecursionError:
        facts.broken = True  # nested beyond what anybody writes: what was found so far stays
    if facts.broken:
        _half_typed(facts)
    facts.only_kernels = facts.is_only_kernels()
    if b"__global__" in data:
        facts.strings = [
            (each, cuda_text(data, each))
            for each in literals(data)
            if b"__global__" in data[each.content_start : each.content_end]
        ]
    return facts


def _visit(node: Node, facts: PieceFacts, path: str, owner: str) -> None:
    """Go through statements and calls; `path` is the qualified name so far, `owner` the innermost function."""
    for each in node.named_children:
        kind = each.type
        if kind == "decorated_definition":
            inner = each.child_by_field_name("definition")
            if inner is not None:
                _definition(inner, each, facts, path, owner)
        elif kind in ("function_definition", "class_definition"):
            _definition(each, each, facts, path, owner)
        elif kind in ("import_statement", "import_from_statement"):
            _import(each, facts)
        elif kind == "call":
            _call(each, facts, owner)
            _visit(each, facts, path, owner)
        elif kind not in ("comment", "string", "identifier", "integer", "float"):
            _visit(each, facts, path, owner)


def _definition(node: Node, outer: Node, facts: PieceFacts, path: str, owner: str) -> None:
    name_node = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name_node is None:
        return
    name = source(name_node)
    qualname = f"{path}.{name}" if path else name
    decorators = [_decorator(each) for each in outer.named_children if each.type == "decorator"]
    if node.type == "function_definition":
        parameters = node.child_by_field_name("parameters")
        kernel = any(each.kind != "other" for each in decorators)
        facts.functions.append(
            FunctionFacts(
                name=name, qualname=qualname, start=outer.start_byte, end=node.end_byte,
                name_start=name_node.start_byte, name_end=name_node.end_byte,
                signature_end=body.start_byte if body is not None else node.end_byte,
                decorators=decorators, params=_params(parameters), kernel=kernel, node=node,
            )
        )  # fmt: skip
        facts.functions[-1].signature_end = _signature_end(node)
        if body is not None and not kernel or body is not None and b"@" in facts.data[body.start_byte : body.end_byte]:
            _visit(body, facts, qualname, qualname)
    elif body is not None:
        _visit(body, facts, qualname, owner)


def _signature_end(node: Node) -> int:
    """The end of `def name(...) -> T:`."""
    colon = next((each for each in node.children if each.type == ":"), None)
    return colon.end_byte if colon is not None else node.end_byte


def _decorator(node: Node) -> DecoratorFacts:
    inner = next((each for each in node.named_children if each.type != "comment"), None)
    head = inner.child_by_field_name("function") if inner is not None and inner.type == "call" else inner
    name = dotted(head)
    kind = "jit" if name in _JIT else _TUNERS.get(name, "other")
    return DecoratorFacts(name, kind, node.start_byte, node.end_byte, node)


def _params(node: Node | None) -> list[ParamFacts]:
    found: list[ParamFacts] = []
    for each in node.named_children if node is not None else ():
        name_node = each
        if each.type in ("typed_parameter", "list_splat_pattern", "dictionary_splat_pattern"):
            name_node = each.named_children[0] if each.named_children else each
        elif each.type in ("default_parameter", "typed_default_parameter"):
            name_node = each.child_by_field_name("name") or each
        elif each.type != "identifier":
            continue
        annotation = source(each.child_by_field_name("type"))
        default = source(each.child_by_field_name("value"))
        found.append(
            ParamFacts(
                source(name_node), each.start_byte, each.end_byte, annotation.endswith("constexpr"), annotation, default
            )
        )
    return found


def _import(node: Node, facts: PieceFacts) -> None:
    module = node.child_by_field_name("module_name")
    if module is not None:
        facts.imports.append(source(module))
        return
    for each in node.named_children:
        target = each.child_by_field_name("name") if each.type == "aliased_import" else each
        facts.imports.append(source(target))


def _call(node: Node, facts: PieceFacts, owner: str) -> None:
    function = node.child_by_field_name("function")
    if function is None:
        return
    if function.type == "subscript":
        value = function.child_by_field_name("value")
        kernel = dotted(value)
        if kernel:
            first = function.child_by_field_name("subscript")
            grid = source(first) if first is not None else ""
            _launch(facts, node, kernel, grid, owner)
        return
    name = dotted(function)
    last = name.rsplit(".", 1)[-1]
    if last in ("warmup", "run") and "." in name:
        _launch(facts, node, name.rsplit(".", 1)[0], "", owner)
    elif last in _MAKERS:
        positional, named = arguments(node)
        words = frozenset(
            source(each) for each in (*positional, *named.values()) if each.type in ("identifier", "list")
        )
        names = frozenset(part for word in words for part in re.findall(r"\w+", word))
        facts.makers.append((last, names))


def _launch(facts: PieceFacts, node: Node, kernel: str, grid: str, owner: str) -> None:
    positional, named = arguments(node)
    facts.launches.append(
        LaunchFacts(
            kernel=kernel, start=node.start_byte, end=node.end_byte, owner=owner, node=node, grid=grid,
            args=tuple(source(unwrap(each)) for each in positional),
            keywords=tuple((name, source(each)) for name, each in named.items()),
        )
    )  # fmt: skip


def _half_typed(facts: PieceFacts) -> None:
    """Kernels that the tree lost in an ERROR: a jit decorator followed by a `def` line."""
    seen = {each.name for each in facts.functions}
    for decorator in _JIT_LINE.finditer(facts.data):
        found = _HALF_TYPED.search(facts.data, decorator.end())
        if found is None or found.group(1).decode("utf-8", "replace") in seen:
            continue
        name = found.group(1).decode("utf-8", "replace")
        seen.add(name)
        line_end = facts.data.find(b"\n", found.end())
        facts.functions.append(
            FunctionFacts(
                name=name, qualname=name, start=decorator.start(), end=len(facts.data.rstrip()),
                name_start=found.start(1), name_end=found.end(1),
                signature_end=line_end if line_end >= 0 else len(facts.data),
                decorators=[], params=[], kernel=True, node=None,
            )
        )  # fmt: skip
