"""Owns the two reader children: one that parses what is typed, one that finds bindings. Never parses in this process.

They are apart because finding the bindings of a large file takes a syntax tree (0.4 s for 5,000 lines), and what is
typed meanwhile must not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalcore.problem import Problem
from evalcore.wire import WireError
from server.analysis.finding import Finding
from server.children.process import Child, Launch, back_off_s, start, words_of_end
from server.compact import unpack_findings, unpack_sites
from server.document import ByteEdit
from server.host import Host
from server.lines import LineIndex
from server.sites import Bound, Site, packed, unpack_bounds

MAX_TEXT_BYTES = 4 << 20
"""Longer texts are not analysed: no kernel file is that long, and generated ones would only cost."""

ANSWER_S = 20.0
"""A reader that takes longer is taken for hung and started anew."""


class ReaderLost(Exception):
    """The child died or hung while it worked on this text."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What syntax shows in one text."""

    sites: tuple[Site, ...]
    findings: tuple[Finding, ...]
    parses: bool


@dataclass(slots=True)
class _Known:
    """What the text child holds of one document, and the edits that it has not seen."""

    edits: list[tuple[int, int, str]] = field(default_factory=list)
    whole: bool = True
    """Whether the next request must carry the whole text."""


class Reading:
    """One reader child and the answers awaited from it."""

    def __init__(self, host: Host, name: str, on_restart: Callable[[], None]) -> None:
        self._host = host
        self._name = name
        self._on_restart = on_restart
        self._child: Child | None = None
        self._pump: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._failures = 0
        self._starting = asyncio.Lock()
        self._warming: asyncio.Future[Child] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        return self._child.pid if self._child is not None and self._child.alive else None

    async def ask(self, key: str, name: str, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for its answer. A newer request with the same key voids the older one's."""
        child = await self._running()
        older = self._waiting.pop(key, None)
        if older is not None and not older.done():
            older.cancel()
        answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        child.channel.send(name, **fields)
        try:
            return await asyncio.wait_for(answer, ANSWER_S)
        except asyncio.TimeoutError:
            child.kill()
            raise ReaderLost(f"the {self._name} reader did not answer within {ANSWER_S:.0f} s") from None

    def warm(self) -> None:
        """Start the child in the background, if it does not run."""
        if self._child is None and self._warming is None:
            self._warming = asyncio.ensure_future(self._running())

    def tell(self, name: str, **fields: Any) -> None:
        """Send something that has no answer, if the child runs."""
        if self._child is not None and self._child.alive:
            self._child.channel.send(name, **fields)

    async def close(self) -> None:
        """End the child."""
        if self._warming is not None:
            await asyncio.gather(self._warming, return_exceptions=True)
        if self._child is not None:
            await self._child.end(0.5)
        if self._pump is not None:
            await asyncio.gather(self._pump, return_exceptions=True)

    async def _running(self) -> Child:
        async with self._starting:
            if self._child is not None and self._child.alive:
                return self._child
            await asyncio.sleep(back_off_s(self._failures))
            entry = Path(__file__).resolve().parent / "children" / "reader_entry"
            log = self._host.state_dir() / f"reader-{self._name}.log"
            self._child = await start(
                Launch(argv=[self._host.python, "-I", str(entry)], environ=self._host.environ, log=log, cwd="/")
            )
            self._pump = asyncio.ensure_future(self._read(self._child))
            self._on_restart()
            return self._child

    async def _read(self, child: Child) -> None:
        try:
            async for frame in child.channel.frames():
                self._failures = 0
                self._settle(frame)
        except WireError:
            child.kill()
        code = await child.wait()
        self._failures += 1
        lost, self._waiting = self._waiting, {}
        for answer in lost.values():
            if not answer.done():
                answer.set_exception(ReaderLost(f"the {self._name} reader ended: {words_of_end(code)}"))

    def _settle(self, frame: dict[str, Any]) -> None:
        key = str(frame.get("request") or f"{frame.get('path')}@{frame.get('generation')}")
        answer = self._waiting.pop(key, None)
        if answer is not None and not answer.done():
            answer.set_result(frame)


class Analyst:
    """What syntax and bindings say about texts, by asking the children."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[str, _Known] = {}
        self._text = Reading(host, "text", self._forget_all)
        self._bind = Reading(host, "bind", lambda: None)
        self._bind_turn = asyncio.Lock()

    @property
    def pids(self) -> tuple[int, ...]:
        """The children that run now."""
        return tuple(pid for pid in (self._text.pid, self._bind.pid) if pid is not None)

    def warm(self) -> None:
        """Start the child that binds while the other one parses: its answer will be wanted next."""
        self._bind.warm()

    def opened(self, path: str) -> None:
        """A document was opened or replaced as a whole."""
        self._known[path] = _Known()

    def edited(self, path: str, moves: tuple[ByteEdit, ...], texts: tuple[str, ...] | None) -> None:
        """A document was edited; `texts` are what each edit puts in, None where the whole was replaced."""
        known = self._known.setdefault(path, _Known())
        if known.whole:
            return
        if texts is None:
            self._known[path] = _Known()
            return
        known.edits += [(move.start, move.old_end, text) for move, text in zip(moves, texts, strict=True)]

    def closed(self, path: str) -> None:
        """A document was closed."""
        if self._known.pop(path, None) is not None:
            self._text.tell("close", path=path)

    async def analyse(self, path: str, language: str, index: LineIndex, generation: int) -> Analysis | None:
        """Kernels and findings of this text; None where it is too long or a newer request came. Raises ReaderLost."""
        if len(index.text) > MAX_TEXT_BYTES:
            return None
        frame = await self._ask_text(path, language, index, generation)
        if frame["frame"] == "resend":
            self._known[path] = _Known()
            frame = await self._ask_text(path, language, index, generation)
        if frame["frame"] != "analysed":
            return None
        return Analysis(
            sites=unpack_sites(frame["sites"]),
            findings=unpack_findings(frame["findings"]),
            parses=bool(frame["parses"]),
        )

    async def _ask_text(self, path: str, language: str, index: LineIndex, generation: int) -> dict[str, Any]:
        known = self._known.setdefault(path, _Known())
        whole, edits = known.whole, known.edits
        self._known[path] = _Known(whole=False)
        return await self._text.ask(
            f"{path}@{generation}",
            "analyse",
            path=path,
            language=language,
            generation=generation,
            text=index.text if whole else None,
            edits=[] if whole else edits,
        )

    async def bind(self, path: str, text: str, *, root: str, overlays: Mapping[str, str]) -> tuple[Bound, ...]:
        """How each kernel of a text is judged. Raises ReaderLost."""
        if len(text) > MAX_TEXT_BYTES:
            return ()
        async with self._bind_turn:
            request = self._host.new_id()
            frame = await self._bind.ask(
                request, "bind", request=request, path=path, text=text, root=root, overlays=list(overlays.items())
            )
        return unpack_bounds(frame, text) if frame["frame"] == "bound" else ()

    async def starter(self, text: str, kernel: str) -> str | None:
        """What to append to a text so that a kernel gets a reference; None where there is nothing to offer."""
        if len(text) > MAX_TEXT_BYTES:
            return None
        async with self._bind_turn:
            request = self._host.new_id()
            frame = await self._bind.ask(request, "starter", request=request, text=text, kernel=kernel)
        return frame.get("text")

    async def problem_sha(self, problem: Problem) -> str:
        """What a problem is known by. It takes a syntax tree of the whole text, so the child finds it. Raises ReaderLost."""
        texts: list[str] = []
        slim = packed(problem, texts)
        async with self._bind_turn:
            request = self._host.new_id()
            frame = await self._bind.ask(request, "sha", request=request, packed=slim, texts=texts)
        if frame["frame"] != "hashed":
            raise ReaderLost("the bind reader could not read a problem")
        return str(frame["sha"])

    async def lean(self, path: str, kernels: Sequence[str]) -> str | None:
        """The text that was analysed last, without what these kernels do not need. Raises ReaderLost."""
        request = self._host.new_id()
        frame = await self._text.ask(request, "lean", request=request, path=path, kernels=list(kernels))
        return frame.get("text")

    async def close(self) -> None:
        """End both children."""
        await asyncio.gather(self._text.close(), self._bind.close())

    def _forget_all(self) -> None:
        for path in self._known:
            self._known[path] = _Known()
