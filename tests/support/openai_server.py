"""A scripted OpenAI-compatible server on loopback, for the tests that go through the real litellm."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Scripted(BaseHTTPRequestHandler):
    """Answers each POST with the next step of the server's script."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        """One completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        server.requests.append({**body, "authorization": self.headers.get("Authorization")})
        step = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        if isinstance(step, int):
            self._plain(step, {"error": {"message": f"scripted {step}", "type": "scripted", "code": step}})
        elif step is ENDLESS:
            self._stream(f"word {number} " * 200 for number in itertools.count())
        else:
            self._stream([step[i : i + 40] for i in range(0, len(step), 40)])

    def _plain(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pieces: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in pieces:
                delta = {"role": "assistant", "content": piece}
                self._chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            self._chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self._chunk({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}})
            self._raw(b"data: [DONE]\n\n")
            self._raw(b"")
        except (BrokenPipeError, ConnectionResetError):
            return

    def _chunk(self, value: dict[str, Any]) -> None:
        value = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted", **value}
        self._raw(f"data: {json.dumps(value)}\n\n".encode())

    def _raw(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


ENDLESS = object()


@contextmanager
def scripted_server(*script: Any):
    """Serve the script on a free port; yields (address, list of request bodies, each with its key as `authorization`)."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.script, server.requests, server.daemon_threads = list(script), [], True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", server.requests
    finally:
        server.shutdown()
        server.server_close()
