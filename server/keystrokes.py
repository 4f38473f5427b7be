"""Owns what follows a keystroke: debounce, analysis by syntax, bindings, the quiet second.

Never judges, and never changes a document: what it learns is posted as events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from evalcore.jobs import Cause
from server.analyst import Analyst, ReaderLost
from server.document import Document
from server.events import Analysed, BindingsFound, JudgeAsked
from server.newest import Newest
from server.sites import Bound
from server.state import State

DEBOUNCE_S = 0.15
QUIET_S = 1.0
"""How long a text must rest until it is judged unsaved (setting `pause`)."""
BIND_S = 0.35
"""Bindings are looked for this long after an analysis; only lenses wait for them."""

log = logging.getLogger("odyssey.keystrokes")


class Keystrokes:
    """Timers and questions, one set a document."""

    def __init__(self, analyst: Analyst, state: State) -> None:
        self._analyst = analyst
        self._state = state
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._newest = Newest()
        self._analysing: dict[str, asyncio.Future[None]] = {}

    def typed(self, document: Document) -> None:
        """A text changed: look at it when it has rested for a moment."""
        self._later("analyse", document.path, DEBOUNCE_S, lambda: self.analyse_now(document.path))
        self._cancel_timer("pause", document.path)

    def analyse_now(self, path: str) -> None:
        """Look at a text at once."""
        self._cancel_timer("analyse", path)
        if path in self._analysing and not self._analysing[path].done():
            self._analysing[path].cancel()
        self._analysing[path] = asyncio.ensure_future(self._analyse(path))

    async def settled(self, path: str) -> None:
        """Wait until the newest text of a document was analysed; at once where it was."""
        document = self._state.document(path)
        if document is None or document.analysed_generation == document.generation:
            return
        if ("analyse", path) in self._timers or path not in self._analysing or self._analysing[path].done():
            self.analyse_now(path)
        await asyncio.wait({self._analysing[path]}, timeout=5.0)

    def closed(self, path: str) -> None:
        """Nothing more is to be done about a document."""
        for name in ("analyse", "pause", "bind"):
            self._cancel_timer(name, path)
        if path in self._analysing:
            self._analysing.pop(path).cancel()
        self._newest.cancel(path)

    async def close(self) -> None:
        """End everything."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._analysing.values():
            task.cancel()
        await asyncio.gather(*self._analysing.values(), return_exceptions=True)
        await self._newest.close()

    def bind_soon(self, path: str, delay_s: float | None = None) -> None:
        """Look for bindings when the text has rested."""
        delay_s = BIND_S if delay_s is None else delay_s
        self._later("bind", path, delay_s, lambda: self._newest.submit(path, lambda: self._bind(path), "text"))

    def wait_for_quiet(self, document: Document) -> None:
        """With `pause`: judge the unsaved text when nobody typed for a second."""
        if self._state.settings.evaluate != "pause" or not document.parses or not document.sites:
            return
        wish = JudgeAsked(path=document.path, cause=Cause.PAUSE)
        self._later("pause", document.path, QUIET_S - DEBOUNCE_S, lambda: self._state.post(wish))

    async def _analyse(self, path: str) -> None:
        document = self._state.document(path)
        if document is None:
            return
        generation = document.generation
        try:
            found = await self._analyst.analyse(path, document.language, document.index, generation)
        except ReaderLost as lost:
            log.warning("%s: %s", path, lost)
            self._analyst.opened(path)
            return
        if found is not None:
            self._state.post(
                Analysed(
                    path=path, generation=generation, sites=found.sites, findings=found.findings, parses=found.parses
                )
            )

    async def _bind(self, path: str) -> None:
        document = self._state.document(path)
        if document is None:
            return
        sha, text = document.sha, document.index.text
        try:
            bounds = await self.bounds_of(path, text)
        except ReaderLost as lost:
            log.warning("%s: %s", path, lost)
            return
        self._state.post(BindingsFound(path=path, sha=sha, bounds=bounds))

    async def bounds_of(self, path: str, text: str) -> tuple[Bound, ...]:
        """How the kernels of a text are judged, unsaved helpers laid over the disk. Raises ReaderLost."""
        overlays = {other: each for other, each in self._state.dirty_texts().items() if other != path}
        return await self._analyst.bind(path, text, root=self._state.root_text(path), overlays=overlays)

    def _later(self, name: str, path: str, delay_s: float, work: Callable[[], None]) -> None:
        self._cancel_timer(name, path)

        def fire() -> None:
            self._timers.pop((name, path), None)
            work()

        self._timers[(name, path)] = asyncio.get_running_loop().call_later(delay_s, fire)

    def _cancel_timer(self, name: str, path: str) -> None:
        timer = self._timers.pop((name, path), None)
        if timer is not None:
            timer.cancel()
