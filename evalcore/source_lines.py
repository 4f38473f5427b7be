"""Owns a text by lines: positions of ast nodes as indices, and replacement that keeps every line where it is."""

from __future__ import annotations

import ast
import bisect


class Lines:
    """A text by lines as Python's tokenizer splits them, with positions of ast nodes turned into indices."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]
        index = 0
        while index < len(text):
            char = text[index]
            if char == "\r" and text[index + 1 : index + 2] == "\n":
                index += 1
            if char in "\r\n":
                self.starts.append(index + 1)
            index += 1

    def index(self, line: int, byte_column: int) -> int:
        """Index of a position of the ast: 1-based line, column in UTF-8 bytes."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        piece = self.text[start:end]
        if piece.isascii():
            return start + byte_column
        return start + len(piece.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """(start, end) indices of a node; a definition's span begins at its first decorator."""
        line, column = node.lineno, node.col_offset
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            line = min(one.lineno for one in decorators)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.index(line, column), self.index(node.end_lineno, node.end_col_offset)

    def replace(self, edits: list[tuple[int, int, str]]) -> str:
        """The text with each (start, end, new) replaced; edits must not overlap. Line breaks inside are kept."""
        pieces: list[str] = []
        last = 0
        for start, end, new in edits:
            breaks = "".join(char for char in self.text[start:end] if char in "\r\n")
            pieces += [self.text[last:start], new, breaks]
            last = end
        return "".join([*pieces, self.text[last:]])

    def position(self, index: int) -> tuple[int, int]:
        """1-based (line, column in code points) of an index."""
        line = bisect.bisect_right(self.starts, index)
        return line, index - self.starts[line - 1] + 1
