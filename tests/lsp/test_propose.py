"""A proposal's whole way in the real server over stdio, on a scripted worker with a clock."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from handlers.from_lsp import path_of
from tests.lsp.texts import ADD, NAME_LINE
from tests.support.editor import Editor
from tests.support.tuned_worker import tuned_python

TUNED = ADD.replace("n, BLOCK=256)", "n, BLOCK=256, num_warps=4)")
FASTER = TUNED.replace("num_warps=4", "num_warps=8")
BASE_HINT = "2.00x eager · 50.0 us · right 5/5"
FASTER_HINT = "2.50x eager · 40.0 us · right 5/5 · faster than the last save (1.25x)"
TITLE = "add_kernel: 1.25x faster than your text, 40.0 us, right 5/5 (num_warps 4 -> 8)"


@pytest.fixture
def make(make_editor, tmp_path):
    """Makes an editor on the worker with a clock, with the file open and its verdict on the line."""

    async def made(settings=None, *, text=TUNED, judged=BASE_HINT, proposals=True, **script):
        folder = tmp_path / f"tuned{len(list(tmp_path.glob('tuned*')))}"
        folder.mkdir()
        python = tuned_python(folder, **script)
        editor = await make_editor({"python": python, **(settings or {})}, proposals=proposals)
        uri = editor.open("add.py", text)
        if judged:
            editor.save(uri)
            await editor.until_hint(uri, judged)
        return editor, uri

    return made


async def propose(editor, uri):
    return await editor.command("odyssey.propose", {"uri": uri, "kernel": "add_kernel"})


async def ready(editor, number=1):
    heard = editor.heard["odyssey/proposalReady"]
    await editor.until(lambda: len(heard) >= number, what="a proposal")
    return heard[number - 1]


async def rows(editor, uri):
    return (await editor.request("odyssey/ledgerRows", {"uri": uri})).rows


async def nodes(editor, uri):
    return {
        node.sha: node for node in (await editor.request("odyssey/map", {"uri": uri, "kernel": "add_kernel"})).nodes
    }


def reports(editor, token):
    """The progress of one run: begin, reports and end, in order."""
    return [getattr(each, "value", each) for each in editor.client.progress_reports.get(token, [])]


async def ended(editor, token):
    """All that was reported on a run, once it has ended."""
    await editor.until(lambda: any(r.kind == "end" for r in reports(editor, token)), what="the end of a run")
    return reports(editor, token)


def said(editor):
    return [message.message for message in editor.client.messages]


async def refusal_of(editor, uri, **argument):
    with pytest.raises(JsonRpcException) as caught:
        await editor.command("odyssey.propose", {"uri": uri, "kernel": "add_kernel", **argument})
    return caught.value.message


async def test_from_the_action_to_an_accepted_edit_whose_verdict_is_fresh_at_once(make, tmp_path):
    log = tmp_path / "jobs"
    editor, uri = await make(TUNED_LOG=str(log), TUNED_SLOW="0.1")
    (action,) = [each for each in await editor.actions(uri, NAME_LINE) if each.title.startswith("Propose")]
    assert action.title == "Propose optimization of add_kernel" and action.command is not None
    (argument,) = action.command.arguments
    answer = await editor.command(action.command.command, argument)
    assert answer["run_id"] and answer["base_sha"] == argument["base_sha"]
    proposal = await ready(editor)
    assert proposal.title == TITLE and proposal.new_text == FASTER and proposal.base_sha == answer["base_sha"]
    assert (proposal.uri, proposal.kernel, proposal.version, proposal.change) == (
        uri,
        "add_kernel",
        1,
        "num_warps 4 -> 8",
    )
    shown = await ended(editor, answer["run_id"])
    assert shown[0].kind == "begin" and shown[0].cancellable
    assert all(report.message.startswith("add_kernel: tuner: ") for report in shown[:-2])
    assert shown[-2].message.startswith("add_kernel: interleaved A/B against your text: num_warps 4 -> 8")
    assert editor.texts[uri].text == TUNED, "nothing is edited before the person has said so"

    jobs = len(log.read_text().splitlines())
    accepted = await editor.command("odyssey.accept", {"proposal_id": proposal.proposal_id})
    assert accepted["applied"] and editor.texts[uri].text == FASTER
    await editor.until_hint(uri, FASTER_HINT)
    editor.save(uri)
    await asyncio.sleep(0.3)
    assert await editor.hints(uri) == [FASTER_HINT]
    assert len(log.read_text().splitlines()) == jobs, "what was measured is not measured again"


async def test_every_candidate_stands_on_the_map_with_its_reason_and_a_rejected_one_with_the_persons(make):
    editor, uri = await make()
    await propose(editor, uri)
    proposal = await ready(editor)
    found = await rows(editor, uri)
    by_tuner = [row for row in found if row.author == "tuner"]
    assert len(by_tuner) >= 5 and all(row.cause == "search" and row.parents for row in by_tuner)
    assert [row.seq for row in found if row.sha == proposal.candidate_sha][0] == proposal.seq
    drawn = await nodes(editor, uri)
    assert len(drawn) == 1 + len({row.sha for row in by_tuner})
    assert drawn[proposal.candidate_sha].buried is None and drawn[proposal.candidate_sha].best
    assert drawn[proposal.base_sha].author == "person"
    others = [node for sha, node in drawn.items() if sha not in (proposal.candidate_sha, proposal.base_sha)]
    assert others and all(node.buried.startswith("no faster: ") for node in others)
    assert "warps 4 -" in drawn[proposal.candidate_sha].hover_markdown

    bells = len(editor.heard["odyssey/ledgerAppended"])
    await editor.command("odyssey.reject", {"proposal_id": proposal.proposal_id, "reason": "too many warps\n for us"})
    await editor.until(lambda: len(editor.heard["odyssey/ledgerAppended"]) > bells)
    assert (await nodes(editor, uri))[proposal.candidate_sha].buried == "rejected: too many warps for us"
    assert editor.texts[uri].text == TUNED and await editor.hints(uri) == [BASE_HINT]
    with pytest.raises(JsonRpcException, match="was rejected already"):
        await editor.command("odyssey.accept", {"proposal_id": proposal.proposal_id})


async def test_a_proposal_is_applied_to_no_other_text_than_its_own_and_what_follows_it_descends_from_it(make):
    editor, uri = await make()
    await propose(editor, uri)
    proposal = await ready(editor)
    accept = {"proposal_id": proposal.proposal_id}
    editor.edit(uri, "import torch\n", "import torch  # mine\n")
    with pytest.raises(JsonRpcException, match="The text changed since .* nothing was applied"):
        await editor.command("odyssey.accept", accept)
    assert "num_warps=4" in editor.texts[uri].text and "# mine" in editor.texts[uri].text
    editor.save(uri)
    await editor.until_hint(uri, BASE_HINT)
    assert (await rows(editor, uri))[0].parents == [proposal.base_sha], "no candidate that was never accepted"

    editor.edit(uri, "import torch  # mine\n", "import torch\n")
    editor.applies = False
    with pytest.raises(JsonRpcException, match="did not apply"):
        await editor.command("odyssey.accept", accept)
    editor.applies = True
    await editor.command("odyssey.accept", accept)
    assert editor.texts[uri].text == FASTER
    with pytest.raises(JsonRpcException, match="was accepted already"):
        await editor.command("odyssey.accept", accept)

    editor.edit(uri, "import torch\n", "import torch  # then\n")
    editor.save(uri)
    await editor.until_hint(uri, "2.50x eager · 40.0 us · right 5/5")
    await editor.until(lambda: _parents_are(editor, uri, [proposal.candidate_sha]))


async def _parents_are(editor, uri, parents):
    return (await rows(editor, uri))[0].parents == parents


async def test_a_search_is_cancelled_by_its_progress_bar_and_leaves_what_it_judged(make, tmp_path):
    log = tmp_path / "jobs"
    editor, uri = await make(TUNED_SLOW="0.4", TUNED_LOG=str(log))
    run = (await propose(editor, uri))["run_id"]
    await editor.until(lambda: any("num_warps" in (r.message or "") for r in reports(editor, run)))
    assert (await propose(editor, uri))["run_id"] == run, "the same question twice is one search"
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token=run))
    await ended(editor, run)
    before = log.read_text()
    await asyncio.sleep(0.6)
    assert log.read_text().count('"start"') == before.count('"start"'), "no further candidate is judged"
    assert not editor.heard["odyssey/proposalReady"] and not said(editor)
    await propose(editor, uri)
    await ready(editor)
    assert all(row.author in ("person", "tuner") for row in await rows(editor, uri))


async def test_a_save_goes_first_and_the_interrupted_candidate_is_judged_again(make, tmp_path):
    log = tmp_path / "jobs"
    editor, uri = await make(TUNED_SLOW="1.0", TUNED_LOG=str(log))
    other = editor.open("other.py", ADD)
    await editor.until(lambda: editor.lenses(other))
    run = (await propose(editor, uri))["run_id"]
    await editor.until(lambda: '"cause": "search"' in log.read_text())
    editor.save(other)
    await editor.until_hint(other, "right")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    order = [(line["what"], line["cause"]) for line in lines]
    at = order.index(("cancelled", "search"))
    assert order[at + 1 : at + 3] == [("start", "save"), ("end", "save")]
    again = f'"what": "start", "cause": "search", "job": "{lines[at]["job"]}"'
    await editor.until(lambda: log.read_text().count(again) == 2)
    await editor.command("odyssey.stop", {"run_id": run})
    await editor.until_status("idle")
    assert not said(editor)


async def test_in_other_editors_a_message_shows_the_diff_rejects_it_or_applies_it(make):
    editor, uri = await make(proposals=False)
    editor.answers = ["no such choice"]
    await ended(editor, (await propose(editor, uri))["run_id"])
    await editor.until(lambda: len(editor.asked) == 1)
    editor.answers = ["Show", "Reject"]
    await propose(editor, uri)
    await editor.until(lambda: len(editor.asked) == 3)
    await editor.until(lambda: _rejected(editor, uri))
    assert editor.texts[uri].text == TUNED and not editor.heard["odyssey/proposalReady"]
    assert [[action.title for action in ask.actions] for ask in editor.asked[1:]] == [
        ["Show", "Apply"],
        ["Apply", "Reject"],
    ]
    (shown,) = editor.client.shown_documents
    diff = Path(path_of(shown.uri)).read_text()
    assert diff.startswith("--- a/add.py\n+++ b/add.py\n")
    assert "-    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256, num_warps=4)\n" in diff
    assert "+    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256, num_warps=8)\n" in diff

    editor.answers = ["Apply"]
    await propose(editor, uri)
    await editor.until(lambda: editor.texts[uri].text == FASTER, what="the edit")
    assert editor.asked[-1].message == TITLE
    await editor.until_hint(uri, FASTER_HINT)


async def _rejected(editor, uri):
    return any((node.buried or "").startswith("rejected") for node in (await nodes(editor, uri)).values())


async def test_without_a_gain_the_reason_is_said(make):
    editor, uri = await make(TUNED_AB="1.03")
    await propose(editor, uri)
    await editor.until(lambda: said(editor))
    assert "less than 5 %" in said(editor)[0] and "The map shows" in said(editor)[0]
    drawn = await nodes(editor, uri)
    assert any("1.030" in (node.buried or "") for node in drawn.values())
    assert not editor.heard["odyssey/proposalReady"] and editor.diagnostics(uri) == []


async def test_a_text_without_a_verdict_is_judged_first_and_a_wrong_one_is_refused(make, tmp_path):
    log = tmp_path / "jobs"
    editor, uri = await make({"evaluate": "off"}, judged="", TUNED_LOG=str(log))
    await editor.until(lambda: editor.lenses(uri))
    assert not [each for each in await editor.actions(uri, NAME_LINE) if each.title.startswith("Propose")]
    assert "Propose" in [title for _, title in await editor.lenses(uri)]
    await propose(editor, uri)
    proposal = await ready(editor)
    assert json.loads(log.read_text().splitlines()[0])["cause"] == "command"
    assert await editor.hints(uri) == [BASE_HINT]
    base = [row for row in await rows(editor, uri) if row.sha == proposal.base_sha]
    assert [row.author for row in base] == ["person"]

    wrong = editor.open("wrong.py", "# worker: wrong\n" + TUNED)
    await propose(editor, wrong)
    (message,) = await editor.until(lambda: said(editor))
    assert "add_kernel: only a kernel that is right can be made faster" in message
    assert message == f"{await refusal_of(editor, wrong)}", "now that the verdict stands it is said at once"
    assert "There is no kernel nothing" in await refusal_of(editor, uri, kernel="nothing")


async def test_a_machine_without_a_card_says_what_is_missing_and_what_would_help(make):
    editor, uri = await make(judged="right 5/5 (interpreted, no GPU)", SCRIPT_GPU="")
    message = await refusal_of(editor, uri)
    assert "a proposal needs times, and nothing was timed: this machine has no CUDA device" in message
    assert "Remote-SSH" in message


async def test_an_untrusted_folder_is_not_searched(make_editor, tmp_path):
    editor = await make_editor({"python": tuned_python(tmp_path)}, trusted=False)
    uri = editor.open("add.py", TUNED)
    assert "not trusted" in await refusal_of(editor, uri)


async def test_a_proposal_outlives_the_server(make, make_editor, tmp_path):
    editor, uri = await make()
    await propose(editor, uri)
    proposal = await ready(editor)
    assert await editor.stop() == 0
    editor.client._server = None
    again = await make_editor({"python": tuned_python(tmp_path)}, proposals=True)
    with pytest.raises(JsonRpcException, match="no such proposal"):
        await again.command("odyssey.accept", {"proposal_id": "0123456789abcdef-" + proposal.candidate_sha[:12]})
    await again.command("odyssey.accept", {"proposal_id": proposal.proposal_id})
    assert (again.workspace / "add.py").read_text() == FASTER, "a file that is not open is edited too"
    uri = again.open("add.py")
    await again.until_hint(uri, FASTER_HINT)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "triton")), reason="needs torch and triton"
)
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a card")
async def test_the_real_worker_without_a_card_is_refused_by_the_action(tmp_path, workspace):
    editor = Editor(workspace, state=tmp_path / "state")
    await editor.start({"python": sys.executable}, proposals=True)
    try:
        uri = editor.open("add.py", TUNED)
        editor.save(uri)
        await editor.until_hint(uri, "right", seconds=120)
        (action,) = [each for each in await editor.actions(uri, NAME_LINE) if each.title.startswith("Propose")]
        assert action.command is not None
        with pytest.raises(
            JsonRpcException, match="nothing was timed: this machine has no CUDA device. Open the folder"
        ):
            await editor.command(action.command.command, action.command.arguments[0])
        assert [row.author for row in await rows(editor, uri)] == ["person"]
    finally:
        assert await editor.stop() == 0
