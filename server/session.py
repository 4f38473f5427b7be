"""Owns `apply`, the one place where an event changes the server's state. Never LSP types, never blocks.

Handlers and the command line post events and read `state`; what the outside should know leaves as signals.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

from evalcore.fingerprint import sha256_text
from evalcore.jobs import Cause, Mode, Refusal
from server import events, placing, signals, standing, words
from server.analyst import Analyst
from server.board import VerdictLayer
from server.choices import Choices
from server.document import Document
from server.events import Event
from server.frontend import FrontEnd
from server.gpu_pool import GpuPool
from server.host import Host
from server.judging import Judging, Wish
from server.keystrokes import Keystrokes
from server.lines import LineIndex
from server.project import language_of, read_text
from server.proposing import Proposing
from server.signals import Signal
from server.sites import Bound
from server.state import State
from server.status import status_of
from server.verdicts import Running

log = logging.getLogger("odyssey.session")

QUIET_REFUSALS = frozenset({"cancelled", "untrusted", "no_reference", "syntax_error"})
"""Said elsewhere (by the binding's hint, by the status) or not worth a remark."""


class Session:
    """The server without its protocol."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.state = State(host, self.apply, choices=Choices(host.state_dir() / "shapes.json"))
        self.analyst = Analyst(host)
        self.state.problem_sha = self.analyst.problem_sha
        self.pool = GpuPool(host, lambda: self.apply(events.WorkersChanged()))
        self.keystrokes = Keystrokes(self.analyst, self.state)
        self.front_end = FrontEnd(self.analyst, self.pool, self.state)
        self.judging = Judging(host, self.pool, self.state, self._bounds_for)
        self.proposing = Proposing(host, self.pool, self.state, self._bounds_for)
        self._listeners: list[Callable[[Signal], None]] = []
        self._status: signals.StatusChanged | None = None
        self._closed = False

    @property
    def status(self) -> signals.StatusChanged:
        """The state of the whole server in words."""
        return status_of(self.pool.facts, tuple(self.state.runs.values()))

    def ceilings_folders(self) -> tuple[Path, ...]:
        """Where measured ceilings of cards are kept."""
        return (self.host.ceilings_dir(),)

    def listen(self, listener: Callable[[Signal], None]) -> None:
        """Hear every signal from now on."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End every child and close every ledger, once. What was measured is kept."""
        if self._closed:
            return
        self._closed = True
        await self.keystrokes.close()
        await self.front_end.close()
        await self.proposing.close()
        await self.judging.close()
        await self.pool.close()
        await self.analyst.close()
        for recorder in self.state.recorders.values():
            await recorder.close()

    @singledispatchmethod
    def apply(self, event: Event) -> None:
        """Change the state by one event. The cases below are the closed union of `server.events`."""
        raise TypeError(f"{type(event).__name__} is no event")

    @apply.register
    def _(self, event: events.TextOpened) -> None:
        document = Document(
            path=event.path,
            uri=event.uri,
            version=event.version,
            language=language_of(event.path, event.language) or "",
            index=LineIndex(event.text),
        )
        document.saved_sha = document.sha
        self.state.documents[event.path] = document
        self.state.opened.add(event.path)
        if document.language:
            self.analyst.opened(event.path)
            self.analyst.warm()
            self.keystrokes.analyse_now(event.path)

    @apply.register
    def _(self, event: events.TextChanged) -> None:
        document = self.state.documents.get(event.path)
        if document is None:
            return
        moves = document.change(event.index, event.edits, event.version)
        self.state.board.move(event.path, moves)
        if document.language:
            texts = None if event.edits is None else tuple(edit.text for edit in event.edits)
            self.analyst.edited(event.path, moves, texts)
            self.keystrokes.typed(document)

    @apply.register
    def _(self, event: events.TextSaved) -> None:
        document = self.state.documents.get(event.path)
        if document is None:
            return
        document.saved_sha = document.sha
        if document.language:
            if document.analysed_generation != document.generation:
                self.keystrokes.analyse_now(event.path)  # the front end follows the analysis
            if self.state.settings.evaluate != "off":
                self._wish(document.path, Cause.SAVE)
        self._helper_changed(event.path, document.sha, rejudge=True)

    @apply.register
    def _(self, event: events.TextClosed) -> None:
        self.state.documents.pop(event.path, None)
        self.keystrokes.closed(event.path)
        self.front_end.closed(event.path)
        self.analyst.closed(event.path)
        self.state.board.forget(event.path)
        self._emit(signals.FindingsChanged(event.path))

    @apply.register
    def _(self, event: events.FileChanged) -> None:
        document = self.state.documents.get(event.path)
        if event.text is None or (document is not None and document.dirty):
            return  # gone; or an unsaved buffer, which wins
        sha = sha256_text(event.text)
        watched = self.state.project.watched(event.path, self.state.settings.watch)
        ours = not event.checkout and (event.path in self.state.opened or watched)
        if ours and language_of(event.path) and self.state.settings.evaluate != "off":
            self._wish(event.path, Cause.WATCH, text=event.text)
        self._helper_changed(event.path, sha, rejudge=ours)

    @apply.register
    def _(self, event: events.SettingsRead) -> None:
        self.state.settings = event.settings
        self.pool.configure(event.settings, trusted=self.state.trusted)
        for path in self.state.documents:
            self._emit(signals.VerdictsChanged(path))

    @apply.register
    def _(self, event: events.Trusted) -> None:
        self.state.trusted = event.trusted
        self.pool.configure(self.state.settings, trusted=event.trusted)
        if event.trusted and any(document.sites for document in self.state.documents.values()):
            self.pool.start()
        self._say_status()

    @apply.register
    def _(self, event: events.Analysed) -> None:
        document = self.state.documents.get(event.path)
        if document is None or event.generation != document.generation:
            return
        first = document.analysed_generation < 0
        document.sites, document.parses = event.sites, event.parses
        document.analysed_generation = event.generation
        self.state.board.put(event.path, "static", event.generation, event.findings)
        standing.refresh(self.state, document)
        self._emit(signals.FindingsChanged(event.path))
        self._emit(signals.VerdictsChanged(event.path))
        if event.sites and self.state.trusted:
            self.pool.start()
            self.front_end.check(event.path)
        self.keystrokes.bind_soon(event.path, 0.0 if first else None)
        self.keystrokes.wait_for_quiet(document)

    @apply.register
    def _(self, event: events.BindingsFound) -> None:
        document = self.state.documents.get(event.path)
        if document is None or event.sha != document.sha:
            return
        changed = document.bounds != event.bounds
        document.bounds, document.bounds_sha = event.bounds, event.sha
        self.state.board.put(event.path, "binding", document.generation, standing.unbound(document))
        standing.refresh(self.state, document)
        self._emit(signals.FindingsChanged(event.path))
        if changed:
            self._emit(signals.VerdictsChanged(event.path))
            self._look_ahead(document)

    @apply.register
    def _(self, event: events.FrontEndChecked) -> None:
        document = self.state.documents.get(event.path)
        if document is None or event.generation != document.generation:
            return
        found = standing.front_end(self.state.board, document, event.diagnostics, event.kernels)
        self.state.board.put(event.path, "frontend", event.generation, found)
        self._emit(signals.FindingsChanged(event.path))

    @apply.register
    def _(self, event: events.JudgeAsked) -> None:
        self._wish(event.path, event.cause, mode=event.mode, kernels=event.kernels)

    @apply.register
    def _(self, event: events.StopAsked) -> None:
        for run in tuple(self.state.runs.values()):
            if event.run_id in (None, run.run_id) and not self.proposing.stop(run.run_id):
                self.judging.stop(run.path)

    @apply.register
    def _(self, event: events.ShapePicked) -> None:
        self.state.choices.pick(event.path, event.kernel, event.case)
        self.state.epoch += 1
        self._emit(signals.VerdictsChanged(event.path))
        self._wish(event.path, Cause.COMMAND, kernels=(event.kernel,))

    @apply.register
    def _(self, event: events.RunStarted) -> None:
        run = Running(run_id=event.run_id, path=event.path, kernel=event.kernel, cause=event.cause.value)
        self.state.runs[event.run_id] = run
        self._emit(signals.RunChanged(run))
        self._say_status()

    @apply.register
    def _(self, event: events.RunProgressed) -> None:
        run = self.state.runs.get(event.run_id)
        if run is not None:
            run = replace(run, stage=event.stage, done=event.done, total=event.total)
            self.state.runs[event.run_id] = run
            self._emit(signals.RunChanged(run))

    @apply.register
    def _(self, event: events.RunEnded) -> None:
        run = self.state.runs.pop(event.run_id, None)
        if run is not None:
            self._emit(signals.RunChanged(run, ended=True))
            self._say_status()

    @apply.register
    def _(self, event: events.Judged) -> None:
        verdict = event.verdict
        self.state.board.set_verdict(verdict)
        document = self.state.documents.get(verdict.path)
        if document is not None:
            if verdict.sha == document.sha:
                document.edited_spans.clear()
                self.state.board.drop_older(verdict.path, "frontend", document.generation)
            standing.refresh(self.state, document)
            self._emit(signals.FindingsChanged(verdict.path))
        for path in placing.other_files(verdict.measurement):
            self._emit(signals.FindingsChanged(path))
        self._emit(signals.VerdictsChanged(verdict.path))
        self._emit(signals.VerdictShown(verdict))

    @apply.register
    def _(self, event: events.JudgeRefused) -> None:
        refusal, document = event.refusal, self.state.documents.get(event.path)
        if document is not None and (event.place is not None or refusal.code not in QUIET_REFUSALS):
            if event.place is not None:
                finding = placing.syntax_finding(refusal, document.index, event.place)
            else:
                finding = placing.refusal_finding(refusal, self.state.site(event.path, event.kernel))
            self.state.board.say(event.path, event.kernel, VerdictLayer(event.sha, (finding,)))
            self._emit(signals.FindingsChanged(event.path))
        loud = event.cause is Cause.COMMAND and refusal.code != "cancelled"
        self._emit(signals.Refused(event.path, event.kernel, refusal, loud))
        self._say_status()

    @apply.register
    def _(self, event: events.ProposalFound) -> None:
        self._emit(signals.ProposalMade(event.proposal))
        self._tell_model_refusal(event.model_refusal)

    @apply.register
    def _(self, event: events.NoProposal) -> None:
        self._tell_model_refusal(event.model_refusal)
        self._emit(signals.Refused(event.path, event.kernel, event.refusal, event.refusal.code != "cancelled"))

    @apply.register
    def _(self, event: events.LedgerGrew) -> None:
        self._emit(signals.RowAppended(event.seq))

    @apply.register
    def _(self, event: events.WorkersChanged) -> None:
        self._say_status()
        for document in self.state.documents.values():
            self._look_ahead(document)

    def _emit(self, signal: Signal) -> None:
        for listener in self._listeners:
            listener(signal)

    def _tell_model_refusal(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            said = f"No candidate by the model: {words.refusal_words(refusal)}"
            self._emit(signals.Said("warning", said, loud=True))

    def _say_status(self) -> None:
        status = self.status
        if status != self._status:
            self._status = status
            self._emit(status)

    async def _bounds_for(self, path: str, text: str, sha: str) -> tuple[Bound, ...]:
        document = self.state.documents.get(path)
        if document is not None and document.bounds_sha == sha:
            return document.bounds
        bounds = await self.keystrokes.bounds_of(path, text)
        if document is not None:
            self.apply(events.BindingsFound(path=path, sha=sha, bounds=bounds))
        return bounds

    def _wish(
        self,
        path: str,
        cause: Cause,
        *,
        mode: Mode | None = None,
        kernels: tuple[str, ...] = (),
        text: str | None = None,
    ) -> None:
        document = self.state.documents.get(path)
        if text is None and document is not None:
            text = document.index.text
        if text is None:
            return
        if not self.state.trusted:
            if cause is Cause.COMMAND:
                words = "This folder is not trusted, so nothing in it is run. Trust it to have its kernels judged."
                self._emit(signals.Said("warning", words, loud=True))
            return
        sha = sha256_text(text)
        mode = mode or Mode(self.state.settings.mode)
        wish = Wish(path=path, text=text, sha=sha, cause=cause, mode=mode, kernels=kernels, epoch=self.state.epoch)
        self.judging.ask(wish)

    def _helper_changed(self, path: str, sha: str, *, rejudge: bool) -> None:
        """Something that other texts depend on is new: their verdicts are old, and they are judged again if we may."""
        dependents = standing.outdate(self.state, path, sha)
        if not dependents:
            return
        self.state.epoch += 1
        for other in dependents:
            self._emit(signals.VerdictsChanged(other))
            document = self.state.documents.get(other)
            if document is not None:
                document.bounds_sha = ""
                self.keystrokes.bind_soon(other, 0.0)
            if not rejudge or self.state.settings.evaluate == "off":
                continue
            if document is not None and not document.dirty:
                self._wish(other, Cause.WATCH)
            elif document is None and (found := read_text(other)) is not None:
                self._wish(other, Cause.WATCH, text=found.text)

    def _look_ahead(self, document: Document) -> None:
        """A kernel is in sight: let its problem be prepared, and show what is known about exactly this text."""
        if self.state.trusted and document.bounds and not document.looked_ahead and self.judging.remember(document):
            document.looked_ahead = True
            first = next((bound for bound in document.bounds if bound.packed), None)
            problem: Any = first.problem() if first is not None else None
            if problem is not None:
                self.pool.prepare(problem)
