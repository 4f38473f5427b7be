"""Owns the start and end of a connection: initialize, settings, trust, shutdown."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from handlers.from_lsp import is_file, path_of
from server import config
from server.events import SettingsRead, Trusted
from server.lsp.ext import EditorPythonParams, TrustParams
from server.lsp.language_server import OdysseyServer
from server.tracing import set_tracing

log = logging.getLogger("odyssey.lifecycle")

_CONFIGURE = "odyssey-configuration"


def initialize(ls: OdysseyServer, params: types.InitializeParams) -> None:
    """Folders, trust and settings; no child is started yet."""
    ls.encoding = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding) or "utf-16")
    folders = [path_of(folder.uri) for folder in params.workspace_folders or ()]
    if not folders and params.root_uri:
        folders = [path_of(params.root_uri)]
    ls.session.state.project.folders = tuple(folder for folder in folders if is_file(folder) and Path(folder).is_dir())
    options: dict[str, Any] = params.initialization_options if isinstance(params.initialization_options, dict) else {}
    _read_settings(ls, options.get("odyssey", options.get("settings")))
    ls.shows_proposals = options.get("proposals") is True
    editor_python = options.get("editorPython")
    ls.session.pool.configure(
        ls.session.state.settings, editor_python=editor_python if isinstance(editor_python, str) else ""
    )
    ls.session.apply(Trusted(trusted=options.get("trusted") is not False))
    ls.session.pool.expect(ls.session.state.project.folders)
    ls.outside.start()


async def initialized(ls: OdysseyServer, params: types.InitializedParams) -> None:
    """Ask for the settings and for news of them, where the client can."""
    workspace = ls.client_capabilities.workspace
    news = workspace.did_change_configuration if workspace is not None else None
    if news is not None and news.dynamic_registration:
        options = types.DidChangeConfigurationRegistrationOptions(section="odyssey")
        registration = types.Registration(
            id=_CONFIGURE, method=types.WORKSPACE_DID_CHANGE_CONFIGURATION, register_options=options
        )
        await _asked(ls.client_register_capability_async(types.RegistrationParams(registrations=[registration])))
    ls.outbox.say_status(ls.session.status)
    await _pull_settings(ls)


async def did_change_configuration(ls: OdysseyServer, params: types.DidChangeConfigurationParams) -> None:
    """New settings, sent along or to be asked for."""
    given = params.settings
    if isinstance(given, dict) and isinstance(given.get("odyssey"), dict):
        _read_settings(ls, given["odyssey"])
    else:
        await _pull_settings(ls)


def did_change_workspace_folders(ls: OdysseyServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Folders came or went."""
    gone = {path_of(folder.uri) for folder in params.event.removed}
    came = [path_of(folder.uri) for folder in params.event.added]
    kept = [folder for folder in ls.session.state.project.folders if folder not in gone]
    ls.session.state.project.folders = tuple(dict.fromkeys([*kept, *filter(is_file, came)]))
    ls.outside.settings_changed()


def trust(ls: OdysseyServer, params: TrustParams) -> None:
    """The person trusts the folder now (or no more)."""
    ls.session.apply(Trusted(trusted=params.trusted))


def editor_python(ls: OdysseyServer, params: EditorPythonParams) -> None:
    """Another interpreter was chosen in the editor."""
    ls.session.pool.configure(ls.session.state.settings, editor_python=params.path or "")


async def shutdown(ls: OdysseyServer, params: None) -> None:
    """End every child before the answer, so that nothing outlives the session even if `exit` never comes."""
    ls.outside.close()
    await ls.session.close()


async def _pull_settings(ls: OdysseyServer) -> None:
    workspace = ls.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    item = types.ConfigurationItem(section="odyssey")
    answer = await _asked(ls.workspace_configuration_async(types.ConfigurationParams(items=[item])))
    if isinstance(answer, (list, tuple)) and answer and isinstance(answer[0], dict):
        _read_settings(ls, answer[0])


def _read_settings(ls: OdysseyServer, section: Any) -> None:
    settings, problems = config.read(section)
    for problem in problems:
        ls.outbox.say("warning", problem)
    set_tracing(ls.session.host, on=settings.trace)
    if settings != ls.session.state.settings:
        ls.session.apply(SettingsRead(settings=settings))
        ls.outside.settings_changed()


async def _asked(question: Any) -> Any:
    """A client's answer, None where it refuses or never answers."""
    try:
        return await asyncio.wait_for(question, 10.0)
    except (asyncio.TimeoutError, JsonRpcException) as refusal:
        log.info("the client does not answer: %s", refusal)
        return None
