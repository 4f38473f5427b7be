"""Owns the scripted server's state and what it says unasked: status, diagnostics, marks, a verdict after a save."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import time
from typing import Any
from urllib.parse import unquote, urlparse

from lsprotocol import types as t
from pygls.lsp.server import LanguageServer
from scripted_world import CARD, World, sha_of

logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
JUDGE_S = float(os.environ.get("ODYSSEY_SCRIPTED_JUDGE_S", "0.25"))
APPENDS = os.environ.get("ODYSSEY_SCRIPTED_APPENDS")
"""File that gets the moment of each append, for the benchmark of the panel."""
SEED_ROWS = int(os.environ.get("ODYSSEY_SCRIPTED_ROWS", "40"))
KERNEL = re.compile(r"^def (\w+_kernel)\(", re.M)
ARANGE = re.compile(r"arange\(0, (96)\)")
VERDICT = re.compile(r"# scripted: (correct|incorrect|compile_error|error)")

server = LanguageServer("odyssey-scripted", "0.1.0")


class State:
    """What the scripted server knows; one instance for the process."""

    trusted = True
    editor_python = ""
    worlds: dict[str, World] = {}
    shown: dict[str, tuple[str, dict[str, Any]]] = {}
    proposals: dict[str, dict[str, Any]] = {}
    search: asyncio.Task[None] | None = None
    cancelled = False


def world(uri: str | None = None) -> World:
    """The world of a document; the first one when none is named."""
    if not State.worlds:
        root = server.workspace.root_uri or "file:///"
        uri = uri or f"{root}/softmax.py"
        State.worlds[uri] = World(uri, unquote(urlparse(uri).path).rsplit("/", 1)[-1], SEED_ROWS)
    return next(iter(State.worlds.values()))


def kernels(text: str) -> list[tuple[str, int]]:
    """(name, line) of each kernel."""
    return [(m[1], text.count("\n", 0, m.start())) for m in KERNEL.finditer(text)]


def document(uri: str) -> Any:
    """The open document."""
    return server.workspace.get_text_document(uri)


def status(state: str = "idle", text: str | None = None) -> None:
    """Say odyssey/status."""
    words = text or ("idle" if State.trusted else "text analysis only")
    server.protocol.notify(
        "odyssey/status",
        {
            "state": state,
            "text": words,
            "card": CARD,
            "detail": "Scripted server for tests of the editor.",
            "grey_reason": None if State.trusted else "this folder is not trusted",
            "missing": [],
        },
    )


def publish(uri: str) -> None:
    """Diagnostics and gutter marks of a document."""
    doc = document(uri)
    found = []
    for number, line in enumerate(doc.source.splitlines()):
        for m in ARANGE.finditer(line):
            found.append(
                t.Diagnostic(
                    t.Range(t.Position(number, m.start(1)), t.Position(number, m.end(1))),
                    "arange needs a power of two; 96 is none",
                    t.DiagnosticSeverity.Error,
                    code="arange-size",
                    source="odyssey",
                )
            )
    server.text_document_publish_diagnostics(
        t.PublishDiagnosticsParams(uri=uri, version=doc.version, diagnostics=found)
    )
    marks = []
    if uri in State.shown:
        sha, row = State.shown[uri]
        marks = [
            {"line": line, "verdict": row["verdict"], "stale": sha != sha_of(doc.source), "label": row["verdict_words"]}
            for _, line in kernels(doc.source)[:1]
        ]
    server.protocol.notify("odyssey/marks", {"uri": uri, "version": doc.version, "marks": marks})


async def judge(uri: str, cause: str = "save") -> None:
    """Invent a verdict for the text, append it, then show it."""
    text = document(uri).source
    if not State.trusted or not kernels(text):
        return
    status("busy", "judging softmax_kernel")
    await asyncio.sleep(JUDGE_S)
    told = VERDICT.search(text)
    fast = "num_warps=8" in text
    parent = State.shown[uri][0] if uri in State.shown else None
    row = world(uri).append(
        told[1] if told else "correct", text, device_us=29.4 if fast else 41.5, cause=cause, parent=parent
    )
    State.shown[uri] = (sha_of(text), row)
    if APPENDS:
        with open(APPENDS, "a") as log:
            log.write(f"{row['seq']} {time.time() * 1000:.1f}\n")
    server.protocol.notify("odyssey/ledgerAppended", {"seq": row["seq"]})
    publish(uri)
    refresh()
    status()


def refresh() -> None:
    """Ask the editor to draw hints and lenses again."""
    server.workspace_inlay_hint_refresh(None)
    server.workspace_code_lens_refresh(None)


def plain(params: Any) -> dict[str, Any]:
    """pygls gives unknown parameters as an object; make it a dict again."""
    if isinstance(params, dict):
        return dict(params)
    return params._asdict() if hasattr(params, "_asdict") else dict(vars(params))
