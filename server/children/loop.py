"""Owns one worker loop: its start and hello, the jobs given to it, its restarts. Never chooses which loop gets a job.

A loop runs in the user's interpreter. It is started by path, so that only `evalcore` becomes importable there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcore import wire
from evalcore.facts import KernelFacts
from evalcore.fingerprint import evaluator_sha
from evalcore.jobs import Diagnostic, EvalJob, Measurement, Refusal
from server.children.process import Child, Launch, back_off_s, start, words_of_end
from server.host import Host

HELLO_S = 180.0
"""Importing torch and triton from a cold disk has taken over a minute."""

CANCEL_S = 4.0
"""A loop that does not confirm a cancelled job in this time is killed and started anew."""

OnStage = Callable[[str, int, int], None]

log = logging.getLogger("odyssey.loop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a loop says about itself and its machine."""

    protocol: int
    flavour: str
    evaluator_sha: str
    python: str
    executable: str
    torch: str | None
    triton: str | None
    devices: tuple[dict[str, Any], ...]
    isolation: tuple[str, ...]
    missing: tuple[dict[str, str], ...]

    @classmethod
    def of(cls, frame: Mapping[str, Any]) -> Hello:
        """Read leniently: a newer or older loop must be able to say who it is before it is refused."""
        return cls(
            protocol=int(frame.get("protocol") or 0),
            flavour=str(frame.get("flavour") or ""),
            evaluator_sha=str(frame.get("evaluator_sha") or ""),
            python=str(frame.get("python") or ""),
            executable=str(frame.get("executable") or ""),
            torch=frame.get("torch"),
            triton=frame.get("triton"),
            devices=tuple(each for each in frame.get("devices") or () if isinstance(each, dict)),
            isolation=tuple(str(each) for each in frame.get("isolation") or ()),
            missing=tuple(
                {key: str(each.get(key) or "") for key in ("what", "message", "remedy")}
                for each in frame.get("missing") or ()
                if isinstance(each, dict)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """How a loop is started."""

    flavour: str
    python: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the front end says about a text."""

    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[KernelFacts, ...]


class WorkerLoop:
    """One loop, started when first needed and again after it died."""

    def __init__(self, host: Host, plan: LoopPlan, on_change: Callable[[], None]) -> None:
        self._host = host
        self.plan = plan
        self._on_change = on_change
        self._child: Child | None = None
        self._scratch: Path | None = None
        self._pump: asyncio.Task[None] | None = None
        self._hello: asyncio.Future[Hello | Refusal] | None = None
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._stages: dict[str, OnStage] = {}
        self._starting = asyncio.Lock()
        self._evaluator_sha = ""
        self._greeting: asyncio.Future[None] | None = None
        self._failures = 0
        self._closed = False
        self.on_frame: Callable[[dict[str, Any]], None] | None = None
        """Called with frames that answer nothing in particular: opponents, ceilings."""

    @property
    def state(self) -> Hello | Refusal | None:
        """What is known now: ready, refused, or None while it starts or is off."""
        if self._hello is None or not self._hello.done() or self._hello.cancelled():
            return None
        return self._hello.result()

    @property
    def started(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.alive

    @property
    def pid(self) -> int | None:
        """The loop's process id while it runs."""
        return self._child.pid if self._child is not None and self._child.alive else None

    async def ready(self) -> Hello | Refusal:
        """Start it if need be; its hello, or why it cannot serve."""
        async with self._starting:
            if self._closed:
                return Refusal(code="cancelled", message="The server is shutting down", remedy="")
            if self.started and self.state is _MISMATCH and self._child is not None:
                await self._child.end(0.1)
            if not self.started:
                await self._start()
        assert self._hello is not None
        return await asyncio.shield(self._hello)

    async def evaluate(self, job: EvalJob, on_stage: OnStage | None = None) -> Measurement | Refusal:
        """Judge one job. Cancelling this cancels the job; a loop that does not obey is killed."""
        ready = await self.ready()
        if isinstance(ready, Refusal):
            return ready
        if on_stage is not None:
            self._stages[job.job_id] = on_stage
        try:
            backstop_s = 2 * job.limits.build_s + 4 * job.limits.run_s + 60
            frame = await self._ask(job.job_id, wire_frame("evaluate", job=job), backstop_s)
        except asyncio.CancelledError:
            await self._cancel(job.job_id)
            raise
        except wire.WireError as problem:
            return Refusal(
                code="unreadable", message=f"The text is too long to be judged: {problem}", remedy="Split the file."
            )
        finally:
            self._stages.pop(job.job_id, None)
        return await self._outcome(frame)

    async def check(self, check_id: str, **fields: Any) -> Checked | Refusal:
        """Let the front end look at a text."""
        ready = await self.ready()
        if isinstance(ready, Refusal):
            return ready
        try:
            frame = await self._ask(check_id, wire_frame("check", check_id=check_id, **fields), 60.0)
        except wire.WireError as problem:
            return Refusal(
                code="unreadable", message=f"The text is too long to be checked: {problem}", remedy="Split the file."
            )
        if frame["frame"] == "refused":
            return wire.decode(Refusal, frame["refusal"])
        return Checked(
            diagnostics=tuple(wire.decode(Diagnostic, each) for each in frame.get("diagnostics", ())),
            kernels=tuple(wire.decode(KernelFacts, each) for each in frame.get("kernels", ())),
        )

    def tell(self, name: str, **fields: Any) -> None:
        """Send something that has no awaited answer; nothing happens where the loop does not run."""
        if self._child is not None and isinstance(self.state, Hello):
            with contextlib.suppress(wire.WireError):
                self._child.channel.send_line(wire_frame(name, **fields))

    async def close(self) -> None:
        """End the loop and everything it started."""
        self._closed = True
        child = self._child
        if child is not None and child.alive:
            with contextlib.suppress(wire.WireError):
                child.channel.send("shutdown")
            await child.end()
        if self._pump is not None:
            await asyncio.gather(self._pump, return_exceptions=True)

    def last_words(self) -> tuple[str, ...]:
        """The tail of what the loop wrote on stderr."""
        return tuple(self._child.last_words) if self._child is not None else ()

    async def _start(self) -> None:
        await asyncio.sleep(back_off_s(self._failures))
        self._hello = asyncio.get_running_loop().create_future()
        self._scratch = self._host.scratch_dir()
        entry = self._host.package_root / "evalcore" / "_entry"
        launch = Launch(
            argv=[self.plan.python, str(entry), "--role", "loop", "--flavour", self.plan.flavour,
                  "--scratch", str(self._scratch)],
            environ=self._host.environ,
            log=self._host.state_dir() / f"worker-{self.plan.flavour}.log",
            cwd="/",
            limit_bytes=wire.MAX_LINE_BYTES,
        )  # fmt: skip
        try:
            self._child = await start(launch)
        except OSError as problem:
            self._failures += 1
            self._hello.set_result(_no_python(self.plan.python, problem))
            self._on_change()
            return
        self._child.channel.send_line(wire_frame("hello", protocol=wire.PROTOCOL, options=dict(self.plan.options)))
        self._pump = asyncio.ensure_future(self._read(self._child, self._hello, self._scratch))
        self._on_change()

    async def _read(self, child: Child, hello: asyncio.Future[Hello | Refusal], scratch: Path) -> None:
        deadline = asyncio.get_running_loop().call_later(HELLO_S, _kill_silent, child, hello)
        try:
            async for frame in child.channel.frames():
                self._take(frame, hello)
        except wire.WireError as problem:
            log.warning("%s loop: %s", self.plan.flavour, problem)
            child.kill()
        deadline.cancel()
        code = await child.wait()
        child.kill()  # what it may have left behind in its group
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
        self._failures += 1
        words = words_of_end(code)
        refusal = _lost(self.plan.flavour, words, child.last_words)
        if not hello.done():
            hello.set_result(refusal)
        lost, self._answers = self._answers, {}
        for answer in lost.values():
            if not answer.done():
                answer.set_result({"frame": "refused", "refusal": wire.encode(refusal)})
        if not self._closed:
            self._on_change()

    def _take(self, frame: dict[str, Any], hello: asyncio.Future[Hello | Refusal]) -> None:
        name = frame["frame"]
        if name == "hello" and not hello.done():
            self._greeting = asyncio.ensure_future(self._greet(Hello.of(frame), hello))
        elif name == "stage":
            on_stage = self._stages.get(str(frame.get("job_id")))
            if on_stage is not None:
                on_stage(str(frame.get("stage")), int(frame.get("done") or 0), int(frame.get("total") or 0))
        elif name in ("done", "refused", "checked"):
            self._failures = 0
            answer = self._answers.pop(str(frame.get("job_id") or frame.get("check_id")), None)
            if answer is not None and not answer.done():
                answer.set_result(frame)
        elif name == "log":
            log.log(
                _LEVELS.get(str(frame.get("level")), logging.INFO),
                "%s loop: %s",
                self.plan.flavour,
                frame.get("message"),
            )
        elif self.on_frame is not None:
            self.on_frame(frame)

    async def _greet(self, said: Hello, hello: asyncio.Future[Hello | Refusal]) -> None:
        """Accept a loop that runs the evaluator which lies on the disk now; another one judges by other rules."""
        same = said.protocol == wire.PROTOCOL
        if same and said.evaluator_sha != self._evaluator_sha:
            self._evaluator_sha, _ = await asyncio.to_thread(evaluator_sha)
            same = said.evaluator_sha == self._evaluator_sha
        if not hello.done():
            unfit = next(iter(said.missing), None) if not said.evaluator_sha else None
            if unfit is not None:  # an interpreter that cannot run the evaluator at all says so and ends
                hello.set_result(Refusal(code="no_python", message=unfit["message"], remedy=unfit["remedy"]))
            else:
                hello.set_result(said if same else _MISMATCH)
            self._on_change()

    async def _ask(self, key: str, line: bytes, limit_s: float) -> dict[str, Any]:
        assert self._child is not None
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        self._child.channel.send_line(line)
        try:
            return await asyncio.wait_for(asyncio.shield(answer), limit_s)
        except asyncio.TimeoutError:
            self._child.kill()
            return await answer  # the reader settles it as lost

    async def _cancel(self, job_id: str) -> None:
        answer = self._answers.get(job_id)
        if answer is None or self._child is None:
            return
        with contextlib.suppress(wire.WireError):
            self._child.channel.send("cancel", job_id=job_id)
        done, _ = await asyncio.wait({answer}, timeout=CANCEL_S)
        if not done:
            log.warning("the %s loop did not confirm a cancelled job within %s s", self.plan.flavour, CANCEL_S)
            self._child.kill()
            await asyncio.wait({answer}, timeout=CANCEL_S)  # settled when it is really gone: the next job starts anew

    async def _outcome(self, frame: dict[str, Any]) -> Measurement | Refusal:
        if frame["frame"] == "refused":
            return wire.decode(Refusal, frame["refusal"])
        payload = frame.get("measurement")
        if payload is None:
            payload = await asyncio.to_thread(self._read_file, str(frame.get("file")))
        if payload is None:
            return _lost(self.plan.flavour, "its result could not be read", ())
        return await asyncio.to_thread(wire.decode, Measurement, payload)

    def _read_file(self, path: str) -> Any:
        """A result too long for a frame: a file in the loop's scratch folder and nowhere else."""
        place = Path(path).resolve()
        if self._scratch is None or not place.is_relative_to(self._scratch.resolve()):
            return None
        try:
            return json.loads(place.read_bytes())
        except (OSError, ValueError):
            return None


_MISMATCH = Refusal(
    code="protocol_mismatch",
    message="The worker runs another version of Odyssey's evaluator than the one that is installed",
    remedy="Restart the workers; if that does not help, restart the language server.",
)

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def _kill_silent(child: Child, hello: asyncio.Future[Hello | Refusal]) -> None:
    if not hello.done():
        child.kill()


def wire_frame(name: str, **fields: Any) -> bytes:
    """A frame's line; raises WireError where it is too long for the wire."""
    return wire.frame(name, **fields)


def _no_python(python: str, problem: OSError) -> Refusal:
    return Refusal(
        code="no_python",
        message=f"{python} cannot be started ({problem.strerror or problem})",
        remedy="Set odyssey.python to an interpreter that has torch and triton.",
    )


def _lost(flavour: str, words: str, last_words: Any) -> Refusal:
    tail = next((line for line in reversed(tuple(last_words)) if line.strip()), "")
    return Refusal(
        code="worker_lost",
        message=f"The worker ({flavour}) ended: {words}" + (f"; its last words: {tail[:200]}" if tail else ""),
        remedy="It is started again with the next save.",
    )
