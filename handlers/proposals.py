"""Owns a proposal's way to the person and back: offered, shown, accepted, rejected. Never searches, never judges."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from evalcore.fingerprint import sha256_text
from evalcore.jobs import Refusal
from handlers import to_lsp
from handlers.from_lsp import path_of
from server import words
from server.ledger.store import LedgerUnusable
from server.lines import LineIndex
from server.lsp import ext
from server.lsp.language_server import OdysseyServer, RequestFailed
from server.project import read_text
from server.proposals import OpenProposal, cannot_apply, unified_diff
from server.signals import ProposalMade, Signal

SHOW, APPLY, REJECT = "Show", "Apply", "Reject"

_TASKS: set[asyncio.Task[None]] = set()
"""Offers that wait for an answer; the event loop alone would let them be collected."""


async def propose(ls: OdysseyServer, argument: ext.KernelArgument) -> dict[str, Any]:
    """Begin to look for a faster text of what is on the screen; answers at once with the run's id."""
    path = path_of(argument.uri)
    await ls.session.keystrokes.settled(path)
    plan = await ls.session.proposing.ask(path, argument.kernel)
    if isinstance(plan, Refusal):
        raise RequestFailed(f"{argument.kernel}: {words.refusal_words(plan)}")
    return {"run_id": plan.run_id, "kernel": plan.job.kernel, "base_sha": plan.job.kernel_sha}


async def accept(ls: OdysseyServer, argument: ext.ProposalArgument) -> dict[str, Any]:
    """Let the editor apply a proposal, if the text is still the one that it was made from."""
    await _apply(ls, await _open(ls, argument.proposal_id))
    return {"applied": True}


async def reject(ls: OdysseyServer, argument: ext.ProposalArgument) -> dict[str, Any]:
    """Bury a candidate with the person's reason."""
    await _reject(ls, await _open(ls, argument.proposal_id), argument.reason)
    return {"ok": True}


def key(ls: OdysseyServer, params: ext.KeyParams) -> None:
    """The model's key, kept in memory alone; the next search's model gets it."""
    ls.session.proposing.key = params.key or ""


def offering(ls: OdysseyServer) -> Callable[[Signal], None]:
    """What hears the session and brings each proposal before the person."""

    def hear(signal: Signal) -> None:
        if not isinstance(signal, ProposalMade) or not ls.protocol.initialized:
            return
        if ls.shows_proposals:
            ls.protocol.notify(ext.PROPOSAL_READY, ext.plain(_ready(ls, signal.proposal)))
        else:
            task = asyncio.ensure_future(_ask(ls, signal.proposal))
            _TASKS.add(task)
            task.add_done_callback(_TASKS.discard)

    return hear


def _ready(ls: OdysseyServer, proposal: OpenProposal) -> ext.ProposalReadyParams:
    document = ls.session.state.document(proposal.path)
    return ext.ProposalReadyParams(
        proposal_id=proposal.proposal_id,
        uri=document.uri if document is not None else to_lsp.uri_of(proposal.path),
        kernel=proposal.kernel,
        title=proposal.title,
        base_sha=proposal.base_sha,
        candidate_sha=proposal.candidate_sha,
        version=document.version if document is not None else None,
        new_text=proposal.new_text,
        seq=proposal.seq,
        change=proposal.change,
    )


async def _ask(ls: OdysseyServer, proposal: OpenProposal) -> None:
    """Ask in a message with Show and Apply; once it was shown, with Apply and Reject. No answer leaves it open."""
    choices = [SHOW, APPLY]
    with contextlib.suppress(JsonRpcException):  # a client may refuse the question, or be gone
        while choices:
            actions = [types.MessageActionItem(title=each) for each in choices]
            answer = await ls.window_show_message_request_async(
                types.ShowMessageRequestParams(type=types.MessageType.Info, message=proposal.title, actions=actions)
            )
            choices = []
            if answer is not None and answer.title == SHOW:
                await _show(ls, proposal)
                choices = [APPLY, REJECT]
            elif answer is not None:
                await _do(ls, proposal, answer.title)


async def _do(ls: OdysseyServer, proposal: OpenProposal, choice: str) -> None:
    try:
        if choice == APPLY:
            await _apply(ls, proposal)
        elif choice == REJECT:
            await _reject(ls, proposal, None)
    except RequestFailed as refused:  # nobody waits for an answer: it is said
        ls.outbox.say("warning", f"{proposal.kernel}: {refused.message}", loud=True)


async def _show(ls: OdysseyServer, proposal: OpenProposal) -> None:
    """Open what changes as a diff; an editor that can open nothing gets it in its log."""
    root = ls.session.state.project.root_of(proposal.path)
    name = proposal.path.removeprefix(f"{root}/")
    diff = unified_diff(name, proposal.base_text, proposal.new_text)
    window = ls.client_capabilities.window
    if window is None or window.show_document is None or not window.show_document.support:
        ls.outbox.say("info", f"{proposal.title}\n{diff}")
        return
    kernel = re.sub(r"\W", "_", proposal.kernel)
    place = ls.session.host.state_dir() / f"proposal-{kernel}.diff"
    place.write_text(diff, encoding="utf-8", errors="replace", newline="")
    await ls.window_show_document_async(types.ShowDocumentParams(uri=to_lsp.uri_of(str(place)), take_focus=True))


async def _open(ls: OdysseyServer, proposal_id: str) -> OpenProposal:
    found = await ls.session.proposing.decisions.find(proposal_id)
    if isinstance(found, Refusal):
        raise RequestFailed(words.refusal_words(found))
    return found


async def _apply(ls: OdysseyServer, proposal: OpenProposal) -> None:
    """An edit of the text that the proposal was made from, and of no other: its sha is looked at here, its version there."""
    workspace = ls.client_capabilities.workspace
    if workspace is None or not workspace.apply_edit:
        raise RequestFailed("This editor lets nobody apply an edit. `odyssey propose --apply` writes the file instead.")
    document = ls.session.state.document(proposal.path)
    on_disk = read_text(proposal.path) if document is None else None
    text = document.index.text if document is not None else on_disk.text if on_disk is not None else None
    refusal = cannot_apply(proposal, sha256_text(text) if text is not None else None)
    if refusal is not None:
        raise RequestFailed(words.refusal_words(refusal))
    index = document.index if document is not None else LineIndex(text or "")
    target = types.OptionalVersionedTextDocumentIdentifier(
        uri=document.uri if document is not None else to_lsp.uri_of(proposal.path),
        version=document.version if document is not None else None,
    )
    edits = [to_lsp.whole_document(index, proposal.new_text, ls.encoding)]
    change = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=target, edits=list(edits))])
    answer = await ls.workspace_apply_edit_async(
        types.ApplyWorkspaceEditParams(label=f"Odyssey: {proposal.change}", edit=change)
    )
    if not answer.applied:
        why = f" ({answer.failure_reason})" if answer.failure_reason else ""
        raise RequestFailed(
            f"The editor did not apply the edit{why}. If the text changed in the same moment, accept again."
        )
    ls.session.proposing.decisions.accepted(proposal)


async def _reject(ls: OdysseyServer, proposal: OpenProposal, reason: str | None) -> None:
    try:
        await ls.session.proposing.decisions.reject(proposal, reason)
    except (LedgerUnusable, OSError, sqlite3.Error) as problem:
        raise RequestFailed(f"The ledger cannot keep the reason: {problem}") from None
