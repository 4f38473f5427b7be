"""Owns the words at the end of a kernel's line: its newest verdict, marked as older when the text moved on."""

from __future__ import annotations

from lsprotocol import types

from handlers import to_lsp
from handlers.from_lsp import byte_of, path_of
from server import card, words
from server.lsp.language_server import OdysseyServer
from server.snapshot import KernelView, Snapshot


def inlay_hints(ls: OdysseyServer, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The hints in a range, from what is known: kernels move along with edits until they are analysed again."""
    snapshot = ls.session.state.snapshot(path_of(params.text_document.uri))
    if snapshot is None or not ls.session.state.settings.inlay_hints:
        return []
    start = byte_of(snapshot.index, params.range.start, ls.encoding)
    end = byte_of(snapshot.index, params.range.end, ls.encoding)
    return [
        _hint(snapshot, view, ls.encoding)
        for view in snapshot.kernels
        if view.verdict is not None and start <= view.site.name_span.end and view.site.name_span.start <= end
    ]


def _hint(snapshot: Snapshot, view: KernelView, encoding: str) -> types.InlayHint:
    verdict = view.verdict
    assert verdict is not None
    return types.InlayHint(
        position=to_lsp.line_end(snapshot.index, view.site.name_span.start, encoding),
        label=words.hint_label(verdict.measurement, fresh=view.fresh),
        padding_left=True,
        tooltip=types.MarkupContent(
            kind=types.MarkupKind.Markdown,
            value=card.card(verdict.measurement, seq=verdict.seq, fresh=view.fresh, old_because=verdict.old_because),
        ),
    )
