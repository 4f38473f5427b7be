"""Owns the tables of what a client can ask, FEATURES and COMMANDS, and of who hears the session, all on one screen.

Nothing registers itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types

from handlers import (
    code_actions,
    code_lens,
    commands,
    documents,
    hover,
    inlay_hints,
    ledger,
    lifecycle,
    outbox,
    proposals,
)
from server.lsp import ext

OUTBOX = outbox.Outbox

LISTENERS: tuple[Callable[[Any], Callable[[Any], None]], ...] = (proposals.offering,)
"""Each is given the server and gives back what hears the session's signals, beside the outbox."""

FEATURES: tuple[tuple[str, Callable[..., Any], Any], ...] = (
    (types.INITIALIZE, lifecycle.initialize, None),
    (types.INITIALIZED, lifecycle.initialized, None),
    (types.SHUTDOWN, lifecycle.shutdown, None),
    (types.WORKSPACE_DID_CHANGE_CONFIGURATION, lifecycle.did_change_configuration, None),
    (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, lifecycle.did_change_workspace_folders, None),
    (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, documents.did_change_watched_files, None),
    (types.TEXT_DOCUMENT_DID_OPEN, documents.did_open, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, documents.did_change, None),
    (types.TEXT_DOCUMENT_DID_SAVE, documents.did_save, types.SaveOptions(include_text=False)),
    (types.TEXT_DOCUMENT_DID_CLOSE, documents.did_close, None),
    (types.TEXT_DOCUMENT_INLAY_HINT, inlay_hints.inlay_hints, None),
    (types.TEXT_DOCUMENT_CODE_LENS, code_lens.code_lens, None),
    (types.TEXT_DOCUMENT_HOVER, hover.hover, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, code_actions.code_actions, code_actions.OPTIONS),
    (types.WINDOW_WORK_DONE_PROGRESS_CANCEL, commands.progress_cancelled, None),
    (ext.TRUST, lifecycle.trust, None),
    (ext.EDITOR_PYTHON, lifecycle.editor_python, None),
    (ext.KEY, proposals.key, None),
    (ext.LEDGER_ROWS, ledger.ledger_rows, None),
    (ext.CANDIDATE, ledger.candidate, None),
    (ext.MAP, ledger.candidate_map, None),
    (ext.PLOTS, ledger.plots, None),
    (ext.COMPARE, ledger.compare, None),
    (ext.PIN, ledger.pin, None),
)
"""(method, handler, options)."""

COMMANDS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("odyssey.evaluate", commands.evaluate),
    ("odyssey.evaluateThorough", commands.evaluate_thorough),
    ("odyssey.history", commands.history),
    ("odyssey.propose", proposals.propose),
    ("odyssey.stop", commands.stop),
    ("odyssey.accept", proposals.accept),
    ("odyssey.reject", proposals.reject),
    ("odyssey.pinBaseline", commands.pin_baseline),
    ("odyssey.pickShape", commands.pick_shape),
    ("odyssey.restore", commands.restore),
    ("odyssey.restartWorkers", commands.restart_workers),
    ("odyssey.doctor", commands.run_doctor),
)
"""(command, handler); each takes one object."""
