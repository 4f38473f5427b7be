"""Owns the conversation with one case and its referee: every question of an evaluation, checked on the way back.

Never decides what is asked next. What a case says passes through `relay` here and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalcore.facts import Crash, Trial
from evalcore.jobs import Limits
from evalcore.problem import Case, Problem, ProgramKind, TensorSpec
from evalcore.wire import encode
from evalcore.worker import relay
from evalcore.worker.children import Answer, ChildEnded
from evalcore.worker.desks import Desk, Opened, ReferenceFailed, Untransferable
from evalcore.worker.endings import crash_of, tail_text
from evalcore.worker.post import Letter
from evalcore.worker.spares import Spare

STEP_S = 30.0
"""For questions that run none of the candidate's code."""


FORGET_S = 0.5
"""How long a finished case may live on for the referee's sake; the referee may be busy with something long."""


class CaseFailed(Exception):
    """The case ended, or says that its program failed; `crash` says how."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.message)
        self.crash = crash


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How long one question may take."""

    run_s: float
    build_s: float = 0.0
    """Granted beside, for what the case reports as building."""
    phase: str = "run"
    """What to call it when `run_s` is over."""


class Exchange:
    """One case, one referee, one owner's name between them."""

    def __init__(self, desk: Desk, spare: Spare, limits: Limits) -> None:
        self.desk, self.spare, self.limits = desk, spare, limits
        self.owner = f"case-{spare.child.pid}"
        """Under which name the referee holds what this case lent."""
        self.canaries: list[str] = []
        self.build_s = 0.0

    async def ask(self, question: dict[str, Any], asking: Asking | None = None, answer: Answer | None = None) -> Letter:
        """One question; the letter's descriptors are the caller's to close. Raises CaseFailed, Untransferable."""
        asking = asking or Asking(run_s=STEP_S)
        child = self.spare.child
        try:
            letter = await child.ask(question, timeout_s=asking.run_s, build_s=asking.build_s, answer=answer)
        except ChildEnded:
            ending = await child.ended()
            if ending.cause == "timeout" and asking.phase == "build":
                ending = replace(ending, message="build")
            raise CaseFailed(crash_of(ending, self.limits, tail_text(child, self.spare.folder))) from None
        if "untransferable" in letter.body:
            letter.close()
            raise Untransferable(str(letter.body["untransferable"])[:300])
        if "crash" in letter.body:
            letter.close()
            try:
                raise CaseFailed(relay.crash(letter.body["crash"]))
            except relay.Breach as breach:
                raise await self.breach(breach) from None
        return letter

    async def ask_plain(
        self, question: dict[str, Any], asking: Asking | None = None, answer: Answer | None = None
    ) -> dict[str, Any]:
        """Like `ask`, for answers that bring no descriptors."""
        letter = await self.ask(question, asking, answer)
        letter.close()
        return letter.body

    async def breach(self, breach: relay.Breach) -> CaseFailed:
        """End a case that sent something of the wrong form. Returns the failure to raise."""
        child = self.spare.child
        child.end("breach", f"it wrote something unexpected on its channel ({breach})")
        return CaseFailed(crash_of(await child.ended(), self.limits, tail_text(child, self.spare.folder)))

    async def load(self, problem: Problem, case: Case, opened: Opened, *, how: dict[str, Any] | None = None) -> Any:
        """Load one side at a case's sizes; its parameters as [[name, shape]]. `how` goes into the question."""
        how = how or {}
        apart = problem.reference.path != problem.candidate.path
        if apart and problem.candidate.kind is not ProgramKind.CUDA_KERNEL and how.get("side") != "reference":
            # the answer's own source is no business of the process that answers; a bare CUDA kernel has none beside it
            problem = replace(problem, reference=replace(problem.reference, text=""))
        if any(spec.is_tensor for spec in opened.init):
            await self.make("init", opened.init)
            await self.fill(case, [{"name": "init", "what": "init"}])
        question = {
            "ask": "load",
            "problem": encode(problem),
            "sizes": dict(case.sizes),
            "seed": self.desk.model_seed,
            "init": encode(opened.init),
            **how,
        }
        body = await self.ask_plain(question, Asking(run_s=self.limits.build_s, phase="build"))
        try:
            self.build_s += relay.seconds(body.get("seconds"))
            return relay.shapes(body.get("state"))
        except relay.Breach as breach:
            raise await self.breach(breach) from None

    async def share_state(self, case: Case, opened: Opened, own: dict[str, tuple[int, ...]]) -> None:
        """Copy the reference's parameters over where names and shapes match, as KernelBench does."""
        shared = [spec for spec in opened.state if own.get(spec.name) == spec.shape]
        if not shared:
            return
        await self.make("state", shared)
        await self.fill(case, [{"name": "state", "what": "state", "only": [spec.name for spec in shared]}])
        await self.ask_plain({"ask": "state"})

    async def make(self, name: str, specs: Sequence[TensorSpec], *, margin: int | None = None) -> None:
        """Have the case make storage and lend it to the referee under a name."""
        question: dict[str, Any] = {"ask": "make", "name": name, "specs": encode(specs)}
        if margin is not None:
            question["margin"] = margin
        letter = await self.ask(question)
        try:
            handles = relay.handles(letter.body.get("handles"), len(letter.descriptors))
            if len(handles) != sum(spec.is_tensor for spec in specs):
                raise relay.Breach("other storage than was asked for")
            body = {"ask": "lend", "owner": self.owner, "name": name, "handles": handles}
            await self.desk.ask(body, letter.descriptors)
        except relay.Breach as breach:
            raise await self.breach(breach) from None
        finally:
            letter.close()

    async def fill(self, case: Case, fills: list[dict[str, Any]]) -> None:
        """Have the referee write values into lent storage."""
        await self.desk.ask({"ask": "fill", "case": encode(case), "owner": self.owner, "fills": fills})

    async def trial(
        self, case: Case, seed: int, *, kind: str = "correctness", run_s: float | None = None, **options: Any
    ) -> Trial:
        """One run on fresh inputs, compared by the referee. A run that ends badly is a Trial with a crash.

        `options` go into the questions: `force` and `ablate` to the case, `twist` and `keep` to the referee, `backward`
        (which gradients) to both.
        """
        told: dict[str, Any] = {name: options[name] for name in ("twist", "keep", "backward") if name in options}
        asked: dict[str, Any] = {name: options[name] for name in ("force", "ablate", "backward") if name in options}
        await self.fill(case, [{"name": "inputs", "what": "inputs", "seed": seed, **told}])
        asking = Asking(run_s=run_s or self.limits.run_s, build_s=self.limits.build_s)
        try:
            letter = await self.ask({"ask": "run", "inputs": "inputs", **asked}, asking)
        except CaseFailed as failed:
            return Trial(case=case.name, seed=seed, outputs=(), crash=failed.crash, kind=kind, origin=case.origin)
        try:
            hurt = relay.texts(letter.body.get("canaries", []))
            self.canaries += [each for each in hurt if each not in self.canaries]
            self.build_s += relay.seconds(letter.body.get("build_s", 0.0))
            return await self.compare(case, seed, letter, {"kind": kind, "inputs": "inputs", **told})
        except relay.Breach as breach:
            raise await self.breach(breach) from None
        finally:
            letter.close()

    async def compare(self, case: Case, seed: int, letter: Letter, question: dict[str, Any]) -> Trial:
        """Hand a case's outputs to the referee. Raises Breach for what has the wrong form."""
        handles = relay.handles(letter.body.get("handles"), len(letter.descriptors))
        outputs = relay.outputs(letter.body.get("outputs"), handles)
        body = {**question, "owner": self.owner, "handles": handles, "outputs": outputs}
        return await self.desk.compare(case, seed, body, letter.descriptors)

    def leave(self, *, seeds: tuple[int, ...] = (), cases: tuple[str, ...] = ()) -> None:
        """End the case, and have the referee let go of what it holds for it. Returns at once."""
        self.desk.station.hold(self._leave(seeds, cases))

    async def _leave(self, seeds: tuple[int, ...], cases: tuple[str, ...]) -> None:
        """First the referee closes what it opened, then the memory goes away with its owner."""
        forgetting = asyncio.ensure_future(self._forget(seeds, cases))
        await asyncio.wait([forgetting], timeout=FORGET_S)
        self.desk.station.bury(self.spare.child, self.spare.folder)
        await forgetting

    async def _forget(self, seeds: tuple[int, ...], cases: tuple[str, ...]) -> None:
        with contextlib.suppress(ReferenceFailed, Untransferable):
            await self.desk.forget(self.owner, seeds=seeds, cases=cases)

    async def learn(self) -> relay.Learned:
        """What the case knows after its runs."""
        body = await self.ask_plain({"ask": "facts"})
        try:
            return relay.learned(body)
        except relay.Breach as breach:
            raise await self.breach(breach) from None
