"""Owns a scripted language server: Odyssey's messages with invented answers, for tests of the editor.

It judges by a comment in the text (`# scripted: incorrect`), proposes num_warps 4 -> 8, and never runs anything.
"""

from __future__ import annotations

import sys
from typing import Any

import scripted_commands  # noqa: F401  (its import registers the commands)
from lsprotocol import types as t
from scripted_state import State, document, judge, kernels, plain, publish, server, sha_of, status, world


@server.feature(t.INITIALIZE)
def initialize(params: t.InitializeParams) -> None:
    """Read whether the folder is trusted."""
    options = plain(params.initialization_options) if params.initialization_options is not None else {}
    State.trusted = bool(options.get("trusted", True))
    State.editor_python = options.get("editorPython") or ""


@server.feature(t.INITIALIZED)
def initialized(_: t.InitializedParams) -> None:
    """Say hello."""
    status()


@server.feature("odyssey/trust")
def trust(params: Any) -> None:
    """The folder is trusted now."""
    State.trusted = bool(params.trusted)
    status()


@server.feature("odyssey/editorPython")
def editor_python(params: Any) -> None:
    """Another interpreter was chosen."""
    State.editor_python = params.path or ""


@server.feature("odyssey/key")
def key(_: Any) -> None:
    """The script asks no model."""


@server.feature(t.WORKSPACE_DID_CHANGE_CONFIGURATION)
def did_change_configuration(_: Any) -> None:
    """The script has no settings."""


@server.feature(t.TEXT_DOCUMENT_DID_OPEN)
def did_open(params: t.DidOpenTextDocumentParams) -> None:
    """Diagnose."""
    world(params.text_document.uri)
    publish(params.text_document.uri)


@server.feature(t.TEXT_DOCUMENT_DID_CHANGE)
def did_change(params: t.DidChangeTextDocumentParams) -> None:
    """Diagnose again; the verdict of another text turns grey."""
    publish(params.text_document.uri)


@server.feature(t.TEXT_DOCUMENT_DID_SAVE)
async def did_save(params: t.DidSaveTextDocumentParams) -> None:
    """Judge."""
    await judge(params.text_document.uri)


@server.feature(t.TEXT_DOCUMENT_INLAY_HINT)
def inlay_hint(params: t.InlayHintParams) -> list[t.InlayHint]:
    """The verdict at the end of the kernel's line."""
    uri = params.text_document.uri
    doc = document(uri)
    if uri not in State.shown:
        return []
    sha, row = State.shown[uri]
    words = " · ".join(part for part in (row["speedup_words"], row["device_words"], row["verdict_words"]) if part)
    if sha != sha_of(doc.source):
        words = f"(older text) {words}"
    lines = doc.source.splitlines()
    return [
        t.InlayHint(t.Position(line, len(lines[line])), words, padding_left=True) for _, line in kernels(doc.source)[:1]
    ]


@server.feature(t.TEXT_DOCUMENT_CODE_LENS, t.CodeLensOptions(resolve_provider=False))
def code_lens(params: t.CodeLensParams) -> list[t.CodeLens]:
    """The actions above each kernel."""
    uri = params.text_document.uri
    lenses = []
    for name, line in kernels(document(uri).source):
        for title, command in (
            ("Evaluate", "odyssey.evaluate"),
            ("Propose", "odyssey.propose"),
            ("History", "odyssey.history"),
        ):
            at = t.Range(t.Position(line, 0), t.Position(line, 0))
            lenses.append(t.CodeLens(at, t.Command(title, command, arguments=[{"uri": uri, "kernel": name}])))
    return lenses


@server.feature(t.TEXT_DOCUMENT_HOVER)
def hover(params: t.HoverParams) -> t.Hover | None:
    """The card of the verdict."""
    uri = params.text_document.uri
    if uri not in State.shown or not any(line == params.position.line for _, line in kernels(document(uri).source)):
        return None
    return t.Hover(t.MarkupContent(t.MarkupKind.Markdown, State.shown[uri][1]["detail_markdown"]))


@server.feature(t.TEXT_DOCUMENT_CODE_ACTION, t.CodeActionOptions([t.CodeActionKind.QuickFix]))
def code_action(params: t.CodeActionParams) -> list[t.CodeAction]:
    """Fix the size."""
    uri = params.text_document.uri
    return [
        t.CodeAction(
            "Use 128, the next power of two",
            t.CodeActionKind.QuickFix,
            [d],
            is_preferred=True,
            edit=t.WorkspaceEdit({uri: [t.TextEdit(d.range, "128")]}),
        )
        for d in params.context.diagnostics
        if d.code == "arange-size"
    ]


@server.feature("odyssey/ledgerRows")
def ledger_rows(params: Any) -> dict[str, Any]:
    """A page of rows."""
    return world().select(plain(params))


@server.feature("odyssey/candidate")
def candidate(params: Any) -> dict[str, Any]:
    """A recorded text."""
    return {"text": world().texts[params.sha], "path": world().path}


@server.feature("odyssey/map")
def candidate_map(params: Any) -> dict[str, Any]:
    """The map."""
    return world().map(plain(params))


@server.feature("odyssey/plots")
def plots(params: Any) -> dict[str, Any]:
    """The plots."""
    return world().plots(plain(params))


@server.feature("odyssey/compare")
def compare(params: Any) -> dict[str, Any]:
    """Two texts and their numbers."""
    a, b = (next(row for row in reversed(world().rows) if row["sha"] == sha) for sha in (params.a, params.b))
    head = f"| | {a['sha_short']} | {b['sha_short']} |\n| --- | --- | --- |"
    table = f"{head}\n| device | {a['device_words']} | {b['device_words']} |"
    return {
        "diff_title": f"{a['sha_short']} against {b['sha_short']}: {a['device_words']} to {b['device_words']}",
        "a_text": world().texts[params.a],
        "b_text": world().texts[params.b],
        "table_markdown": table,
    }


@server.feature("odyssey/pin")
def pin(params: Any) -> dict[str, Any]:
    """Remember the baseline."""
    world().pinned = params.seq
    return {"ok": True}


if __name__ == "__main__":
    if "--version" in sys.argv:
        sys.stdout.write("odyssey 0.1.0 (scripted)\n")
    else:
        server.start_io()
