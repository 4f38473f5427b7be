"""Owns turning open, change, save and close into events. Never analyses."""

from __future__ import annotations

from lsprotocol import types

from handlers.from_lsp import changed, path_of
from server.events import TextChanged, TextClosed, TextOpened, TextSaved
from server.lines import without_surrogates
from server.lsp.language_server import OdysseyServer


def did_open(ls: OdysseyServer, params: types.DidOpenTextDocumentParams) -> None:
    """A text was opened."""
    document = params.text_document
    path = path_of(document.uri)
    ls.outside.opened(path)
    ls.session.apply(
        TextOpened(
            path=path,
            uri=document.uri,
            version=document.version,
            language=str(document.language_id),
            text=without_surrogates(document.text),
        )
    )


def did_change(ls: OdysseyServer, params: types.DidChangeTextDocumentParams) -> None:
    """A text was edited. A change to a text that was never opened is dropped."""
    path = path_of(params.text_document.uri)
    document = ls.session.state.documents.get(path)
    if document is None:
        return
    index, edits = changed(document.index, params.content_changes, ls.encoding)
    ls.session.apply(TextChanged(path=path, version=params.text_document.version, index=index, edits=edits))


def did_save(ls: OdysseyServer, params: types.DidSaveTextDocumentParams) -> None:
    """A text was saved."""
    ls.session.apply(TextSaved(path=path_of(params.text_document.uri)))


def did_close(ls: OdysseyServer, params: types.DidCloseTextDocumentParams) -> None:
    """A text was closed."""
    ls.session.apply(TextClosed(path=path_of(params.text_document.uri)))


async def did_change_watched_files(ls: OdysseyServer, params: types.DidChangeWatchedFilesParams) -> None:
    """The editor saw files change on the disk; our own watcher may have seen the same, which does no harm."""
    await ls.outside.files_changed({path_of(change.uri) for change in params.changes}, False)
