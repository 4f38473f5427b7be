"""Owns the tree-sitter parsers and small questions to nodes. Never decides what a kernel is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_cuda
import tree_sitter_python
from tree_sitter import Language, Node, Parser, Tree

_PYTHON = Language(tree_sitter_python.language())
_CUDA = Language(tree_sitter_cuda.language())
_python_parser = Parser(_PYTHON)
_cuda_parser = Parser(_CUDA)


_LONE_CR = re.compile(rb"\r(?!\n)")
"""Ends a line for editors and for Python, but not for the grammars."""


def parse_python(data: bytes) -> Tree:
    """The tree of a piece of Python; half-typed text gives ERROR nodes, never an exception."""
    return _python_parser.parse(_LONE_CR.sub(b"\n", data))


def parse_cuda(data: bytes) -> Tree:
    """The tree of a piece of CUDA C++."""
    return _cuda_parser.parse(_LONE_CR.sub(b"\n", data))


def source(node: Node | None) -> str:
    """A node's text; '' for None."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def walk(node: Node) -> Iterator[Node]:
    """All nodes below and including `node`, in order of text."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(reversed(each.named_children))


def dotted(node: Node | None) -> str:
    """'tl.load' for identifiers and attributes of identifiers, '' for anything else."""
    parts: list[str] = []
    while node is not None and node.type == "attribute":
        parts.append(source(node.child_by_field_name("attribute")))
        node = node.child_by_field_name("object")
    if node is None or node.type != "identifier":
        return ""
    return ".".join([source(node), *reversed(parts)])


def arguments(call: Node) -> tuple[list[Node], dict[str, Node]]:
    """(positional, keyword) argument nodes of a call."""
    positional: list[Node] = []
    named: dict[str, Node] = {}
    holder = call.child_by_field_name("arguments")
    for each in holder.named_children if holder is not None else ():
        if each.type == "keyword_argument":
            value = each.child_by_field_name("value")
            if value is not None:
                named[source(each.child_by_field_name("name"))] = value
        elif each.type not in ("comment", "ERROR"):
            positional.append(each)
    return positional, named


def unwrap(node: Node) -> Node:
    """What stands inside parentheses."""
    while node.type == "parenthesized_expression" and node.named_child_count:
        inner = [each for each in node.named_children if each.type != "comment"]
        if not inner:
            return node
        node = inner[0]
    return node
