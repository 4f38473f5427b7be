"""Owns the pygls subclass: how messages are read and answered, and the fence around every handler. Never a feature.

What pygls 2.1 leaves open is closed here: invalid parameters get an answer, a fault's traceback stays in the log,
requests before `initialize` and after `shutdown` are refused, a document's text is kept by us alone.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any, Protocol

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage, MsgId

from server.lsp import ext
from server.outside import Outside
from server.session import Session
from server.signals import Signal, StatusChanged

NAME = "odyssey"

log = logging.getLogger("odyssey.lsp")


class RequestFailed(JsonRpcException):
    """A request that we cannot or will not do; the message is for the person."""

    CODE = -32803
    MESSAGE = "Request failed"

    def __init__(self, message: str) -> None:
        super().__init__(message=message, code=self.CODE)


class OdysseyProtocol(LanguageServerProtocol):
    """Reading and answering."""

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self._methods: dict[MsgId, str] = {}
        self.initialized = False
        self.exit_code: int | None = None
        self.stopped = asyncio.Event()

    async def serve(self, bodies: AsyncIterator[bytes]) -> int:
        """Handle messages until `exit` or the end of the stream; the exit code that the specification asks for."""
        reader = asyncio.ensure_future(self._receive_all(bodies))
        stop = asyncio.ensure_future(self.stopped.wait())
        await asyncio.wait({reader, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in (reader, stop):
            task.cancel()
        await asyncio.gather(reader, stop, return_exceptions=True)
        return self.exit_code if self.exit_code is not None else (0 if self._shutdown else 1)

    async def _receive_all(self, bodies: AsyncIterator[bytes]) -> None:
        async for body in bodies:
            self.receive(body)
            await asyncio.sleep(0)  # a burst of messages must not hold the loop

    def receive(self, body: bytes) -> None:
        """One message: parsed, checked, handed on; whatever is wrong with a request is answered."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, -32700, "The message is not JSON.")
            return
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
            self._refuse(data.get("id") if isinstance(data, dict) else None, -32600, "The message is no JSON-RPC 2.0.")
            return
        msg_id, method = data.get("id"), data.get("method")
        log.debug("<- %s %s", method or "answer", "" if msg_id is None else msg_id)
        if isinstance(method, str) and (why := self._not_now(method)) is not None:
            if msg_id is not None:
                self._refuse(msg_id, *why)
            return
        try:
            message = self._structured(data)
        except Exception:
            log.info("invalid parameters of %s", method, exc_info=True)
            if msg_id is not None and method is not None:
                self._refuse(msg_id, -32602, f"The parameters of {method} are not valid.")
            return
        self.handle_message(message)

    def _not_now(self, method: str) -> tuple[int, str] | None:
        if method == types.EXIT:
            return None
        if self._shutdown:
            return -32600, "The server is shutting down."
        if method == types.INITIALIZE:
            return (-32600, "The server is initialized already.") if self.initialized else None
        if not self.initialized:
            return -32002, "The server is not initialized."
        return None

    def _structured(self, data: dict[str, Any]) -> Any:
        method = data.get("method")
        if method is None:
            return super().structure_message(data)
        kind = ext.PARAMS.get(method)
        known = self.get_message_type(method)
        if kind is None and known is not None:
            return self._converter.structure(data, known)
        params = data.get("params")
        if kind is not None:
            params = ext.read(kind, params)
        if "id" in data:
            return JsonRPCRequestMessage(id=data["id"], method=method, jsonrpc="2.0", params=params)
        return JsonRPCNotification(method=method, jsonrpc="2.0", params=params)

    def _refuse(self, msg_id: Any, code: int, message: str) -> None:
        error = types.ResponseError(code=code, message=message)
        self._send_data(types.ResponseErrorMessage(id=msg_id, error=error))

    # the fence

    def _handle_request(self, msg_id: MsgId, method_name: str, params: Any) -> None:
        if method_name not in self.fm.features and method_name not in self.fm.builtin_features:
            self._refuse(msg_id, JsonRpcMethodNotFound.CODE, f"There is no method {method_name}.")
            return
        self._methods[msg_id] = method_name
        super()._handle_request(msg_id, method_name, params)

    def _send_handler_result(self, future: Future[Any], *, msg_id: MsgId) -> None:
        self._request_futures.pop(msg_id, None)
        method = self._methods.pop(msg_id, "the request")
        if future.cancelled():
            self._refuse(msg_id, -32800, f"{method} was cancelled.")
            return
        fault = future.exception()
        if fault is None:
            self._send_response(msg_id, result=future.result())
        elif isinstance(fault, JsonRpcException):
            log.info("%s: %s", method, fault.message)
            self._refuse(msg_id, fault.code, fault.message)
        else:
            log.error("%s failed", method, exc_info=fault)
            self._refuse(msg_id, -32603, f"Odyssey failed in {method}; its log says why.")

    def _check_handler_result(self, future: Future[Any]) -> None:
        if not future.cancelled() and (fault := future.exception()) is not None:
            log.error("a notification's handler failed", exc_info=fault)

    def _handle_cancel_notification(self, msg_id: MsgId) -> None:
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.cancel()

    def _send_response(self, msg_id: MsgId, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is not None:
            self._send_data(types.ResponseErrorMessage(id=msg_id, error=error))
            return
        self._result_types.pop(msg_id, None)
        self._send_data(JsonRPCResponseMessage(id=msg_id, jsonrpc="2.0", result=result))

    # what pygls would do itself

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Any:
        """As pygls does; from here on other requests are served."""
        self.initialized = True
        return (yield from super().lsp_initialize(params))

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:
        """A command with its one argument, typed."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise RequestFailed(f"There is no command {params.command}.")
        arguments = params.arguments or [None]
        try:
            argument = ext.read(ext.ARGUMENTS[params.command], arguments[0])
        except ext.InvalidParams as problem:
            raise JsonRpcInvalidParams(f"The argument of {params.command} is not valid: {problem}.") from None
        return (yield handler, (argument,), None)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> None:  # type: ignore[override]
        """End with 0 after `shutdown`, with 1 without."""
        self.exit_code = 0 if self._shutdown else 1
        self.stopped.set()

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Any:
        """Straight to our handler: pygls' text splits lines where editors do not, and would be a second copy."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Any:
        """Straight to our handler."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Any:
        """Straight to our handler."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


class Outlet(Protocol):
    """What the server says by itself; `handlers.outbox` implements it."""

    def hear(self, signal: Signal) -> None: ...
    def say(self, level: str, text: str, *, loud: bool = False) -> None: ...
    def say_status(self, status: StatusChanged) -> None: ...


class OdysseyServer(LanguageServer):
    """The server that handlers get: pygls' sending methods and our session."""

    protocol: OdysseyProtocol
    outbox: Outlet
    """Set by the composition in `server.app`."""

    def __init__(self, session: Session, version: str) -> None:
        super().__init__(NAME, version, protocol_cls=OdysseyProtocol, converter_factory=default_converter)
        self.session = session
        self.outside = Outside(session)
        self.encoding: str = types.PositionEncodingKind.Utf16.value
        """The unit of columns that was agreed on with the client."""
        self.shows_proposals = False
        """Whether the client shows a proposal itself, from odyssey/proposalReady."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Faults go to the log and nowhere else: their words hold local paths."""
        log.error("%s", error, exc_info=error)
