"""Owns the hover: the verdict's card on a kernel's signature, how it is bound where there is no verdict yet."""

from __future__ import annotations

from lsprotocol import types

from handlers import to_lsp
from handlers.from_lsp import byte_of, path_of
from server import card, words
from server.lsp.language_server import OdysseyServer
from server.snapshot import KernelView, Snapshot


def hover(ls: OdysseyServer, params: types.HoverParams) -> types.Hover | None:
    """The card of the kernel whose name's line the cursor is on."""
    snapshot = ls.session.state.snapshot(path_of(params.text_document.uri))
    if snapshot is None:
        return None
    byte = byte_of(snapshot.index, params.position, ls.encoding)
    view = _on_line(snapshot, byte)
    if view is None:
        return None
    return types.Hover(
        contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=_words(view)),
        range=to_lsp.range_of(snapshot.index, view.site.name_span, ls.encoding),
    )


def _on_line(snapshot: Snapshot, byte: int) -> KernelView | None:
    line, _ = snapshot.index.place(snapshot.index.offset_of_byte(byte))
    for view in snapshot.kernels:
        name_line, _ = snapshot.index.place(snapshot.index.offset_of_byte(view.site.name_span.start))
        if line == name_line:
            return view
    return None


def _words(view: KernelView) -> str:
    verdict = view.verdict
    if verdict is not None:
        shown = card.card(verdict.measurement, seq=verdict.seq, fresh=view.fresh, old_because=verdict.old_because)
        return f"{shown}\n\n{card.plain(words.REUSED)}" if verdict.reused and view.fresh else shown
    return card.unjudged(view.site.name, view.bound, leads=view.leads)
