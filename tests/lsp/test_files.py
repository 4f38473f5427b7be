"""Texts and files as they really are: encodings, odd names, files that vanish, helpers, agents, checkouts."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest
from lsprotocol import types

from tests.lsp.texts import ADD, NAME_LINE

CORRECT_GPU = "2.31x eager · 34.4 us · right 5/5"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("crlf.py", ADD.replace("\n", "\r\n")),
        ("cr.py", ADD.replace("\n", "\r")),
        ("bom.py", ADD),
        ("with space/a b.py", ADD),
        ("per%20cent/100%.py", ADD),
        ("ünï/カーネル😀.py", ADD),
        ("hash#/what?.py", ADD),
    ],
)
async def test_odd_names_and_line_ends(make_editor, name, text):
    editor = await make_editor(gpu=True)
    uri = editor.open(name, text)
    if name == "bom.py":
        (editor.workspace / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    else:
        editor.save(uri)
        await editor.until_hint(uri, CORRECT_GPU)
        (hint,) = await editor.raw_hints(uri)
        assert hint.position.line == NAME_LINE
    if name == "bom.py":
        editor.client.text_document_did_save(
            types.DidSaveTextDocumentParams(text_document=types.TextDocumentIdentifier(uri=uri))
        )
        await editor.until_hint(uri, CORRECT_GPU)
    rows = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows
    assert [row.file for row in rows] == [str(editor.workspace / name)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_columns_in_each_encoding(make_editor, encoding):
    editor = await make_editor(gpu=True, encodings=[encoding])
    assert editor.capabilities.capabilities.position_encoding == encoding
    line = "def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # 漢字 😀"
    text = ADD.replace("def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):", line)
    uri = editor.open("add.py", text)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    (hint,) = await editor.raw_hints(uri)
    units = {"utf-8": len(line.encode()), "utf-16": len(line.encode("utf-16-le")) // 2, "utf-32": len(line)}
    assert hint.position == types.Position(NAME_LINE, units[encoding])


async def test_invalid_utf8_on_disk_and_in_the_protocol(make_editor):
    editor = await make_editor(gpu=True)
    (editor.workspace / "bad.py").write_bytes(ADD.encode() + b"# \xff\xfe\x00 bad\n")
    uri = editor.open("bad.py")
    assert len(await editor.lenses(uri)) == 5
    editor.replace(uri, ADD + "# \ud83d\n")
    assert len(await editor.lenses(uri)) == 5


async def test_huge_and_hopeless_texts(make_editor):
    editor = await make_editor(trusted=False)
    huge = editor.open("huge.py", "x = 1\n" * 1_200_000)
    deep = editor.open("deep.py", "(" * 100_000)
    half = editor.open("half.py", "@triton.jit\ndef k(x, n:\n" + '"""' + "a" * 50_000)
    null = editor.open("null.py", "x = 1\0\n@triton.jit\ndef k(): pass\n")
    for uri in (huge, deep, half, null):
        await editor.lenses(uri)
        assert await editor.hints(uri) == []
    uri = editor.open("add.py", ADD)
    assert len(await editor.lenses(uri)) == 5


async def test_a_file_deleted_or_renamed_while_it_is_judged(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: slow 1\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    await editor.until_status("busy")
    (editor.workspace / "add.py").rename(editor.workspace / "other.py")
    editor.close(uri)
    await editor.until(lambda: editor.heard["odyssey/ledgerAppended"])
    uri = editor.open("third.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)


async def test_an_unsaved_helper_is_laid_over_and_an_edit_of_it_judges_its_kernels_again(make_editor):
    editor = await make_editor(gpu=True)
    helper = editor.workspace / "helper.py"
    helper.write_text("FACTOR = 1\n")
    text = f"# worker: reads {helper}\nimport helper\n" + ADD
    uri = editor.open("add.py", text)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    other = editor.open("helper.py")
    editor.edit(other, "FACTOR = 1", "FACTOR = 2")
    editor.save(other)
    rows = await editor.until(lambda: _rows(editor, uri, 2))
    assert rows[0].cause == "watch" and rows[0].sha == rows[1].sha
    await editor.until_hint(uri, CORRECT_GPU)


async def test_a_helper_changed_by_another_program_makes_the_verdict_old_but_runs_nothing(make_editor):
    editor = await make_editor(gpu=True)
    helper = editor.workspace / "helper.py"
    helper.write_text("FACTOR = 1\n")
    uri = editor.open("add.py", f"# worker: reads {helper}\nimport helper\n" + ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    helper.write_text("FACTOR = 3\n")
    assert await editor.until_hint(uri, "older text") == f"older text: {CORRECT_GPU}"
    assert "helper.py has changed" in (await editor.hover(uri, NAME_LINE + 2)).replace("\\", "")
    await asyncio.sleep(0.5)
    assert len(editor.heard["odyssey/ledgerAppended"]) == 1


async def test_an_agents_edit_of_an_opened_file_is_judged_and_a_strangers_file_is_not(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    editor.close(uri)
    (editor.workspace / "add.py").write_text(ADD + "# an agent was here\n")
    (editor.workspace / "stranger.py").write_text(ADD)
    rows = await editor.until(lambda: _rows(editor, uri, 1))
    assert rows[0].cause == "watch"
    await asyncio.sleep(0.6)
    assert len(editor.heard["odyssey/ledgerAppended"]) == 1


async def test_watch_globs_judge_files_that_were_never_opened(make_editor):
    editor = await make_editor({"watch": ["kernels/**/*.py"]}, gpu=True)
    inside = editor.workspace / "kernels" / "deep"
    inside.mkdir(parents=True)
    (inside / "add.py").write_text(ADD)
    (editor.workspace / "add.py").write_text(ADD)
    await editor.until(lambda: editor.heard["odyssey/ledgerAppended"])
    await asyncio.sleep(0.5)
    rows = (await editor.request("odyssey/ledgerRows", {})).rows
    assert [row.file for row in rows] == [str(inside / "add.py")]


async def test_a_git_checkout_runs_nothing(make_editor, workspace):
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=workspace, check=True,
            capture_output=True,
        )  # fmt: skip

    git("init", "-q", "-b", "main")
    (workspace / "add.py").write_text(ADD)
    git("add", "add.py")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "stranger")
    (workspace / "add.py").write_text(ADD + "# a stranger's code\n")
    git("commit", "-q", "-a", "-m", "two")
    git("checkout", "-q", "main")
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py")
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    row = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows[0]
    editor.close(uri)
    git("checkout", "-q", "stranger")
    await asyncio.sleep(1.2)
    assert len(editor.heard["odyssey/ledgerAppended"]) == 1
    (workspace / "add.py").write_text(ADD + "# an agent's code\n")
    await editor.until(lambda: len(editor.heard["odyssey/ledgerAppended"]) == 2)
    assert row.cause == "save"


async def test_an_unsaved_buffer_wins_over_the_disk(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    editor.edit(uri, "x + y, mask", "y + x, mask")
    (editor.workspace / "add.py").write_text("# worker: wrong\n" + ADD)
    await asyncio.sleep(0.8)
    assert editor.heard["odyssey/ledgerAppended"] == []


async def test_symbolic_links_that_go_round_in_circles(make_editor):
    editor = await make_editor({"watch": ["**/*.py"]}, gpu=True)
    os.symlink(editor.workspace, editor.workspace / "round")
    os.symlink(editor.workspace / "self.py", editor.workspace / "self.py")
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)


async def test_another_windows_row_rings_the_bell(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    other = await make_editor(gpu=True)
    uri = other.open("second.py", ADD)
    other.save(uri)
    await other.until_hint(uri, CORRECT_GPU)
    await editor.until(lambda: [each for each in editor.heard["odyssey/ledgerAppended"] if each.seq == 2], seconds=5)


async def test_a_workspace_that_cannot_be_written_keeps_its_ledger_elsewhere(make_editor):
    editor = await make_editor(gpu=True)
    (editor.workspace / ".odyssey").write_text("not a folder")
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)


async def _rows(editor, uri, count):
    rows = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows
    return rows if len(rows) >= count else None
