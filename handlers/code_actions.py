"""Owns quick fixes: the fixes of findings, and the actions on a kernel. Never makes a fix: analysis and bindings do."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from handlers import to_lsp
from handlers.from_lsp import byte_of, path_of
from server.analysis.finding import Edit, Finding, Fix, Span
from server.analyst import ReaderLost
from server.lsp.language_server import OdysseyServer
from server.snapshot import KernelView, Snapshot

OPTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]
)


async def code_actions(ls: OdysseyServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Fixes of what was found in a range, and Evaluate on the kernel there. Waits for the newest text's analysis."""
    path = path_of(params.text_document.uri)
    await ls.session.keystrokes.settled(path)
    snapshot = ls.session.state.snapshot(path)
    if snapshot is None:
        return []
    start = byte_of(snapshot.index, params.range.start, ls.encoding)
    end = byte_of(snapshot.index, params.range.end, ls.encoding)
    only = params.context.only
    actions: list[types.CodeAction] = []
    if _wanted(types.CodeActionKind.QuickFix, only):
        for finding in ls.session.state.findings(path):
            if finding.span.start <= end and start <= finding.span.end:
                fixes = finding.fixes or await _starter(ls, snapshot, finding)
                actions += [_fix(ls, snapshot, finding, fix) for fix in fixes]
    view = snapshot.at(start)
    if view is not None and _wanted(types.CodeActionKind.RefactorRewrite, only):
        actions += _on_kernel(snapshot, view)
    return actions


async def _starter(ls: OdysseyServer, snapshot: Snapshot, finding: Finding) -> tuple[Fix, ...]:
    """The fix of a kernel without a reference, written when it is asked for: it takes a whole syntax tree."""
    view = snapshot.at(finding.span.start) if finding.code == "no-reference" else None
    if view is None:
        return ()
    text = snapshot.index.text
    try:
        starter = await ls.session.analyst.starter(text, view.site.name)
    except ReaderLost:
        return ()
    if starter is None:
        return ()
    end = snapshot.index.byte_of(len(text))
    gap = "" if text.endswith("\n") or not text else "\n"
    edit = Edit(span=Span(end, end), new_text=gap + starter)
    return (Fix(title=f"Write a starter reference for {view.site.name}", edits=(edit,), preferred=True),)


def _wanted(kind: types.CodeActionKind, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    if not only:
        return True
    return any(kind.value == str(getattr(each, "value", each)) or
               kind.value.startswith(str(getattr(each, "value", each)) + ".") for each in only)  # fmt: skip


def _fix(ls: OdysseyServer, snapshot: Snapshot, finding: Finding, fix: Fix) -> types.CodeAction:
    return types.CodeAction(
        title=fix.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[to_lsp.diagnostic(finding, snapshot.index, snapshot.uri, ls.encoding)],
        is_preferred=fix.preferred or None,
        edit=_edit(ls, snapshot, fix),
    )


def _edit(ls: OdysseyServer, snapshot: Snapshot, fix: Fix) -> types.WorkspaceEdit:
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    if fix.edits:
        edits = [to_lsp.text_edit(edit, snapshot.index, ls.encoding) for edit in fix.edits]
        document = types.OptionalVersionedTextDocumentIdentifier(uri=snapshot.uri, version=snapshot.version)
        changes.append(types.TextDocumentEdit(text_document=document, edits=list(edits)))
    if fix.new_file is not None:
        changes += to_lsp.new_file_edit(*fix.new_file)
    return types.WorkspaceEdit(document_changes=changes)


def _on_kernel(snapshot: Snapshot, view: KernelView) -> list[types.CodeAction]:
    bound = view.bound
    if bound is None or not bound.packed:
        return []
    argument = {"uri": snapshot.uri, "kernel": bound.anchor}
    offered = [
        (f"Evaluate {bound.anchor}", "odyssey.evaluate", argument),
        (f"Evaluate {bound.anchor} thoroughly", "odyssey.evaluateThorough", argument),
    ]
    judged = snapshot.kernel(bound.anchor) or view
    if judged.verdict is not None and judged.fresh:
        base = {**argument, "base_sha": judged.verdict.sha}
        offered.append((f"Propose optimization of {bound.anchor}", "odyssey.propose", base))
    return [
        types.CodeAction(
            title=title,
            kind=types.CodeActionKind.RefactorRewrite,
            command=types.Command(title=title, command=command, arguments=[given]),
        )
        for title, command, given in offered
    ]
