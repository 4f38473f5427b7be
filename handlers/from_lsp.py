"""Owns every conversion inwards: URIs, positions and changes of LSP into ours. Never trusts a position to be inside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from lsprotocol import types

from server.lines import LineIndex, TextEdit, without_surrogates


def path_of(uri: str) -> str:
    """The absolute path of a file URI; the URI itself where it names no file (an unsaved or virtual document).

    Only `..` and doubled slashes are taken out. Symbolic links stay: the person opened the file by that name.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    raw = uri[len("file://") :]
    host, slash, rest = raw.partition("/")
    # urlsplit would cut at '?' and '#', which some clients leave as they are in a path
    path = unquote(slash + rest, errors="surrogateescape")
    return os.path.normpath(path) if path.startswith("/") else uri


def is_file(path: str) -> bool:
    """Whether a path of ours names a file on a disk."""
    return path.startswith("/")


def offset_of(index: LineIndex, position: types.Position, encoding: str) -> int:
    """The code-point offset of a position, clamped into the text; inside a character it is that character's start."""
    if index.ascii or encoding == "utf-32":
        return index.offset(position.line, position.character)
    line = index.line(position.line)
    if encoding == "utf-8":
        column = len(line.encode("utf-8", "replace")[: position.character].decode("utf-8", "ignore"))
    else:
        column = _utf16_column(line, position.character)
    return index.offset(position.line, column)


def byte_of(index: LineIndex, position: types.Position, encoding: str) -> int:
    """The UTF-8 byte offset of a position."""
    return index.byte_of(offset_of(index, position, encoding))


def changed(
    index: LineIndex, changes: Sequence[types.TextDocumentContentChangeEvent], encoding: str
) -> tuple[LineIndex, tuple[TextEdit, ...] | None]:
    """The text after the changes, and the edits that led there; None instead where the whole text was replaced."""
    edits: list[TextEdit] | None = []
    for change in changes:
        text = without_surrogates(change.text)
        if not isinstance(change, types.TextDocumentContentChangePartial):
            index, edits = LineIndex(text), None
            continue
        start = offset_of(index, change.range.start, encoding)
        end = max(offset_of(index, change.range.end, encoding), start)
        edit = TextEdit(start, end, text)
        index = index.edited(edit)
        if edits is not None:
            edits.append(edit)
    return index, None if edits is None else tuple(edits)


def _utf16_column(line: str, units: int) -> int:
    column = 0
    for each in line:
        units -= 2 if each > "\uffff" else 1
        if units < 0:
            break
        column += 1
    return column
