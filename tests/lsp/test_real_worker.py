"""The whole loop with the real worker and Triton's interpreter on this CPU: what a person does in an afternoon."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from lsprotocol import types

from tests.lsp.test_workers import alive, children_of
from tests.lsp.texts import ADD, NAME_LINE
from tests.support.editor import Editor

RIGHT = "right 5/5 (interpreted, no GPU)"

pytestmark = [
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("torch", "triton")), reason="needs torch and triton"
    ),
    pytest.mark.timeout(240),
]


@pytest.fixture
async def editor(tmp_path, workspace):
    """An editor on the real worker of this interpreter, held to the CPU."""
    made = Editor(workspace, state=tmp_path / "state")
    await made.start({"python": sys.executable, "device": "cpu"})
    yield made
    if made.client._server is not None:
        assert await made.stop() in (0, -9)


async def test_an_afternoon(editor):
    uri = editor.open("add.py", ADD)
    assert [title for _, title in await editor.lenses(uri)][:3] == ["Evaluate", "Thorough", "History"]
    editor.save(uri)
    assert await editor.until_hint(uri, "right", seconds=120) == RIGHT
    card = await editor.hover(uri, NAME_LINE)
    assert "| n=1027 | 5/5 |" in card and "no GPU" in card and " us" not in card

    editor.edit(uri, "    mask = i < n\n", "    mask = i < n - 3\n")
    assert await editor.hints(uri) == [f"older text: {RIGHT}"]
    editor.save(uri)
    hint = await editor.until_hint(uri, "wrong", seconds=60)
    assert hint.startswith("wrong (right 0/5)") and "1024" in hint
    (found,) = await editor.until(lambda: _errors(editor, uri))
    assert found.range.start == types.Position(NAME_LINE, 4) and "elements >= 1024 untouched" in found.message

    editor.edit(uri, "    mask = i < n - 3\n", "    mask = i < m\n")
    editor.save(uri)
    assert await editor.until_hint(uri, "does not compile", seconds=60)
    (found,) = await editor.until(lambda: [d for d in _errors(editor, uri) if "m" in d.message])
    assert found.range.start.line == NAME_LINE + 2

    editor.edit(uri, "    mask = i < m\n", "    mask = i < n\n")
    assert await editor.until_hint(uri, "does not compile") == "older text: does not compile"
    editor.save(uri)
    await editor.until_hint(uri, RIGHT, seconds=60)
    assert _errors(editor, uri) == []
    rows = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows
    assert [row.verdict for row in rows][-3:] == ["compile_error", "incorrect", "correct"]
    assert all(row.device_us is None and row.card is None for row in rows)


def _errors(editor: Editor, uri: str) -> list[types.Diagnostic]:
    return [each for each in editor.diagnostics(uri) if each.severity == types.DiagnosticSeverity.Error]


async def test_the_front_end_speaks_while_typing(editor):
    uri = editor.open("add.py", ADD)
    status = await editor.until_status("degraded", seconds=120)
    assert status.card is None
    editor.edit(uri, "tl.load(y_ptr + i, mask=mask)", "tl.load(y_ptr + j, mask=mask)")
    (found,) = await editor.until(lambda: _errors(editor, uri), seconds=60)
    assert found.range.start.line == NAME_LINE + 4 and "j" in found.message
    editor.edit(uri, "tl.load(y_ptr + j, mask=mask)", "tl.load(y_ptr + i, mask=mask)")
    await editor.until(lambda: not _errors(editor, uri), seconds=60)


async def test_an_endless_kernel_is_stopped_by_the_next_save_and_by_the_command(editor):
    endless = ADD.replace(
        "    x = tl.load(x_ptr + i, mask=mask)\n",
        "    x = tl.load(x_ptr + i, mask=mask)\n    while tl.max(x, axis=0) > -1.0:\n        x += 1.0\n",
    )
    uri = editor.open("add.py", endless)
    editor.save(uri)
    await editor.until(lambda: any("trials" in each.message for each in _reports(editor)), seconds=120)
    await editor.command("odyssey.stop", {})
    await editor.until_status("degraded", seconds=20)
    editor.save(uri)
    await editor.until_status("busy", seconds=20)
    editor.replace(uri, ADD)
    editor.save(uri)
    await editor.until_hint(uri, RIGHT, seconds=60)


def _reports(editor: Editor) -> list[types.WorkDoneProgressReport]:
    found = [each for reports in editor.client.progress_reports.values() for each in reports]
    values = [getattr(each, "value", each) for each in found]
    return [each for each in values if getattr(each, "message", None)]


async def test_hostile_texts_leave_the_server_going(editor):
    uri = editor.open("add.py", ADD)
    await editor.lenses(uri)
    for line in ("import os; os._exit(0)", "import os; os.kill(os.getpid(), 11)", "print('x' * 10_000_000)",
                 "import os\nfor _ in range(50):\n    os.fork()\n    break"):  # fmt: skip
        spoiled = "\n".join("    " + each for each in line.splitlines())
        editor.replace(
            uri, ADD.replace("    out = torch.empty_like(x)\n", f"{spoiled}\n    out = torch.empty_like(x)\n")
        )
        editor.save(uri)
        await editor.until(lambda: _judged(editor, uri), seconds=90, what=line)
    editor.replace(uri, ADD)
    editor.save(uri)
    await editor.until_hint(uri, RIGHT, seconds=90)


async def _judged(editor: Editor, uri: str) -> bool:
    hints = await editor.hints(uri)
    return bool(hints) and not hints[0].startswith("older text")


async def test_nothing_outlives_the_server_with_a_real_worker(editor):
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, RIGHT, seconds=120)
    below = children_of(editor.pid)
    assert len(below) >= 4
    os.kill(editor.pid, signal.SIGKILL)
    await editor.until(lambda: not alive(below), seconds=10, what="all children ended")
    time.sleep(0.2)
    scratch = [each for each in Path("/dev/shm").glob(f"odyssey-{editor.pid}-*") if any(each.rglob("*"))]
    assert len(scratch) <= 2  # swept by the next server of this user
