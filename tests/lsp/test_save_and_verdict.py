"""From a saved text to a verdict on its line, with a scripted worker: what is shown, when, for which text."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from tests.lsp.texts import ADD, NAME_LINE, many

CORRECT_GPU = "2.31x eager · 34.4 us · right 5/5"


async def test_save_shows_the_verdict_at_the_line_end(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    assert await editor.hints(uri) == []
    editor.save(uri)
    assert await editor.until_hint(uri, "2.31x") == CORRECT_GPU
    (hint,) = await editor.raw_hints(uri)
    assert hint.position == types.Position(NAME_LINE, len(ADD.splitlines()[NAME_LINE]))
    assert editor.heard["odyssey/ledgerAppended"][0].seq == 1
    assert editor.diagnostics(uri) == []


async def test_without_a_gpu_no_figure_is_invented(make_editor):
    editor = await make_editor()
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    assert await editor.until_hint(uri, "right") == "right 5/5 (interpreted, no GPU)"
    status = await editor.until_status("degraded")
    assert status.card is None and "no GPU" in status.text


async def test_an_edit_greys_the_verdict_at_once_and_undo_brings_it_back(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    editor.edit(uri, "x + y, mask", "y + x, mask")
    assert await editor.hints(uri) == [f"older text: {CORRECT_GPU}"]
    editor.edit(uri, "y + x, mask", "x + y, mask")
    assert await editor.hints(uri) == [CORRECT_GPU]


async def test_lines_inserted_above_move_the_hint_before_any_analysis(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    editor.edit(uri, "import torch\n", "import torch\n\n\n")
    (hint,) = await editor.raw_hints(uri)
    assert hint.position.line == NAME_LINE + 2


async def test_a_wrong_kernel_gets_an_error_on_its_line_which_fades_when_the_text_moves_on(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: wrong\n" + ADD)
    editor.save(uri)
    await editor.until_hint(uri, "wrong")
    (found,) = await editor.until(lambda: editor.diagnostics(uri))
    assert found.severity == types.DiagnosticSeverity.Error
    assert found.range.start == types.Position(NAME_LINE + 1, 4)
    assert "max abs error 0.5 at [0, 7]" in found.message
    editor.edit(uri, "import torch\n", "import torch  # x\n")
    (older,) = await editor.until(lambda: [d for d in editor.diagnostics(uri) if d.message.startswith("older text: ")])
    assert older.severity == types.DiagnosticSeverity.Hint
    assert list(older.tags or ()) == [types.DiagnosticTag.Unnecessary]


async def test_a_compile_error_stands_on_its_line(make_editor):
    editor = await make_editor()
    uri = editor.open("add.py", "# worker: compile_error 10\n" + ADD)
    editor.save(uri)
    await editor.until_hint(uri, "does not compile")
    (found,) = editor.diagnostics(uri)
    assert (found.range.start.line, found.code) == (9, "compile-error")


async def test_the_newest_text_wins_and_an_old_verdict_is_never_shown_for_it(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: slow 30\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    await editor.until_status("busy")
    editor.edit(uri, "# worker: slow 30\n", "# worker: wrong\n")
    editor.save(uri)
    assert (await editor.until_hint(uri, "wrong", seconds=10)).startswith("wrong (right 0/5)")
    rows = await editor.request("odyssey/ledgerRows", {"uri": uri})
    assert [row.verdict for row in rows.rows] == ["incorrect"]


async def test_saving_twice_judges_once(make_editor, tmp_path):
    log = tmp_path / "frames"
    editor = await make_editor(gpu=True, script={"SCRIPT_LOG": str(log)})
    uri = editor.open("add.py", "# worker: slow 0.5\n" + ADD)
    await editor.until_status("idle")
    editor.save(uri)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    editor.save(uri)
    await asyncio.sleep(0.7)
    assert log.read_text().count('"frame": "evaluate"') == 1


async def test_evaluate_judges_the_unsaved_text_and_measures_again(make_editor):
    editor = await make_editor({"evaluate": "off"}, gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await asyncio.sleep(0.5)
    assert await editor.hints(uri) == []
    editor.edit(uri, "x + y, mask", "y + x, mask")
    answer = await editor.command("odyssey.evaluate", {"uri": uri, "kernel": "add_kernel"})
    assert answer["started"] is True
    await editor.until_hint(uri, CORRECT_GPU)
    await editor.command("odyssey.evaluateThorough", {"uri": uri, "kernel": "add_kernel"})
    rows = await editor.until(lambda: _rows(editor, uri, 2))
    assert [row.mode for row in rows] == ["thorough", "fast"]


async def test_pause_judges_unsaved_text_after_a_quiet_second(make_editor):
    editor = await make_editor({"evaluate": "pause"}, gpu=True)
    uri = editor.open("add.py", ADD)
    await editor.until_status("idle")
    editor.edit(uri, "x + y, mask", "y + x, mask")
    await editor.until_hint(uri, CORRECT_GPU)
    assert editor.heard["odyssey/ledgerAppended"] != []
    rows = await editor.until(lambda: _rows(editor, uri, 1))
    assert rows[0].cause == "pause"


async def test_a_second_start_shows_what_the_ledger_knows_without_running_anything(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    again = await make_editor(gpu=True)
    uri = again.open("add.py")
    await again.until_hint(uri, CORRECT_GPU)
    assert again.heard["odyssey/ledgerAppended"] == []
    assert "Reused" in await again.hover(uri, NAME_LINE)


async def test_a_verdict_of_another_text_is_shown_as_older_at_the_next_start(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    editor.close(uri)
    again = await make_editor(gpu=True)
    uri = again.open("add.py", ADD + "# more\n", write=False)
    assert await again.until_hint(uri, "2.31x") == f"older text: {CORRECT_GPU}"


async def test_the_comparison_with_the_text_before_is_a_row_and_then_stands_in_the_hint(make_editor):
    editor = await make_editor(gpu=True)
    uri = editor.open("add.py", "# worker: compares yes\n" + ADD)
    editor.save(uri)
    await editor.until_hint(uri, CORRECT_GPU)
    editor.edit(uri, "x + y, mask", "y + x, mask")
    editor.save(uri)
    assert await editor.until_hint(uri, "faster") == f"{CORRECT_GPU} · faster than the last save (1.08x)"
    rows = await editor.until(lambda: _rows(editor, uri, 3))
    assert [row.seq for row in rows] == [3, 2, 1] and rows[0].sha == rows[1].sha != rows[2].sha
    assert "interval 1.05x to 1.11x, n = 40" in await editor.hover(uri, NAME_LINE + 1)


async def test_opponents_arrive_later_and_the_headline_is_against_the_strongest(make_editor):
    editor = await make_editor(gpu=True, script={"SCRIPT_OPPONENTS": "1"})
    uri = editor.open("add.py", ADD)
    editor.save(uri)
    await editor.until_hint(uri, "1.16x torch.compile default · 34.4 us · right 5/5")
    rows = await editor.until(lambda: _rows(editor, uri, 2))
    assert [row.opponent for row in rows] == ["torch.compile default", "eager"]


async def test_a_file_of_many_kernels_is_judged_where_it_was_edited_first(make_editor, tmp_path):
    editor = await make_editor({"evaluate": "off"}, gpu=True)
    uri = editor.open("many.py", many(5))
    await editor.until_status("idle")
    await editor.until(lambda: editor.lenses(uri))
    editor.edit(uri, "* 4, mask", "* 4.0, mask")
    editor.configure(evaluate="save")
    await asyncio.sleep(0.4)
    editor.save(uri)
    rows = await editor.until(lambda: _rows(editor, uri, 5))
    assert rows[-1].kernel == "kernel_3"
    assert {row.kernel for row in rows} == {f"kernel_{number}" for number in range(5)}


async def _rows(editor, uri, count):
    rows = (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows
    return rows if len(rows) >= count else None
