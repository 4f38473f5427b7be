"""Owns every conversion outwards: bytes and words of ours into LSP's positions and types. Never asks, never decides."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from lsprotocol import types

from server.analysis.finding import Edit, Finding, Severity, Span
from server.document import common_ends
from server.lines import LineIndex

SOURCE = "odyssey"

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}
_TAGS = {"unnecessary": types.DiagnosticTag.Unnecessary, "deprecated": types.DiagnosticTag.Deprecated}
_LEVELS = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
}


def uri_of(path: str) -> str:
    """The URI of a path that the client has not named itself; what is a URI already stays."""
    if not path.startswith("/"):
        return path
    return "file://" + quote(path, safe="/")


def units(text: str, encoding: str) -> int:
    """How many column units a piece of a line takes."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "replace"))
    return len(text) + sum(1 for each in text if each > "\uffff")


def position_of_offset(index: LineIndex, offset: int, encoding: str) -> types.Position:
    """A code-point offset as a position."""
    line, column = index.place(offset)
    if not index.ascii:
        start = index.starts[line]
        column = units(index.text[start : start + column], encoding)
    return types.Position(line=line, character=column)


def position(index: LineIndex, byte: int, encoding: str) -> types.Position:
    """A byte offset as a position."""
    return position_of_offset(index, index.offset_of_byte(byte), encoding)


def range_of(index: LineIndex, span: Span, encoding: str) -> types.Range:
    """A span of bytes as a range."""
    return types.Range(start=position(index, span.start, encoding), end=position(index, span.end, encoding))


def line_end(index: LineIndex, byte: int, encoding: str) -> types.Position:
    """The end of the line that a byte stands in."""
    line, _ = index.place(index.offset_of_byte(byte))
    return position_of_offset(index, index.line_end(line), encoding)


def line_start(index: LineIndex, byte: int) -> types.Range:
    """An empty range at the start of the line that a byte stands in."""
    line, _ = index.place(index.offset_of_byte(byte))
    start = types.Position(line=line, character=0)
    return types.Range(start=start, end=start)


def diagnostic(finding: Finding, index: LineIndex, uri: str, encoding: str) -> types.Diagnostic:
    """A finding as a diagnostic."""
    related = [
        types.DiagnosticRelatedInformation(
            location=types.Location(uri=uri, range=range_of(index, span, encoding)), message=message
        )
        for span, message in finding.related
    ]
    return types.Diagnostic(
        range=range_of(index, finding.span, encoding),
        message=finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source=SOURCE,
        tags=[_TAGS[tag] for tag in finding.tags if tag in _TAGS] or None,
        related_information=related or None,
    )


def text_edit(edit: Edit, index: LineIndex, encoding: str) -> types.TextEdit:
    """One replacement."""
    return types.TextEdit(range=range_of(index, edit.span, encoding), new_text=edit.new_text)


def whole_document(index: LineIndex, new_text: str, encoding: str) -> types.TextEdit:
    """A replacement of what differs between a text and a new one, as one edit that leaves the common ends alone."""
    start, tail = common_ends(index.text, new_text)
    return types.TextEdit(
        range=types.Range(
            start=position_of_offset(index, start, encoding),
            end=position_of_offset(index, len(index.text) - tail, encoding),
        ),
        new_text=new_text[start : len(new_text) - tail],
    )


def level(name: str) -> types.MessageType:
    """'error', 'warning' or 'info' as a message type."""
    return _LEVELS.get(name, types.MessageType.Info)


def new_file_edit(path: str, text: str) -> list[types.CreateFile | types.TextDocumentEdit]:
    """Create a file with a text; an existing file is left as it is."""
    uri = uri_of(path)
    here = types.Range(start=types.Position(0, 0), end=types.Position(0, 0))
    return [
        types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=Path(path).exists())),
        types.TextDocumentEdit(
            text_document=types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None),
            edits=[types.TextEdit(range=here, new_text=text)],
        ),
    ]
