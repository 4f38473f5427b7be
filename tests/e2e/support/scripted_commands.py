"""Owns the scripted server's commands: evaluate, propose with progress and cancel, guarded accept, restore."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from lsprotocol import types as t
from scripted_state import State, document, judge, plain, server, sha_of, status, world

STEPS = ("num_warps 4 -> 2", "num_warps 4 -> 8", "interleaved A/B")
STEP_S = 0.25


def whole(text: str) -> t.Range:
    """The range of a whole text."""
    return t.Range(t.Position(0, 0), t.Position(text.count("\n") + 1, 0))


@server.command("odyssey.evaluate")
async def evaluate(argument: Any) -> None:
    """Judge now."""
    await judge(plain(argument)["uri"], "command")


@server.command("odyssey.evaluateThorough")
async def evaluate_thorough(argument: Any) -> None:
    """Judge now; the script knows one mode only."""
    await judge(plain(argument)["uri"], "command")


@server.command("odyssey.propose")
async def propose(argument: Any) -> dict[str, Any]:
    """Start a search; answers at once, as the real server does."""
    given = plain(argument)
    source = document(given["uri"]).source
    if "num_warps=4" not in source:
        server.window_show_message(t.ShowMessageParams(t.MessageType.Info, "Odyssey: nothing to tune in this text"))
        return {"run_id": None}
    run_id = str(uuid.uuid4())
    State.search = asyncio.create_task(search(run_id, given["uri"], given["kernel"], source))
    return {"run_id": run_id}


async def search(token: str, uri: str, kernel: str, source: str) -> None:
    """Three steps with progress, then a proposal."""
    await server.work_done_progress.create_async(token)
    server.work_done_progress.begin(
        token, t.WorkDoneProgressBegin(title="Odyssey: proposing", percentage=0, cancellable=True)
    )
    State.cancelled = False
    parent = State.shown[uri][0] if uri in State.shown else None
    for number, step in enumerate(STEPS):
        server.work_done_progress.report(token, t.WorkDoneProgressReport(message=step, percentage=number * 33))
        await asyncio.sleep(STEP_S)
        if State.cancelled:
            server.work_done_progress.end(token, t.WorkDoneProgressEnd(message="cancelled"))
            return
    slower = world().append(
        "correct",
        source.replace("num_warps=4", "num_warps=2"),
        device_us=55.0,
        cause="search",
        author="tuner",
        parent=parent,
    )
    slower["buried"] = "slower than its parent"
    text = source.replace("num_warps=4", "num_warps=8")
    row = world().append("correct", text, device_us=29.4, cause="search", author="tuner", parent=parent)
    server.work_done_progress.end(token, t.WorkDoneProgressEnd(message="done"))
    server.protocol.notify("odyssey/ledgerAppended", {"seq": row["seq"]})
    proposal = {
        "proposal_id": str(uuid.uuid4()),
        "uri": uri,
        "kernel": kernel,
        "title": "softmax_kernel: 1.41x faster, right 5/5 (num_warps 4 -> 8)",
        "base_sha": sha_of(source),
        "candidate_sha": row["sha"],
        "version": document(uri).version,
        "new_text": text,
        "seq": row["seq"],
        "change": "num_warps 4 -> 8",
    }
    State.proposals[proposal["proposal_id"]] = proposal
    server.protocol.notify("odyssey/proposalReady", proposal)


@server.command("odyssey.accept")
async def accept(argument: Any) -> None:
    """Apply, if the text is still the one that the proposal was made from."""
    proposal = State.proposals.pop(plain(argument)["proposal_id"])
    uri = proposal["uri"]
    doc = document(uri)
    if doc.version != proposal["version"] or sha_of(doc.source) != proposal["base_sha"]:
        server.window_show_message(
            t.ShowMessageParams(t.MessageType.Warning, "Odyssey: the text changed since; nothing was applied")
        )
        return
    edit = t.TextDocumentEdit(
        t.OptionalVersionedTextDocumentIdentifier(uri=uri, version=doc.version),
        [t.TextEdit(whole(doc.source), proposal["new_text"])],
    )
    await server.workspace_apply_edit_async(
        t.ApplyWorkspaceEditParams(t.WorkspaceEdit(document_changes=[edit]), label=proposal["change"])
    )


@server.command("odyssey.reject")
async def reject(argument: Any) -> None:
    """Bury the candidate with the person's reason."""
    given = plain(argument)
    proposal = State.proposals.pop(given["proposal_id"])
    world().rows[proposal["seq"] - 1]["buried"] = given.get("reason") or "rejected"
    server.protocol.notify("odyssey/ledgerAppended", {"seq": proposal["seq"]})


@server.command("odyssey.restore")
async def restore(argument: Any) -> None:
    """Bring a recorded text back as an edit."""
    given = plain(argument)
    doc = document(given["uri"])
    edit = t.WorkspaceEdit(changes={given["uri"]: [t.TextEdit(whole(doc.source), world().texts[given["sha"]])]})
    await server.workspace_apply_edit_async(t.ApplyWorkspaceEditParams(edit, label="restore"))


@server.command("odyssey.stop")
async def stop(argument: Any) -> None:
    """Stop the search."""
    State.cancelled = True


@server.command("odyssey.pinBaseline")
async def pin_baseline(argument: Any) -> None:
    """Remember the baseline."""
    world().pinned = plain(argument)["seq"]


@server.command("odyssey.pickShape")
async def pick_shape(argument: Any) -> None:
    """The script knows one shape."""


@server.command("odyssey.history")
async def history(argument: Any) -> None:
    """Handled by the editor."""


@server.command("odyssey.restartWorkers")
async def restart_workers(argument: Any) -> None:
    """Nothing to restart."""
    status("starting", "starting")
    await asyncio.sleep(0.1)
    status()


@server.command("odyssey.doctor")
async def doctor(argument: Any) -> dict[str, Any]:
    """A report."""
    return {"text": f"Odyssey doctor (scripted)\n\nGPU: none\neditor python: {State.editor_python}\n"}
