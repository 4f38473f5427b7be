"""Owns composition: session, language server, handlers, transport, an orderly end. Holds the one upward import."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

from handlers.registry import COMMANDS, FEATURES, LISTENERS, OUTBOX
from server.host import Host
from server.lsp.language_server import OdysseyServer
from server.lsp.stdio import PipeReader, PipeWriter, stream_bodies
from server.session import Session

END_S = 6.0
"""How long an orderly end may take; after that the process leaves as it is, and its children die with it."""

log = logging.getLogger("odyssey.app")


def build(host: Host) -> OdysseyServer:
    """A server with all features, not yet connected."""
    ls = OdysseyServer(Session(host), version())
    ls.outbox = OUTBOX(ls)
    ls.session.listen(ls.outbox.hear)
    for make_listener in LISTENERS:
        ls.session.listen(make_listener(ls))
    for method, handler, options in FEATURES:
        ls.feature(method, options)(handler)
    for command, handler in COMMANDS:
        ls.command(command)(handler)
    return ls


def version() -> str:
    """This distribution's version."""
    try:
        return metadata.version("odyssey-lsp")
    except metadata.PackageNotFoundError:
        return "0"


def serve_stdio(host: Host) -> int:
    """Serve one client on stdin and stdout; the exit code."""
    _log_to_stderr()
    protocol_out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a stray print must not end in the protocol
    return asyncio.run(_stdio(host, protocol_out))


def serve_tcp(host: Host, port: int) -> int:
    """Serve one client after the other on a loopback port; ends with a signal."""
    _log_to_stderr()
    return asyncio.run(_tcp(host, port))


async def _stdio(host: Host, out: Any) -> int:
    ls = build(host)
    writer = PipeWriter(out)
    ls.protocol.set_writer(writer)
    _on_signals(ls.protocol.stopped.set)
    return await _serve(ls, PipeReader(0).bodies(), writer)


def _on_signals(work: Callable[[], None]) -> None:
    """Do something instead of dying at once, where the system has signals."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(name, work)


async def _serve(ls: OdysseyServer, bodies: Any, writer: Any) -> int:
    try:
        code = await ls.protocol.serve(bodies)
    finally:
        ls.outside.close()
        try:
            await asyncio.wait_for(ls.session.close(), END_S)
        except asyncio.TimeoutError:
            log.error("the children did not end in time; they are killed with this process")
            os._exit(1)
        writer.close()
    return code


async def _tcp(host: Host, port: int) -> int:
    ending = asyncio.Event()
    serving: list[OdysseyServer] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if serving:
            log.warning("a second client was turned away: one is served at a time")
            writer.close()
            return
        ls = build(host)
        serving.append(ls)
        try:
            ls.protocol.set_writer(writer)  # type: ignore[arg-type]
            await _serve(ls, stream_bodies(reader), writer)
        finally:
            serving.remove(ls)

    def end() -> None:
        ending.set()
        for ls in serving:
            ls.protocol.stopped.set()

    _on_signals(end)
    server = await asyncio.start_server(connected, "127.0.0.1", port)
    sys.stderr.write(f"odyssey: listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stderr.flush()
    await ending.wait()
    server.close()
    while serving:
        await asyncio.sleep(0.05)
    return 0


def _log_to_stderr() -> None:
    """Warnings and worse, one line each; pygls would log every message that it sends."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)
