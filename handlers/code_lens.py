"""Owns the lenses above each kernel. They are the same from the first paint to the last, so that no text ever jumps."""

from __future__ import annotations

from lsprotocol import types

from handlers import to_lsp
from handlers.from_lsp import path_of
from server import words
from server.lsp.language_server import OdysseyServer
from server.snapshot import KernelView, Snapshot


async def code_lens(ls: OdysseyServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    """All lenses of a document. The first answer waits for the first analysis (milliseconds), not for bindings."""
    path = path_of(params.text_document.uri)
    snapshot = ls.session.state.snapshot(path)
    if snapshot is not None and not snapshot.analysed:
        await ls.session.keystrokes.settled(path)
        snapshot = ls.session.state.snapshot(path)
    if snapshot is None or not ls.session.state.settings.code_lens:
        return []
    return [lens for view in snapshot.kernels if not view.site.helper for lens in _lenses(snapshot, view)]


def _lenses(snapshot: Snapshot, view: KernelView) -> list[types.CodeLens]:
    bound = view.bound
    format_name = None if bound is None else bound.format if bound.packed else ""
    cases = bound.cases if bound is not None else ()
    chosen = view.case if view.case in cases else (cases[0] if cases else None)
    titles = words.lens_titles(format_name, chosen, cases=len(cases))
    commands = (
        "odyssey.evaluate", "odyssey.evaluateThorough", "odyssey.history", "odyssey.propose", "odyssey.pickShape",
    )  # fmt: skip
    where = to_lsp.line_start(snapshot.index, view.site.span.start)
    kernel = bound.anchor if bound is not None else view.site.name
    argument = {"uri": snapshot.uri, "kernel": kernel}
    return [
        types.CodeLens(range=where, command=types.Command(title=title, command=command, arguments=[argument]))
        for title, command in zip(titles, commands, strict=True)
    ]
