"""Owns asking the compiler's front end about unsaved text: which kernels, and what it said last. Never judges.

Only kernels are asked about whose own lines changed; where something else in the file changed (a constant, a helper, an
import), all of them, if they are not too many.
"""

from __future__ import annotations

from evalcore.jobs import Diagnostic, Refusal
from server.analyst import Analyst, ReaderLost
from server.document import Document
from server.events import FrontEndChecked
from server.gpu_pool import GpuPool
from server.lean import SHORT_BYTES
from server.newest import Newest
from server.sites import Site
from server.state import State

MOST_CHECKED = 16
"""Kernels that are looked at in one go."""

_REST = ""
"""The key of everything that stands in no kernel."""


class FrontEnd:
    """Questions about texts, the newest one of each document."""

    def __init__(self, analyst: Analyst, pool: GpuPool, state: State) -> None:
        self._analyst = analyst
        self._pool = pool
        self._state = state
        self._newest = Newest()
        self._seen: dict[str, dict[str, int]] = {}
        """path -> kernel -> hash of its lines, as they were last looked at."""

    def check(self, path: str) -> None:
        """Look at the newest text of a document, if any of it was not looked at yet."""
        self._newest.submit(path, lambda: self._check(path), "text")

    def closed(self, path: str) -> None:
        """Nothing more is to be said about a document."""
        self._newest.cancel(path)
        self._seen.pop(path, None)

    async def close(self) -> None:
        """End everything."""
        await self._newest.close()

    async def _check(self, path: str) -> None:
        document = self._state.document(path)
        if document is None or not document.parses or not document.sites:
            return
        generation, now = document.generation, _shas(document)
        asked = self._asked(document, now)
        try:
            found = await self._ask(document, asked)
        except ReaderLost:
            return
        if found is None or not asked:
            return
        looked_at = tuple(site.name for site in asked)
        seen = self._seen.setdefault(path, {})
        seen.update({name: now[name] for name in (*looked_at, _REST)})
        self._state.post(FrontEndChecked(path=path, generation=generation, diagnostics=found, kernels=looked_at))

    async def _text(self, document: Document, kernels: list[str]) -> str | None:
        """What the front end is to read; None where somebody typed on meanwhile."""
        generation = document.generation
        if len(document.index.text) <= SHORT_BYTES or document.language != "python":
            return document.index.text
        text = await self._analyst.lean(document.path, kernels)
        return text if document.generation == generation else None

    async def _ask(self, document: Document, asked: tuple[Site, ...]) -> tuple[Diagnostic, ...] | None:
        overlays = [[path, text] for path, text in self._state.dirty_texts().items() if path != document.path]
        devices = self._pool.facts.devices
        found: list[Diagnostic] = []
        for language in sorted({site.language for site in asked}):
            kernels = [site.name for site in asked if site.language == language]
            text = await self._text(document, kernels)
            if text is None:
                return None
            answer = await self._pool.check(
                path=document.path,
                text=text,
                language=language,
                kernels=kernels,
                overlays=overlays,
                target=devices[0].get("arch") if devices else None,
            )
            if isinstance(answer, Refusal):
                return None
            found += answer.diagnostics
        return tuple(found)

    def _asked(self, document: Document, now: dict[str, int]) -> tuple[Site, ...]:
        seen = self._seen.get(document.path, {})
        if seen.get(_REST) != now[_REST] and len(document.sites) <= MOST_CHECKED:
            return document.sites
        return tuple(site for site in document.sites if seen.get(site.name) != now[site.name])[:MOST_CHECKED]


def _shas(document: Document) -> dict[str, int]:
    """A hash of each kernel's lines, and of what lies between them."""
    index, shas, rest, place = document.index, {}, [], 0
    for site in sorted(document.sites, key=lambda each: each.span.start):
        start, end = index.offset_of_byte(site.span.start), index.offset_of_byte(site.span.end)
        shas[site.name] = hash(index.text[start:end])
        rest.append(index.text[place:start])
        place = max(place, end)
    rest.append(index.text[place:])
    shas[_REST] = hash("".join(rest))
    return shas
