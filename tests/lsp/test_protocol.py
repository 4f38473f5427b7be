"""The connection itself: bad messages get answers, faults keep their tracebacks, the exit code is the specified one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.texts import ADD
from tests.support.editor import SERVER
from tests.support.fake_python import fake_python


class Raw:
    """A client that can misbehave."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def send(self, message: Any, *, header: str = "Content-Length") -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.send_bytes(f"{header}: {len(body)}\r\n\r\n".encode() + body)

    async def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        head = await asyncio.wait_for(self.process.stdout.readuntil(b"\r\n\r\n"), 20)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return json.loads(await self.process.stdout.readexactly(length))

    async def answer(self, msg_id: Any) -> dict[str, Any]:
        while True:
            message = await self.receive()
            if message.get("id") == msg_id and "method" not in message:
                return message

    async def request(self, msg_id: int, method: str, params: Any = None) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})
        return await self.answer(msg_id)

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def initialize(self, workspace: Path, **options: Any) -> dict[str, Any]:
        params = {"processId": os.getpid(), "rootUri": workspace.as_uri(), "capabilities": {},
                  "initializationOptions": options}  # fmt: skip
        answer = await self.request(1, "initialize", params)
        self.notify("initialized", {})
        return answer

    async def end(self) -> int:
        return await asyncio.wait_for(self.process.wait(), 20)


@pytest.fixture
async def raw(tmp_path, workspace):
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    process = await asyncio.create_subprocess_exec(
        *SERVER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=env, cwd=workspace, limit=1 << 26
    )
    yield Raw(process)
    if process.returncode is None:
        process.kill()
        await process.wait()


async def test_exit_codes(raw, workspace):
    await raw.initialize(workspace)
    raw.notify("exit")
    assert await raw.end() == 1


async def test_shutdown_then_exit_is_zero_and_requests_between_are_refused(raw, workspace):
    await raw.initialize(workspace)
    assert (await raw.request(2, "shutdown"))["result"] is None
    assert (await raw.request(3, "textDocument/hover", {}))["error"]["code"] == -32600
    raw.notify("exit")
    assert await raw.end() == 0


async def test_a_closed_stdin_ends_the_server(raw, workspace):
    await raw.initialize(workspace)
    raw.process.stdin.close()
    assert await raw.end() == 1


async def test_requests_before_initialize_are_refused(raw):
    assert (await raw.request(5, "textDocument/hover", {}))["error"]["code"] == -32002


async def test_initialize_twice_is_refused(raw, workspace):
    await raw.initialize(workspace)
    assert (await raw.request(2, "initialize", {"capabilities": {}}))["error"]["code"] == -32600


INVALID = (
    ("textDocument/hover", {"textDocument": 5}),
    ("textDocument/hover", None),
    ("textDocument/codeAction", {"range": "no"}),
    ("odyssey/candidate", {}),
    ("odyssey/ledgerRows", {"limit": "many"}),
    ("odyssey/pin", [1]),
    ("workspace/executeCommand", {"command": "odyssey.evaluate", "arguments": [{"uri": 3}]}),
    ("workspace/executeCommand", {"command": "odyssey.pinBaseline", "arguments": []}),
)


async def test_invalid_params_get_an_answer_without_paths(raw, workspace):
    await raw.initialize(workspace)
    for number, (method, params) in enumerate(INVALID, start=7):
        error = (await raw.request(number, method, params))["error"]
        assert error["code"] == -32602, (method, params)
        assert "Traceback" not in json.dumps(error) and str(Path(sys.prefix)) not in json.dumps(error)
    assert (await raw.request(99, "textDocument/hover", _hover(workspace)))["result"] is None


async def test_a_fault_in_a_handler_is_answered_without_a_traceback(raw, workspace):
    await raw.initialize(workspace)
    place = workspace / ".odyssey"
    place.mkdir()
    (place / "ledger.db").write_bytes(b"no database at all" * 100)
    answer = await raw.request(9, "odyssey/ledgerRows", {})
    text = json.dumps(answer)
    assert "Traceback" not in text and "site-packages" not in text
    assert (await raw.request(10, "textDocument/hover", _hover(workspace)))["result"] is None


async def test_unknown_methods_and_commands(raw, workspace):
    await raw.initialize(workspace)
    assert (await raw.request(2, "textDocument/nonsense", {}))["error"]["code"] == -32601
    command = {"command": "rm -rf", "arguments": []}
    assert (await raw.request(3, "workspace/executeCommand", command))["error"]["code"] == -32803
    raw.notify("nonsense/notification", {"a": 1})
    raw.notify("$/cancelRequest", {"id": 999})
    assert (await raw.request(4, "textDocument/hover", _hover(workspace)))["result"] is None


async def test_malformed_messages_do_not_lose_the_stream(raw, workspace):
    await raw.initialize(workspace)
    raw.send(b"{not json")
    assert (await raw.answer(None))["error"]["code"] == -32700
    raw.send([{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}])
    assert (await raw.answer(None))["error"]["code"] == -32600
    raw.send({"id": 4, "method": "textDocument/hover"})
    assert (await raw.answer(4))["error"]["code"] == -32600
    body = json.dumps({"jsonrpc": "2.0", "id": 6, "method": "textDocument/hover", "params": _hover(workspace)}).encode()
    raw.send_bytes(b"content-type: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert (await raw.answer(6))["result"] is None


async def test_a_nested_jsonrpc_key_breaks_nothing(raw, workspace):
    await raw.initialize(workspace)
    raw.notify("workspace/didChangeConfiguration", {"settings": {"odyssey": {"jsonrpc": "2.0", "id": 1}}})
    assert (await raw.request(2, "textDocument/hover", _hover(workspace)))["result"] is None


async def test_a_client_that_does_not_read_does_not_stop_the_server(raw, workspace):
    await raw.initialize(workspace, trusted=False)
    bad = "def k(:\n" * 30_000
    for number in range(30):
        item = {"uri": (workspace / f"{number}.py").as_uri(), "languageId": "python", "version": 1, "text": bad}
        raw.notify("textDocument/didOpen", {"textDocument": item})
        raw.send({"jsonrpc": "2.0", "id": f"h{number}", "method": "textDocument/hover", "params": _hover(workspace)})
    await asyncio.sleep(1.0)
    assert (await raw.request(50, "textDocument/hover", _hover(workspace)))["result"] is None


async def test_stray_settings_never_stop_the_server(raw, workspace):
    await raw.initialize(
        workspace, odyssey={"evaluate": 7, "watch": "x", "device": "tpu", "reuse": "on", "python": None}
    )
    for settings in (None, 5, [], {"odyssey": None}, {"odyssey": {"mode": "quick"}}):
        raw.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert (await raw.request(2, "textDocument/hover", _hover(workspace)))["result"] is None


async def test_started_in_a_folder_that_has_our_names(tmp_path):
    hostile = tmp_path / "hostile"
    for name in ("server", "handlers", "evalcore", "skills", "lsprotocol", "json"):
        (hostile / name).mkdir(parents=True)
        (hostile / name / "__init__.py").write_text("raise SystemExit('the workspace was imported')\n")
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    process = await asyncio.create_subprocess_exec(
        *SERVER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=env, cwd=hostile
    )
    client = Raw(process)
    await client.initialize(hostile, odyssey={"python": fake_python(tmp_path)})
    uri = (hostile / "add.py").as_uri()
    client.notify(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": ADD}}
    )
    lenses = (await client.request(2, "textDocument/codeLens", {"textDocument": {"uri": uri}}))["result"]
    assert [lens["command"]["title"] for lens in lenses][:3] == ["Evaluate", "Thorough", "History"]
    await client.request(3, "shutdown")
    client.notify("exit")
    assert await client.end() == 0


async def test_sigterm_ends_the_server_and_its_children(raw, workspace, tmp_path):
    await raw.initialize(workspace, odyssey={"python": fake_python(tmp_path)})
    uri = (workspace / "add.py").as_uri()
    raw.notify(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": ADD}}
    )
    await raw.request(2, "textDocument/codeLens", {"textDocument": {"uri": uri}})
    raw.process.send_signal(signal.SIGTERM)
    assert await raw.end() == 1


def _hover(workspace: Path) -> dict[str, Any]:
    return {"textDocument": {"uri": (workspace / "none.py").as_uri()}, "position": {"line": 0, "character": 0}}


async def test_over_tcp_on_loopback_one_client_after_the_other(tmp_path, workspace):
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [*SERVER[:-1], "--tcp", "0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=env, cwd=workspace)
    assert process.stderr is not None
    try:
        line = await asyncio.wait_for(process.stderr.readline(), 20)
        port = int(line.decode().rsplit(":", 1)[1])
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
            writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            answer = json.loads(await reader.readexactly(int(head.split(b"Length: ")[1].split(b"\r\n")[0])))
            assert answer["result"]["serverInfo"]["name"] == "odyssey"
            writer.close()
            await asyncio.sleep(0.3)
    finally:
        process.terminate()
        await process.wait()
