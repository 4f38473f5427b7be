"""Owns what the server says by itself: diagnostics, refreshes, marks, progress, status. Sends only changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Hashable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from handlers import to_lsp
from server import placing, signals, words
from server.analysis.finding import Finding
from server.lines import LineIndex
from server.lsp import ext
from server.lsp.language_server import OdysseyServer
from server.project import read_text
from server.signals import Signal
from server.snapshot import KernelView, Snapshot
from server.verdicts import Running

PROGRESS_AFTER_S = 0.3
"""A judgement that ends sooner shows no progress: a bar that flashes up tells nothing."""

log = logging.getLogger("odyssey.outbox")


class Outbox:
    """Hears the session's signals and turns them into messages, each kind at most once per turn of the event loop."""

    def __init__(self, ls: OdysseyServer) -> None:
        self._ls = ls
        self._due: dict[Hashable, Callable[[], None]] = {}
        self._published: dict[str, int] = {}
        self._shown: dict[str, tuple[Any, ...]] = {}
        self._progress: dict[str, asyncio.TimerHandle | None] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._marked: set[str] = set()
        self._status: signals.StatusChanged | None = None

    def hear(self, signal: Signal) -> None:
        """One signal of the session."""
        if not self._ls.protocol.initialized:
            return
        match signal:
            case signals.FindingsChanged(path):
                self._soon(("findings", path), lambda: self._publish(path))
            case signals.VerdictsChanged(path):
                self._soon(("verdicts", path), lambda: self._refresh(path))
            case signals.VerdictShown(verdict):
                self._ls.outside.depends_on(tuple(path for path, _ in verdict.measurement.dependencies))
            case signals.RunChanged(run, ended):
                self._follow(run, ended)
            case signals.StatusChanged():
                self._soon("status", lambda: self.say_status(self._ls.session.status))
            case signals.RowAppended(seq):
                self._send(ext.LEDGER_APPENDED, ext.LedgerAppendedParams(seq=seq))
            case signals.Refused(_, kernel, refusal, loud):
                words_ = f"{kernel}: {words.refusal_words(refusal)}" if kernel else words.refusal_words(refusal)
                self.say("warning", words_, loud=loud)
            case signals.Said(level, text, loud):
                self.say(level, text, loud=loud)

    def say(self, level: str, text: str, *, loud: bool = False) -> None:
        """A sentence into the client's log, or into a message box."""
        kind = to_lsp.level(level)
        if loud:
            self._ls.window_show_message(types.ShowMessageParams(type=kind, message=text))
        else:
            self._ls.window_log_message(types.LogMessageParams(type=kind, message=text))

    def say_status(self, status: signals.StatusChanged) -> None:
        """The state of the server, if it is another than the one sent last."""
        if status == self._status:
            return
        self._status = status
        missing = [ext.MissingPiece(what=m.what, message=m.message, remedy=m.remedy) for m in status.missing]
        self._send(
            ext.STATUS,
            ext.StatusParams(
                state=status.state,
                text=status.text,
                card=status.card,
                detail=status.detail,
                grey_reason=status.grey_reason,
                missing=missing,
            ),
        )

    def _send(self, method: str, message: Any) -> None:
        self._ls.protocol.notify(method, ext.plain(message))

    def _soon(self, key: Hashable, work: Callable[[], None]) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._work_off)
        self._due.setdefault(key, work)

    def _work_off(self) -> None:
        due, self._due = self._due, {}
        for work in due.values():
            work()

    def _publish(self, path: str) -> None:
        """A document's diagnostics, if they are others than those sent last."""
        document = self._ls.session.state.documents.get(path)
        if document is not None:
            uri, version, index = document.uri, document.version, document.index
            findings = self._ls.session.state.board.findings(path, document.sha, index)
        else:
            uri, version = to_lsp.uri_of(path), None
            index, findings = self._elsewhere(path)
        items = [to_lsp.diagnostic(each, index, uri, self._ls.encoding) for each in findings]
        content = hash(repr(items)) if items else 0
        if self._published.get(uri, 0) == content:
            return
        self._published[uri] = content
        if document is None and not items:
            del self._published[uri]
        self._ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=items)
        )

    def _elsewhere(self, path: str) -> tuple[LineIndex, tuple[Finding, ...]]:
        """What verdicts of open documents say about a file that is not open, e.g. a helper with the faulty line."""
        located = [
            each
            for verdict in self._ls.session.state.board.verdicts()
            if verdict.path in self._ls.session.state.documents and not verdict.old_because
            for each in placing.other_files(verdict.measurement).get(path, ())
        ]
        found = read_text(path) if located else None
        index = LineIndex(found.text if found is not None else "")
        return index, tuple(placing.worker_finding(index, each, "verdict") for each in located)

    def _refresh(self, path: str) -> None:
        """Ask the client to fetch hints and lenses again, if those of this document are others than before."""
        snapshot = self._ls.session.state.snapshot(path)
        if snapshot is None:
            self._shown.pop(path, None)
            return
        shown = tuple(_appearance(snapshot, view) for view in snapshot.kernels)
        before, self._shown[path] = self._shown.get(path), shown
        if shown == before:
            return
        workspace = self._ls.client_capabilities.workspace
        if workspace is not None:
            if workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
                self._run(self._ls.workspace_inlay_hint_refresh_async(None))
            if workspace.code_lens is not None and workspace.code_lens.refresh_support:
                self._run(self._ls.workspace_code_lens_refresh_async(None))
        self._mark(snapshot)

    def _mark(self, snapshot: Snapshot) -> None:
        marks = [
            ext.MarkAt(
                line=to_lsp.position(snapshot.index, view.site.name_span.start, self._ls.encoding).line,
                verdict=view.verdict.measurement.result.status.value,
                stale=not view.fresh,
                label=words.hint_label(view.verdict.measurement, fresh=view.fresh),
            )
            for view in snapshot.kernels
            if view.verdict is not None
        ]
        if marks or snapshot.path in self._marked:
            self._marked.add(snapshot.path)
            self._send(ext.MARKS, ext.MarksParams(uri=snapshot.uri, version=snapshot.version, marks=marks))

    def _follow(self, run: Running, ended: bool) -> None:
        """A judgement's progress bar, with a cancel button, where the client can show one."""
        window = self._ls.client_capabilities.window
        if window is None or not window.work_done_progress:
            return
        if run.run_id not in self._progress:
            if not ended:
                later = asyncio.get_running_loop().call_later(
                    PROGRESS_AFTER_S, lambda: self._run(self._begin(run.run_id))
                )
                self._progress[run.run_id] = later
            return
        timer = self._progress[run.run_id]
        if ended:
            del self._progress[run.run_id]
            if timer is not None:
                timer.cancel()
            else:
                self._ls.work_done_progress.end(run.run_id, types.WorkDoneProgressEnd())
                self._ls.work_done_progress.tokens.pop(run.run_id, None)
        elif timer is None:
            self._ls.work_done_progress.report(run.run_id, _report(run))

    async def _begin(self, run_id: str) -> None:
        await self._ls.work_done_progress.create_async(run_id)
        run = self._ls.session.state.runs.get(run_id)
        if run is None or run_id not in self._progress:
            return
        self._progress[run_id] = None
        begin = types.WorkDoneProgressBegin(
            title="Odyssey", cancellable=True, message=words.running(run.kernel, run.stage, run.done, run.total)
        )
        self._ls.work_done_progress.begin(run_id, begin)

    def _run(self, work: Any) -> None:
        task = asyncio.ensure_future(_unanswered(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _report(run: Running) -> types.WorkDoneProgressReport:
    share = round(100 * run.done / run.total) if run.total else None
    return types.WorkDoneProgressReport(
        message=words.running(run.kernel, run.stage, run.done, run.total),
        percentage=share,
        cancellable=True,
    )


def _appearance(snapshot: Snapshot, view: KernelView) -> tuple[Any, ...]:
    """What a client would draw for a kernel."""
    line = snapshot.index.place(snapshot.index.offset_of_byte(view.site.name_span.start))[0]
    bound = (view.bound.format, view.bound.cases, bool(view.bound.packed)) if view.bound is not None else None
    verdict = (view.verdict.seq, view.fresh) if view.verdict is not None else None
    return line, view.site.name, bound, view.case, verdict


async def _unanswered(work: Any) -> None:
    """A request whose answer tells nothing; a client may refuse it or be gone."""
    with contextlib.suppress(JsonRpcException):
        await work
