"""Workers that die, do not obey, are of another version or missing; and that nothing outlives the server."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.lsp.texts import ADD

CORRECT_GPU = "2.31x eager · 34.4 us · right 5/5"

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="process trees are read from /proc")


def children_of(pid: int) -> set[int]:
    """All processes below one."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(place.name)] = int(fields[1])
    found: set[int] = set()
    while True:
        more = {child for child, parent in parents.items() if parent == pid or parent in found} - found
        if not more:
            return found
        found |= more


def alive(pids: set[int]) -> set[int]:
    """Those that still run (a zombie does not)."""
    found = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.add(pid)
    return found


async def test_a_worker_that_dies_is_named_and_the_next_save_is_judged(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: die\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    (found,) = await editor.until(lambda: editor.diagnostics(uri))
    assert "exit code 9" in found.message and "scripted death" in found.message and "started again" in found.message
    editor.edit(uri, "# worker: die\n", "")
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    assert editor.diagnostics(uri) == []


async def test_a_worker_that_ignores_cancel_is_killed_and_replaced(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: slow 60\n# worker: deaf yes\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    await editor.until_status("busy")
    editor.edit(uri, "# worker: slow 60\n# worker: deaf yes\n", "")
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU, seconds=15)


async def test_a_refusal_is_a_remark_on_the_kernel(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: refuse no_torch\n" + ADD)
    editor.save(uri)
    (found,) = await editor.until(lambda: editor.diagnostics(uri))
    assert found.code == "no-torch" and found.severity == 3
    assert await editor.hints(uri) == []


async def test_a_result_too_long_for_a_frame_comes_as_a_file(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: big yes\n" + ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)


@pytest.mark.parametrize("script", [{"SCRIPT_PROTOCOL": "99"}, {"SCRIPT_SHA": "0" * 64}])
async def test_another_version_is_refused_with_a_remedy(make_editor, script):
    editor = await make_editor(gpu=True, script=script)
    uri = editor.open("add.py", ADD)
    status = await editor.until_status("degraded")
    assert status.missing[0].what == "protocol_mismatch" and "Restart the workers" in status.missing[0].remedy
    editor.save(uri)
    (found,) = await editor.until(lambda: editor.diagnostics(uri))
    assert "another version" in found.message


async def test_a_python_that_is_not_there_is_named(make_editor):
    editor = await make_editor({"python": "/nowhere/python"})
    uri = editor.open("add.py", ADD)
    status = await editor.until_status("degraded")
    assert "/nowhere/python" in status.missing[0].message and "odyssey.python" in status.missing[0].remedy
    editor.save(uri)
    (found,) = await editor.until(lambda: editor.diagnostics(uri))
    assert "/nowhere/python" in found.message


async def test_restart_workers_makes_new_ones(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    before = children_of(editor.pid)
    await editor.command("odyssey.restartWorkers", {})
    await editor.until(lambda: not alive(before - children_of(editor.pid)), what="old loops ended")
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)


async def test_another_python_ends_the_old_loops(make_editor, tmp_path):
    from tests.support.fake_python import fake_python

    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    other = tmp_path / "other"
    other.mkdir()
    editor.configure(python=fake_python(other))
    editor.save(uri)
    await editor.until_hint(uri, "right 5/5 (interpreted, no GPU)")


async def test_nothing_outlives_a_server_that_is_killed(make_editor):
    editor = await make_editor()
    uri = editor.open("add.py", "# worker: slow 60\n" + ADD)
    await editor.until_status("degraded")
    editor.save(uri)
    await editor.until_status("busy")
    below = children_of(editor.pid)
    assert len(below) >= 3  # two readers, at least one loop
    os.kill(editor.pid, signal.SIGKILL)
    await editor.until(lambda: not alive(below), seconds=5, what="all children ended")


async def test_nothing_outlives_an_orderly_end(make_editor):
    editor = await make_editor()
    editor.open("add.py", ADD)
    await editor.until_status("degraded")
    below = children_of(editor.pid)
    assert await editor.stop() == 0
    await asyncio.sleep(0.1)
    assert not alive(below)


async def test_a_reader_that_dies_is_replaced_and_knows_the_text(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    readers = {pid for pid in children_of(editor.pid) if "reader_entry" in Path(f"/proc/{pid}/cmdline").read_text()}
    assert len(readers) == 2
    for pid in readers:
        os.kill(pid, signal.SIGKILL)
    editor.edit(uri, "def add(", "def add2(")
    editor.edit(uri, "add(x, y), x", "add2(x, y), x")
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    assert len(await editor.lenses(uri)) == 5


async def test_the_server_never_imports_torch(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    mapped = Path(f"/proc/{editor.pid}/maps").read_text()
    assert "libtorch" not in mapped and "libtriton" not in mapped and "tree_sitter" not in mapped
