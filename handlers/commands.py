"""Owns the commands. Each takes one object that carries all context, so that it works after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types

from handlers import to_lsp
from handlers.from_lsp import path_of
from server import doctor, rows, words
from server.events import JudgeAsked, ShapePicked, StopAsked
from server.lsp.ext import KernelArgument, NoArgument, RestoreArgument, RunArgument, SeqArgument
from server.lsp.language_server import OdysseyServer, RequestFailed
from server.snapshot import KernelView


async def evaluate(ls: OdysseyServer, argument: KernelArgument) -> dict[str, Any]:
    """Judge one kernel of the text on the screen now."""
    return await _judge(ls, argument, words.mode_of(argument.mode))


async def evaluate_thorough(ls: OdysseyServer, argument: KernelArgument) -> dict[str, Any]:
    """Judge one kernel with all that can be measured."""
    return await _judge(ls, argument, words.mode_of("thorough"))


def stop(ls: OdysseyServer, argument: RunArgument) -> None:
    """End one run, or all."""
    ls.session.apply(StopAsked(run_id=argument.run_id))


def progress_cancelled(ls: OdysseyServer, params: types.WorkDoneProgressCancelParams) -> None:
    """The person pressed cancel on a progress bar; its token is the run's id."""
    ls.session.apply(StopAsked(run_id=str(params.token)))


async def pick_shape(ls: OdysseyServer, argument: KernelArgument) -> dict[str, Any]:
    """Choose which case stands on the line; without a case, ask for one."""
    path = path_of(argument.uri)
    view = await _kernel(ls, argument)
    cases = view.bound.cases if view.bound is not None else ()
    if not cases:
        bound = view.bound
        why = bound.refusal_words if bound is not None else "It is not known yet how it is judged."
        raise RequestFailed(f"{argument.kernel} has no shapes to choose from. {why}")
    chosen = argument.case
    if chosen is None:
        chosen = await _ask_case(ls, argument.kernel, cases)
        if chosen is None:
            return {"cases": list(cases), "current": view.case or cases[0]}
    if chosen not in cases:
        raise RequestFailed(f"{argument.kernel} has no shape {chosen}; there are {', '.join(cases[:8])}.")
    ls.session.apply(ShapePicked(path=path, kernel=argument.kernel, case=None if chosen == cases[0] else chosen))
    return {"cases": list(cases), "current": chosen}


async def _ask_case(ls: OdysseyServer, kernel: str, cases: tuple[str, ...]) -> str | None:
    actions = [types.MessageActionItem(title=case) for case in cases[:20]]
    answer = await ls.window_show_message_request_async(
        types.ShowMessageRequestParams(
            type=types.MessageType.Info, message=f"Which shape stands on the line of {kernel}?", actions=actions
        )
    )
    return answer.title if answer is not None else None


async def restore(ls: OdysseyServer, argument: RestoreArgument) -> dict[str, Any]:
    """Bring an earlier text back into the buffer, as an edit that can be undone."""
    path = path_of(argument.uri)
    document = ls.session.state.documents.get(path)
    if document is None:
        raise RequestFailed("The file is not open, so its text cannot be restored. Open it first.")
    text = await ls.session.state.recorder(path).call(lambda ledger: ledger.text(argument.sha))
    if text is None:
        raise RequestFailed(f"The ledger has no text {argument.sha[:8]}.")
    edit = to_lsp.whole_document(document.index, text, ls.encoding)
    target = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    changes = [types.TextDocumentEdit(text_document=target, edits=[edit])]
    answer = await ls.workspace_apply_edit_async(
        types.ApplyWorkspaceEditParams(
            label=f"Restore {argument.sha[:8]}", edit=types.WorkspaceEdit(document_changes=list(changes))
        )
    )
    return {"applied": bool(answer.applied)}


async def pin_baseline(ls: OdysseyServer, argument: SeqArgument) -> dict[str, Any]:
    """Make a row the baseline of its kernel."""
    for recorder in ls.session.state.all_recorders():
        if not await recorder.exists():
            continue
        try:
            await recorder.call(lambda ledger: ledger.pin(argument.seq))
        except KeyError:
            continue
        return {"ok": True}
    raise RequestFailed(f"The ledger has no row {argument.seq}.")


def restart_workers(ls: OdysseyServer, argument: NoArgument) -> None:
    """End the worker loops; new ones come up at once where a kernel is open."""
    ls.session.judging.stop_all()
    ls.session.pool.restart()
    if any(document.sites for document in ls.session.state.documents.values()):
        ls.session.pool.start()


async def run_doctor(ls: OdysseyServer, argument: NoArgument) -> dict[str, Any]:
    """What is there and what is missing, as Markdown."""
    folders = ls.session.state.project.folders
    folder = Path(folders[0]) if folders else ls.session.host.cwd()
    report = await doctor.examine(ls.session.host, ls.session.pool, folder)
    return {"markdown": doctor.markdown(report), "text": doctor.text(report), "report": report.plain()}


async def history(ls: OdysseyServer, argument: KernelArgument) -> dict[str, Any]:
    """The kernel's rows as a Markdown document, for editors that have no panel."""
    path = path_of(argument.uri)
    recorder = ls.session.state.recorder(path)
    if not await recorder.exists():
        raise RequestFailed("Nothing was judged in this workspace yet, so there is no history.")
    found = await recorder.call(lambda ledger: ledger.rows(file=path, kernel=argument.kernel, limit=200))
    place = ls.session.host.state_dir() / f"history-{argument.kernel}.md"
    place.write_text(rows.history_markdown(argument.kernel, found), encoding="utf-8")
    uri = to_lsp.uri_of(str(place))
    window = ls.client_capabilities.window
    if window is not None and window.show_document is not None and window.show_document.support:
        await ls.window_show_document_async(types.ShowDocumentParams(uri=uri, take_focus=True))
    return {"uri": uri, "kernel": argument.kernel, "rows": len(found)}


async def _judge(ls: OdysseyServer, argument: KernelArgument, mode: Any) -> dict[str, Any]:
    if not ls.session.state.trusted:
        raise RequestFailed("This folder is not trusted, so nothing in it is run. Trust it to have its kernels judged.")
    await _kernel(ls, argument)
    ls.session.apply(JudgeAsked(path=path_of(argument.uri), kernels=(argument.kernel,), mode=mode))
    return {"started": True, "kernel": argument.kernel}


async def _kernel(ls: OdysseyServer, argument: KernelArgument) -> KernelView:
    """The kernel that is meant, in the newest text: a command may overtake the analysis of what was just typed."""
    await ls.session.keystrokes.settled(path_of(argument.uri))
    snapshot = ls.session.state.snapshot(path_of(argument.uri))
    if snapshot is None:
        raise RequestFailed("The file is not open. Open it, then ask again.")
    view = snapshot.kernel(argument.kernel)
    if view is None:
        raise RequestFailed(f"There is no kernel {argument.kernel} in this text.")
    return view
