"""Owns the loop's side of referees: one per problem, made on demand, stocked while idle, given back. Never compares."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from evalcore.facts import Crash, Trial
from evalcore.problem import Case, Problem, TensorSpec, Work
from evalcore.wire import decode, encode
from evalcore.worker.children import Child, ChildEnded
from evalcore.worker.mains import referee_main
from evalcore.worker.memory import Watch
from evalcore.worker.post import Letter
from evalcore.worker.station import Station, roots_of

WARM_S = 120.0
ANSWER_S = 180.0
"""For anything that a reference computes: on a CPU, or in slices on a card, it may be slow."""
_MOST_DESKS = 3
_STOCK_BYTES = 256 << 20
"""Input sets and keys made ahead of need hold at most this much."""
_SEED_BITS = 32

random_source = random.SystemRandom()


class ReferenceFailed(Exception):
    """The reference itself could not be loaded or run; `crash` says how."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.message)
        self.crash = crash


class Untransferable(Exception):
    """What a case exported could not be opened, or does not hold what it claims."""


def trial_seed(seed: int, kind: str, index: int) -> int:
    """The seed of one trial of an evaluation: a function of the base seed that a row records, and of nothing else."""
    digest = hashlib.blake2b(f"{seed}:{kind}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 33


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The reference at one size setting."""

    init: tuple[TensorSpec, ...]
    state: tuple[TensorSpec, ...]
    files: tuple[tuple[str, str], ...]
    flags: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stocked:
    """One set of inputs with its key lies ready."""

    specs: tuple[TensorSpec, ...]
    input_bytes: int
    output_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is known of a case before any candidate is seen."""

    probes: tuple[dict[str, Any], ...]
    work: Work | None


class Desk:
    """One referee. Questions are put one after the other."""

    def __init__(self, station: Station, problem: Problem, sha: str, device: str, model_seed: int) -> None:
        self.problem, self.sha, self.device = problem, sha, device
        self.model_seed = model_seed
        self.next_seed = self._fresh_seed()
        """Base seed of the next evaluation without one of its own; sets for it are made ahead."""
        self.station = station
        self._folder = station.child_folder("referee")
        self._turn = asyncio.Lock()
        self._opened: dict[str, Opened] = {}
        self._stocked: dict[tuple[str, int], Stocked] = {}
        self._studied: dict[str, Study] = {}
        settling = station.settling(self._folder, device, roots_of(problem))
        self.child: Child = station.family.fork(
            "referee", lambda post: referee_main(post, settling, problem=problem, seed=model_seed)
        )
        self.in_use = 0
        self.choices: dict[Any, Any] = {}
        """What `evalcore.worker.sizes` chose before, for the same question."""

    def _fresh_seed(self) -> int:
        return self.model_seed << _SEED_BITS | random_source.getrandbits(_SEED_BITS)

    def take_seed(self, wanted: int | None) -> int:
        """The base seed of an evaluation: the wanted one, or the one that was prepared."""
        if wanted is not None:
            return wanted
        seed, self.next_seed = self.next_seed, self._fresh_seed()
        return seed

    @property
    def alive(self) -> bool:
        """False once its process is gone."""
        return self.child.alive

    async def ask(self, body: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        """One question. Raises ReferenceFailed where the reference failed, also where its process ended over it.

        Whoever stops waiting does not disturb the next one: the answer is still waited for, by nobody.
        """
        return await asyncio.shield(self.station.loop.create_task(self._ask(body, descriptors)))

    async def _ask(self, body: dict[str, Any], descriptors: list[int] | None) -> dict[str, Any]:
        async with self._turn:
            watch = Watch(self.child, self.station.memory_limit_bytes)
            try:
                letter: Letter = await self.child.ask(body, timeout_s=ANSWER_S, descriptors=descriptors)
            except ChildEnded:
                ending = await self.child.ended()
                raise ReferenceFailed(_ended(ending.cause, ending.signal, self.child.tail)) from None
            finally:
                watch.stop()
        letter.close()
        if "breach" in letter.body:
            raise Untransferable(letter.body["breach"])
        if "crash" in letter.body:
            raise ReferenceFailed(decode(Crash, letter.body["crash"]))
        return letter.body

    async def size(self, case: Case) -> tuple[int | None, int | None]:
        """(elements, bytes) of a case's inputs, without making them; None where that cannot be told."""
        found = await self.ask({"ask": "size", "case": encode(case)})
        return found["elements"], found["bytes"]

    async def study(self, case: Case, seeds: tuple[int, int]) -> Study:
        """What is known of a case before any candidate: counted work, and whether wrong answers would be caught."""
        if case.name not in self._studied:
            found = await self.ask({"ask": "study", "case": encode(case), "seeds": list(seeds)})
            work = found["work"]
            self._studied[case.name] = Study(
                probes=tuple(found["probes"]), work=decode(Work, work) if work is not None else None
            )
        return self._studied[case.name]

    async def open(self, case: Case) -> Opened:
        """Load the reference at a case's sizes."""
        if case.name not in self._opened:
            found = await self.ask({"ask": "open", "case": encode(case)})
            self._opened[case.name] = Opened(
                init=decode(tuple[TensorSpec, ...], found["init"]),  # type: ignore[type-var]
                state=decode(tuple[TensorSpec, ...], found["state"]),  # type: ignore[type-var]
                files=decode(tuple[tuple[str, str], ...], found["files"]),  # type: ignore[type-var]
                flags=found["flags"],
            )
        return self._opened[case.name]

    async def stock(self, case: Case, seed: int) -> Stocked:
        """Make one set of inputs and its key, if it is not there."""
        key = (case.name, seed)
        if key not in self._stocked:
            found = await self.ask({"ask": "stock", "case": encode(case), "seed": seed})
            self._stocked[key] = Stocked(
                specs=decode(tuple[TensorSpec, ...], found["specs"]),  # type: ignore[type-var]
                input_bytes=found["input_bytes"],
                output_bytes=found["output_bytes"],
                seconds=found["seconds"],
            )
        return self._stocked[key]

    async def compare(self, case: Case, seed: int, question: dict[str, Any], descriptors: list[int]) -> Trial:
        """One trial's facts. The set is used up."""
        body = {"ask": "compare", "case": encode(case), "seed": seed, **question}
        found = await self.ask(body, descriptors)
        if not question.get("keep"):
            self._stocked.pop((case.name, seed), None)
        return decode(Trial, found["trial"])

    async def forget(self, owner: str, *, seeds: tuple[int, ...] = (), cases: tuple[str, ...] = ()) -> None:
        """Let go of what a case lent, of its unused sets, and of sizes that were tried beside the given ones."""
        self._stocked = {
            key: each for key, each in self._stocked.items() if key[1] not in seeds and key[0] not in cases
        }
        for name in cases:
            self._opened.pop(name, None)
        if self.alive:
            await self.ask({"ask": "forget", "owner": owner, "seeds": list(seeds), "cases": list(cases)})

    async def stock_ahead(self, case: Case, trials: int) -> bool:
        """Make one more of the sets that the next evaluation will need. False when all are there."""
        seeds = [trial_seed(self.next_seed, case.name, index) for index in range(trials)]
        held = [self._stocked[case.name, seed] for seed in seeds if (case.name, seed) in self._stocked]
        size = max((each.input_bytes + 4 * each.output_bytes for each in held), default=0)
        for seed in seeds:
            if (case.name, seed) not in self._stocked:
                if size * (len(held) + 1) > _STOCK_BYTES and held:
                    return False
                await self.stock(case, seed)
                return True
        return False

    def dismiss(self) -> None:
        """End the process and sweep its folder."""
        self.station.bury(self.child, self._folder)


def _ended(cause: str | None, signal: int | None, tail: bytearray) -> Crash:
    kind = {"memory": "out_of_memory", "timeout": "timeout"}.get(cause or "", "killed")
    words = {
        "out_of_memory": "it needs more memory than this machine has",
        "timeout": f"it took longer than {ANSWER_S:.0f} s",
        "killed": "its process ended",
    }[kind]
    return Crash(kind=kind, message=words, signal=signal, detail=tail.decode(errors="replace")[-2000:])


class Desks:
    """All referees of this loop, newest use last."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._desks: OrderedDict[tuple[str, str], Desk] = OrderedDict()

    def get(self, problem: Problem, sha: str, device: str, seed: int | None = None) -> Desk:
        """The referee of a problem; a fresh one where there is none, or where a given seed asks for another model."""
        key = (sha, device)
        desk = self._desks.get(key)
        wanted = None if seed is None else seed >> _SEED_BITS
        if desk is not None and (not desk.alive or (wanted is not None and wanted != desk.model_seed)):
            self._drop(key)
            desk = None
        if desk is None:
            model_seed = random_source.getrandbits(20) if wanted is None else wanted
            desk = Desk(self._station, problem, sha, device, model_seed)
            self._desks[key] = desk
        self._desks.move_to_end(key)
        self._thin()
        return desk

    def newest(self) -> Desk | None:
        """The one that was used last."""
        return next(reversed(self._desks.values()), None)

    def _thin(self) -> None:
        idle = [key for key, desk in self._desks.items() if not desk.in_use]
        for key in idle[: max(len(self._desks) - _MOST_DESKS, 0)]:
            self._drop(key)

    def discard(self, desk: Desk) -> None:
        """Dismiss one whose reference failed on a card: a fault there may have spoilt its context for good."""
        for key in [key for key, held in self._desks.items() if held is desk]:
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        self._desks.pop(key).dismiss()

    def drop(self) -> None:
        """Dismiss all that are not in use."""
        for key in [key for key, desk in self._desks.items() if not desk.in_use]:
            self._drop(key)
