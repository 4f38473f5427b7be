"""Lenses, hover, fixes, commands, the panel's questions, trust, progress and cancel."""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.lsp.texts import ADD, NAME_LINE, UNBOUND, many

CORRECT_GPU = "2.31x eager · 34.4 us · right 5/5"


async def test_lenses_stand_from_the_first_paint_and_never_move(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    first = await editor.lenses(uri)
    assert [line for line, _ in first] == [NAME_LINE - 1] * 5
    assert [title for _, title in first][:3] == ["Evaluate", "Thorough", "History"]
    bound = await editor.until(lambda: _lens(editor, uri, 4, "tutorial: n=1027"))
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    assert await editor.lenses(uri) == bound
    editor.edit(uri, "mask = i < n", "mask = i <")
    assert [line for line, _ in await editor.lenses(uri)] == [NAME_LINE - 1] * 5


async def _lens(editor, uri, number, title):
    lenses = await editor.lenses(uri)
    return lenses if lenses and lenses[number][1] == title else None


async def test_hover_has_card_unit_timer_and_n(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until(lambda: _contains(editor.hover(uri, NAME_LINE), "Compared as tutorial"))
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    card = await editor.hover(uri, NAME_LINE)
    for words in ("correct", "2.31x eager", "34.4 us", "n = 10", "timer scripted", "cold L2", "Scripted GPU",
                  "torch 9.9", "triton 9.9", "| n=1027 | 5/5 |", "row 1"):  # fmt: skip
        assert words in card, words
    assert await editor.hover(uri, 0) == ""


async def _contains(work, words):
    found = await work
    return found if words in found else None


async def test_hints_and_lenses_can_be_turned_off(make_editor):
    editor = await make_editor({"inlayHints": False, "codeLens": False}, gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until(lambda: editor.heard["odyssey/ledgerAppended"])
    assert await editor.hints(uri) == [] and await editor.lenses(uri) == []


async def test_an_unbound_kernel_gets_a_hint_with_a_fix_that_binds_it(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("lonely.py", UNBOUND)
    (found,) = await editor.until(lambda: [d for d in editor.diagnostics(uri) if d.code == "no-reference"])
    assert found.severity == types.DiagnosticSeverity.Hint
    with pytest.raises(JsonRpcException, match="no shapes"):
        await editor.command("odyssey.pickShape", {"uri": uri, "kernel": "lonely"})
    (fix,) = [each for each in await editor.actions(uri, found.range.start.line) if each.kind == "quickfix"]
    assert "starter reference" in fix.title and fix.edit is not None
    editor.apply_edit(fix.edit)
    assert "# odyssey:" in editor.texts[uri].text
    await editor.until(lambda: not editor.diagnostics(uri))
    lenses = await editor.until(lambda: editor.lenses(uri))
    assert lenses[4][1].startswith("comment: ")


async def test_the_judge_is_asked_for_an_unbound_kernel_and_says_why_not(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("lonely.py", UNBOUND)
    await editor.command("odyssey.evaluate", {"uri": uri, "kernel": "lonely"})
    await editor.until(lambda: [m for m in editor.client.messages if "no reference" in m.message])


async def test_commands_on_what_is_not_there_say_so(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    with pytest.raises(JsonRpcException, match="no kernel other"):
        await editor.command("odyssey.evaluate", {"uri": uri, "kernel": "other"})
    with pytest.raises(JsonRpcException, match="not open"):
        await editor.command("odyssey.evaluate", {"uri": editor.uri("no.py"), "kernel": "k"})
    with pytest.raises(JsonRpcException, match="no row 7"):
        await editor.command("odyssey.pinBaseline", {"seq": 7})
    with pytest.raises(JsonRpcException, match="no text"):
        await editor.command("odyssey.restore", {"sha": "0" * 64, "uri": uri})


async def test_an_untrusted_folder_gets_text_analysis_only(make_editor, tmp_path):
    log = tmp_path / "frames"
    editor = await make_editor(trusted=False, script={"SCRIPT_LOG": str(log)})
    uri = editor.open("add.py", ADD.replace("BLOCK=256", "BLOCK=250"))
    assert len(await editor.lenses(uri)) == 5
    editor.save(uri)
    await editor.until(lambda: editor.diagnostics(uri), what="text diagnostics")
    with pytest.raises(JsonRpcException, match="not trusted"):
        await editor.command("odyssey.evaluate", {"uri": uri, "kernel": "add_kernel"})
    await asyncio.sleep(0.5)
    assert not log.exists()
    status = await editor.until_status("degraded")
    assert "not trusted" in status.text
    editor.client.protocol.notify("odyssey/trust", {"trusted": True})
    await editor.until(log.exists, what="a worker after trust")
    editor.save(uri)
    await editor.until_hint(uri, "right 5/5")


async def test_progress_is_shown_and_cancel_ends_the_job(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: slow 30\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    reports = await editor.until(lambda: editor.client.progress_reports)
    token = next(iter(reports))
    await editor.until(lambda: len(editor.client.progress_reports[token]) > 2)
    kinds = [type(each.value if hasattr(each, "value") else each) for each in editor.client.progress_reports[token]]
    assert kinds[0] is types.WorkDoneProgressBegin or kinds
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token=token))
    await editor.until_status("idle", seconds=5)
    assert await editor.hints(uri) == []
    editor.edit(uri, "# worker: slow 30\n", "")
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)


async def test_stop_ends_everything(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: slow 30\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    await editor.until_status("busy")
    await editor.command("odyssey.stop", {})
    await editor.until_status("idle", seconds=5)


async def test_a_picked_shape_is_judged_and_remembered(make_editor):
    text = ADD.replace(
        "x = torch.rand(1027)\ny = torch.rand(1027)\nassert torch.allclose(add(x, y), x + y)\n",
        """
@triton.testing.perf_report(triton.testing.Benchmark(
    x_names=["size"], x_vals=[256, 1024, 4096], line_arg="provider", line_vals=["triton", "torch"],
    line_names=["Triton", "Torch"], ylabel="GB/s", plot_name="add", args={}))
def benchmark(size, provider):
    x = torch.rand(size)
    y = torch.rand(size)
    if provider == "torch":
        ms = triton.testing.do_bench(lambda: x + y)
    if provider == "triton":
        ms = triton.testing.do_bench(lambda: add(x, y))
    return ms
""",
    )
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", text)
    await editor.until(lambda: _lens(editor, uri, 4, "tutorial: size=4096 (1 of 3)"))
    answer = await editor.command("odyssey.pickShape", {"uri": uri, "kernel": "add_kernel", "case": "size=1024"})
    assert answer["current"] == "size=1024"
    await editor.until_hint(uri, CORRECT_GPU)
    assert "size=1024" in await editor.hover(uri, NAME_LINE)
    again = await make_editor(gpu=True)
    uri = again.open("add.py")
    await again.until(lambda: _lens(again, uri, 4, "tutorial: size=1024 (1 of 3)"))


async def test_restore_brings_a_text_back_as_an_edit(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    (row,) = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows
    editor.edit(uri, "x + y, mask", "x - y, mask")
    await editor.command("odyssey.restore", {"sha": row.sha, "uri": uri})
    assert editor.texts[uri].text == ADD
    assert await editor.hints(uri) == [CORRECT_GPU]


async def test_the_panels_questions(make_editor):
    editor = await make_editor(gpu=True)
    assert (await editor.request("odyssey/ledgerRows", {})).total == 0
    assert not (editor.workspace / ".odyssey").exists()
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    editor.edit(uri, "x + y, mask", "y + x, mask")
    editor.save(uri)
    rows = await editor.until(lambda: _rows(editor, uri, 2))
    assert [row.seq for row in rows] == [2, 1]
    assert rows[0].speedup_words == "2.31x" and rows[0].opponent == "eager" and rows[0].device_words == "34.4 us"
    assert rows[0].parents == [rows[1].sha] and rows[0].uri == uri and rows[0].foreign is False
    page = await editor.request("odyssey/ledgerRows", {"after": 1, "limit": 5})
    assert [row.seq for row in page.rows] == [2] and page.last_seq == 2
    found = await editor.request("odyssey/candidate", {"sha": rows[1].sha})
    assert found.text == ADD
    graph = await editor.request("odyssey/map", {"uri": uri, "kernel": "add_kernel"})
    assert [(edge.kind) for edge in graph.edges] == ["edit"] and len(graph.nodes) == 2
    plots = await editor.request("odyssey/plots", {"uri": uri})
    assert [point.y for point in plots.history.points] == [34.4, 34.4]
    both = await editor.request("odyssey/compare", {"a": rows[1].sha, "b": rows[0].sha})
    assert both.a_text == ADD and "runtime_us" in both.table_markdown.replace("\\", "")
    assert (await editor.request("odyssey/pin", {"seq": 1})).ok is True
    marks = editor.heard["odyssey/marks"][-1].marks
    assert [(mark.line, mark.verdict, mark.stale) for mark in marks] == [(NAME_LINE, "correct", False)]


async def _rows(editor, uri, count):
    rows = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows
    return rows if len(rows) >= count else None


async def test_history_is_a_markdown_document_in_other_editors(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    answer = await editor.command("odyssey.history", {"uri": uri, "kernel": "add_kernel"})
    assert answer["rows"] == 1
    (shown,) = await editor.until(lambda: editor.client.shown_documents)
    assert shown.uri == answer["uri"]


async def test_doctor_names_what_is_missing(make_editor):
    editor = await make_editor()
    report = await editor.command("odyssey.doctor", {})
    assert "no CUDA device" in report["text"] and "# Odyssey doctor" in report["markdown"]


async def test_typing_diagnostics_come_from_text_and_front_end_and_are_sent_once(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    editor.edit(uri, "import torch\n", "import torch\n# check: 12 scripted front end\n")
    (found,) = await editor.until(lambda: [d for d in editor.diagnostics(uri) if d.code == "front-end"])
    assert found.range.start.line == 11
    count = len([p for p in editor.client.diagnostics.get(uri, ()) if p.code == "front-end"])
    assert count == 1
    editor.edit(uri, "# check: 12 scripted front end\n", "# nothing\n")
    editor.edit(uri, "x + y, mask", "x  + y, mask")
    await editor.until(lambda: not [d for d in editor.diagnostics(uri) if d.code == "front-end"])


async def test_a_hundred_kernels_each_have_their_lens(make_editor):
    editor = await make_editor({"evaluate": "off"})
    uri = editor.open("many.py", many(100))
    assert len(await editor.lenses(uri)) == 500
    await editor.until(lambda: _lens(editor, uri, 4, "tutorial: size=1000"))
