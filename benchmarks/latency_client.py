"""Owns a lean client for latency benchmarks: raw messages, each stamped by a reader thread when it arrives."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

Message = dict[str, Any]


class Client:
    """One server and what it said, with times of time.perf_counter."""

    def __init__(self, workspace: Path, state: Path) -> None:
        self.workspace = workspace
        self.watch_file = state / "loop.json"
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "latency_watch.py"), str(self.watch_file), "lsp", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)},
            cwd=workspace,
        )
        self._arrived: queue.Queue[tuple[float, Message]] = queue.Queue()
        self._next_id = 0
        self._versions: dict[str, int] = {}
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        out = self._process.stdout
        while True:
            length = 0
            while (line := out.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = out.read(length)
            if not body:
                return
            arrived = time.perf_counter()
            message = json.loads(body)
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            else:
                self._arrived.put((arrived, message))

    def _send(self, message: Message) -> float:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        sent = time.perf_counter()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()
        return sent

    def notify(self, method: str, params: Any) -> float:
        """Send a notification; when."""
        return self._send({"method": method, "params": params})

    def request(self, method: str, params: Any, *, seconds: float = 60.0) -> tuple[float, Any]:
        """Ask and wait; (seconds that it took, result)."""
        self._next_id += 1
        msg_id = self._next_id
        sent = self._send({"id": msg_id, "method": method, "params": params})
        arrived, message = self.wait(lambda m: m.get("id") == msg_id and "method" not in m, seconds=seconds)
        return arrived - sent, message.get("result")

    def wait(self, wanted: Any, *, seconds: float = 60.0) -> tuple[float, Message]:
        """The next message that is wanted; those before it are dropped. Raises RuntimeError where none comes."""
        end = time.perf_counter() + seconds
        last: list[str] = []
        while True:
            try:
                arrived, message = self._arrived.get(timeout=max(end - time.perf_counter(), 0.001))
            except queue.Empty:
                said = "\n".join(last[-5:])
                raise RuntimeError(f"nothing came within {seconds:.0f} s; the last messages were\n{said}") from None
            if wanted(message):
                return arrived, message
            last.append(json.dumps(message)[:400])

    def drain(self) -> None:
        """Forget what has arrived."""
        while not self._arrived.empty():
            self._arrived.get_nowait()

    def initialize(self, settings: dict[str, Any]) -> float:
        """Start the session; seconds from the process's start to the answer."""
        begin = time.perf_counter()
        capabilities = {
            "window": {"workDoneProgress": True},
            "workspace": {"inlayHint": {"refreshSupport": True}, "codeLens": {"refreshSupport": True}},
        }
        params = {
            "processId": os.getpid(),
            "rootUri": self.workspace.as_uri(),
            "workspaceFolders": [{"uri": self.workspace.as_uri(), "name": "w"}],
            "capabilities": capabilities,
            "initializationOptions": {"odyssey": settings},
        }
        self.request("initialize", params)
        self.notify("initialized", {})
        return time.perf_counter() - begin

    def open(self, name: str, text: str) -> str:
        """Write and open a file."""
        place = self.workspace / name
        place.write_text(text, encoding="utf-8")
        uri = place.as_uri()
        self._versions[uri] = 1
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, line: int, first: int, last: int, text: str) -> tuple[float, int]:
        """One incremental change on one line; (when, version)."""
        self._versions[uri] += 1
        there = {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}}
        params = {
            "textDocument": {"uri": uri, "version": self._versions[uri]},
            "contentChanges": [{"range": there, "text": text}],
        }
        return self.notify("textDocument/didChange", params), self._versions[uri]

    def replace(self, uri: str, text: str) -> None:
        """The whole text anew."""
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def save(self, uri: str, text: str) -> float:
        """Write the text to its file and tell; when it was told."""
        name = uri.rsplit("/", 1)[-1]
        (self.workspace / name).write_text(text, encoding="utf-8")
        return self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def loop_facts(self) -> dict[str, Any]:
        """How long the event loop was held since the last look."""
        self.watch_file.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self.request(
                "textDocument/hover", {"textDocument": {"uri": "file:///no"}, "position": {"line": 0, "character": 0}}
            )
            if self.watch_file.exists():
                return dict(json.loads(self.watch_file.read_text(encoding="utf-8")))
        return {}

    def stop(self) -> None:
        """End the session."""
        try:
            self.request("shutdown", None, seconds=20)
            self.notify("exit", None)
            self._process.wait(timeout=20)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()


def rss_bytes(pid: int) -> int:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> dict[int, str]:
    """The direct children of a process and what each is."""
    found: dict[int, str] = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            parent = int((place / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
            command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if parent == pid:
            kind = "reader" if "reader_entry" in command else "loop" if "--flavour" in command else "other"
            found[int(place.name)] = kind
    return found
