"""Owns an editor for tests: a real client over stdio that opens, types, saves, and keeps what the server says."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from server.lines import LineIndex, TextEdit

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, "-I", "-m", "server", "lsp", "--stdio"]
CUSTOM = ("odyssey/status", "odyssey/ledgerAppended", "odyssey/marks", "odyssey/proposalReady")


class Editor:
    """One connection."""

    def __init__(self, workspace: Path, *, state: Path, env: dict[str, str] | None = None) -> None:
        self.workspace = workspace
        self.env = {**os.environ, "XDG_STATE_HOME": str(state), **(env or {})}
        self.client: LanguageClient = make_test_lsp_client()
        self.heard: dict[str, list[Any]] = {method: [] for method in CUSTOM}
        self.published: list[types.PublishDiagnosticsParams] = []
        self.refreshes = 0
        self.texts: dict[str, LineIndex] = {}
        self.versions: dict[str, int] = {}
        self.settings: dict[str, Any] = {}
        self.asked: list[types.ShowMessageRequestParams] = []
        self.answers: list[str] = []
        """Titles that the next questions are answered with; without one the last choice is taken."""
        self.applies = True
        self.capabilities: types.InitializeResult | None = None
        for method in CUSTOM:
            self._hear(method)
        self._answer_requests()

    def _hear(self, method: str) -> None:
        @self.client.feature(method)
        def heard(params: Any) -> None:
            self.heard[method].append(params)

    def _answer_requests(self) -> None:
        @self.client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def inlay(params: Any) -> None:
            self.refreshes += 1

        @self.client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
        def lens(params: Any) -> None:
            self.refreshes += 1

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: Any) -> None:
            return None

        @self.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
        def ask(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
            self.asked.append(params)
            actions = params.actions or []
            if not self.answers:
                return actions[-1] if actions else None
            wanted = self.answers.pop(0)
            return next((each for each in actions if each.title == wanted), None)

        @self.client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            if self.applies:
                self.apply_edit(params.edit)
            return types.ApplyWorkspaceEditResult(applied=self.applies)

    async def start(
        self, settings: dict[str, Any] | None = None, *, trusted: bool = True, client: str = "visual-studio-code",
        encodings: list[str] | None = None, proposals: bool = False,
    ) -> None:  # fmt: skip
        """Start the server and say hello."""
        await self.client.start_io(*SERVER, env=self.env, cwd=str(self.workspace))
        capabilities = client_capabilities(client)
        if encodings is not None:
            assert capabilities.general is not None
            capabilities.general.position_encodings = list(encodings)
        folder = types.WorkspaceFolder(uri=self.workspace.as_uri(), name=self.workspace.name)
        self.settings = dict(settings or {})
        self.client.set_configuration({"odyssey": self.settings})
        self.capabilities = await self.client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities,
                root_uri=self.workspace.as_uri(),
                workspace_folders=[folder],
                initialization_options={"trusted": trusted, "odyssey": settings or {}, "proposals": proposals},
            )
        )

    def configure(self, **settings: Any) -> None:
        """Change some settings, as an editor does: the whole section is sent."""
        self.settings.update(settings)
        self.client.set_configuration({"odyssey": self.settings})
        self.client.workspace_did_change_configuration(
            types.DidChangeConfigurationParams(settings={"odyssey": self.settings})
        )

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self.client._server is not None
        return self.client._server.pid

    async def stop(self) -> int:
        """Shut down in order; the server's exit code."""
        server = self.client._server
        assert server is not None
        if server.returncode is None:
            await asyncio.wait_for(self.client.shutdown_async(None), 20)
            self.client.exit(None)
        code = await asyncio.wait_for(server.wait(), 20)
        await self.client.stop()
        return code

    def uri(self, name: str) -> str:
        """A workspace file's URI."""
        return (self.workspace / name).as_uri()

    def open(self, name: str, text: str | None = None, *, write: bool = True) -> str:
        """Open a file with a text (written to the disk first), or one that is there."""
        place = self.workspace / name
        if text is None:
            text = place.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
        elif write:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        uri = place.as_uri()
        self.texts[uri], self.versions[uri] = LineIndex(text), 1
        language = "python" if name.endswith(".py") else "cuda-cpp"
        item = types.TextDocumentItem(uri=uri, language_id=language, version=1, text=text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        return uri

    def edit(self, uri: str, old: str, new: str) -> None:
        """Replace the first occurrence of a text by another, as one incremental change in UTF-16 columns."""
        index = self.texts[uri]
        start = index.text.index(old)
        end = start + len(old)
        change = types.TextDocumentContentChangePartial(
            range=types.Range(start=_utf16(index, start), end=_utf16(index, end)), text=new
        )
        self.texts[uri] = index.edited(TextEdit(start, end, new))
        self._changed(uri, change)

    def replace(self, uri: str, text: str) -> None:
        """Replace the whole text."""
        self.texts[uri] = LineIndex(text)
        self._changed(uri, types.TextDocumentContentChangeWholeDocument(text=text))

    def _changed(self, uri: str, change: Any) -> None:
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(text_document=document, content_changes=[change])
        )

    def save(self, uri: str) -> None:
        """Write the buffer to the disk and tell."""
        from handlers.from_lsp import path_of

        Path(path_of(uri)).write_bytes(self.texts[uri].text.encode())
        document = types.TextDocumentIdentifier(uri=uri)
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(text_document=document))

    def close(self, uri: str) -> None:
        """Close the buffer."""
        document = types.TextDocumentIdentifier(uri=uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(text_document=document))

    def apply_edit(self, edit: types.WorkspaceEdit) -> None:
        """Do what the server asks for, as an editor would."""
        for change in edit.document_changes or ():
            if isinstance(change, types.CreateFile):
                from handlers.from_lsp import path_of

                Path(path_of(change.uri)).touch()
            elif isinstance(change, types.TextDocumentEdit):
                self._apply_text_edits(change)

    def _apply_text_edits(self, change: types.TextDocumentEdit) -> None:
        from handlers.from_lsp import offset_of, path_of

        uri = change.text_document.uri
        opened = uri in self.texts
        if not opened:
            self.texts[uri] = LineIndex(Path(path_of(uri)).read_text())
        if change.text_document.version is not None:
            assert change.text_document.version == self.versions[uri]
        index = self.texts[uri]
        spots = [(offset_of(index, e.range.start, "utf-16"), offset_of(index, e.range.end, "utf-16"), e.new_text)
                 for e in change.edits]  # fmt: skip
        text = index.text
        for start, end, new in sorted(spots, reverse=True):
            text = text[:start] + new + text[end:]
        if opened:
            self.replace(uri, text)
        else:
            Path(path_of(uri)).write_text(text)
            del self.texts[uri]

    async def hints(self, uri: str) -> list[str]:
        """The words at line ends."""
        return [str(hint.label) for hint in await self.raw_hints(uri)]

    async def raw_hints(self, uri: str) -> list[types.InlayHint]:
        """The hints themselves."""
        whole = types.Range(start=types.Position(0, 0), end=types.Position(10**6, 0))
        params = types.InlayHintParams(text_document=types.TextDocumentIdentifier(uri=uri), range=whole)
        return list(await self.client.text_document_inlay_hint_async(params) or ())

    async def lenses(self, uri: str) -> list[tuple[int, str]]:
        """(line, title) of each lens."""
        params = types.CodeLensParams(text_document=types.TextDocumentIdentifier(uri=uri))
        found = await self.client.text_document_code_lens_async(params) or ()
        return [(lens.range.start.line, lens.command.title) for lens in found if lens.command is not None]

    async def hover(self, uri: str, line: int, character: int = 6) -> str:
        """The hover's Markdown, '' where there is none."""
        params = types.HoverParams(
            text_document=types.TextDocumentIdentifier(uri=uri), position=types.Position(line, character)
        )
        found = await self.client.text_document_hover_async(params)
        return found.contents.value if found is not None else ""  # type: ignore[union-attr]

    async def actions(self, uri: str, line: int) -> list[types.CodeAction]:
        """Code actions on a line."""
        there = types.Range(start=types.Position(line, 0), end=types.Position(line, 200))
        params = types.CodeActionParams(
            text_document=types.TextDocumentIdentifier(uri=uri),
            range=there,
            context=types.CodeActionContext(diagnostics=[]),
        )
        found = await self.client.text_document_code_action_async(params) or ()
        return [_action(each) for each in found]

    async def command(self, name: str, argument: Any) -> Any:
        """Execute a command of the server."""
        params = types.ExecuteCommandParams(command=name, arguments=[argument])
        return await asyncio.wait_for(self.client.workspace_execute_command_async(params), 60)

    async def request(self, method: str, params: Any) -> Any:
        """One of our own requests."""
        return await asyncio.wait_for(self.client.protocol.send_request_async(method, params), 60)

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """What is published now."""
        return list(self.client.diagnostics.get(uri, ()))

    async def until(self, check: Callable[[], Any], *, seconds: float = 20.0, what: str = "") -> Any:
        """Wait until something holds; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = check()
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(0.02)
        raise AssertionError(f"did not happen within {seconds} s: {what or check}; {self.summary()}")

    async def until_hint(self, uri: str, words: str, *, seconds: float = 20.0) -> str:
        """Wait for a hint that holds these words."""

        async def look() -> str:
            return next((hint for hint in await self.hints(uri) if words in hint), "")

        return str(await self.until(look, seconds=seconds, what=f"a hint with {words!r}"))

    async def until_status(self, *states: str, seconds: float = 30.0) -> Any:
        """Wait for one of these states."""

        def look() -> Any:
            heard = self.heard["odyssey/status"]
            known = heard and heard[-1].state in states and heard[-1].text != "no kernel yet"
            return heard[-1] if known else None

        return await self.until(look, seconds=seconds, what=f"a status of {states}")

    def summary(self) -> str:
        """What was heard, for a failing test."""
        status = self.heard["odyssey/status"][-1:] or ["no status"]
        logged = [message.message for message in self.client.log_messages[-5:]]
        found = {uri.rsplit("/", 1)[-1]: [d.message for d in items] for uri, items in self.client.diagnostics.items()}
        return f"status {status[0]}, log {logged}, diagnostics {found}"[:1500]


def _action(given: types.CodeAction | types.Command) -> types.CodeAction:
    """lsprotocol reads every action that has a command as a bare Command, with the real one printed into its name."""
    if isinstance(given, types.CodeAction):
        return given
    inside = ast.literal_eval(given.command)
    return types.CodeAction(title=given.title, command=types.Command(**inside))


def _utf16(index: LineIndex, offset: int) -> types.Position:
    line, column = index.place(offset)
    before = index.text[index.starts[line] : index.starts[line] + column]
    return types.Position(line=line, character=len(before.encode("utf-16-le")) // 2)
