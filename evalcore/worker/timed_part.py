"""Owns the timed part of an evaluation as the loop sees it: lock, refills, samples of outputs, the reference's time.

Never reads a clock for a figure, except the outside one: how long N launches take from order to answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalcore.gpu.ring import SHIFT_BYTES, SHIFTS, slots_for
from evalcore.jobs import Flag
from evalcore.judge import needs_outside_clock
from evalcore.problem import TensorSpec
from evalcore.run_facts import OutsideClock
from evalcore.stats import FAST, THOROUGH
from evalcore.wire import encode
from evalcore.worker import relay
from evalcore.worker.desks import random_source, trial_seed
from evalcore.worker.evaluation import Evaluation
from evalcore.worker.exchange import Asking, Exchange
from evalcore.worker.post import Letter
from evalcore.worker.reference_time import reference_samples

FIGURES = ("device", "call", "graph")
"""All of them in thorough mode; on a save the first two, which tell launch-bound from the rest."""
MARGIN_BYTES = SHIFTS * SHIFT_BYTES
CHECKED_OUTPUTS = 2
"""Outputs of timed launches that the referee checks, of all that were offered."""
_BURST_MOST = 16
_BURSTS = 2
"""The shorter of so many counts, since the host may be interrupted; the outputs of each are checked."""


async def time_line(evaluation: Evaluation) -> None:
    """Time the candidate and, where it is not known yet, the reference. Facts go into the evaluation."""
    specs = evaluation.specs
    with evaluation.stages.timed("ring"):
        slots = await make_ring(evaluation.exchange, specs)
    await evaluation.joined()
    evaluation.stage("timing", 0, 1)
    async with evaluation.station.alone(evaluation.device, evaluation.stages):
        with evaluation.stages.timed("timing"):
            await _time_candidate(evaluation, slots)
            if needs_outside_clock(evaluation.job.mode, evaluation.job.trusted):
                await _outside(evaluation, specs)
    with evaluation.stages.timed("reference_time"):
        samples = await reference_samples(evaluation.tools, evaluation.desk, evaluation.line, stop_of(evaluation))
    evaluation.got.samples += samples
    evaluation.stage("timing", 1, 1)


def stop_of(evaluation: Evaluation) -> dict[str, Any]:
    """The stopping rule of the mode, as plain data."""
    return dict(encode(THOROUGH if evaluation.thorough else FAST))


async def make_ring(exchange: Exchange, specs: tuple[TensorSpec, ...]) -> int:
    """Have a case make and lend the buffers for timed calls. Returns how many sets there are."""
    size = sum(_size_bytes(spec) for spec in specs if spec.is_tensor)
    free = exchange.spare.facts.get("device", {}).get("free_bytes", 0)
    slots = slots_for(size, free)
    for slot in range(slots):
        await exchange.make(f"ring-{slot}", specs, margin=MARGIN_BYTES)
    return slots


def _size_bytes(spec: TensorSpec) -> int:
    last = sum((size - 1) * stride for size, stride in zip(spec.shape, spec.stride, strict=True))
    return (last + 1) * 8 if 0 not in spec.shape else 0


async def _time_candidate(evaluation: Evaluation, slots: int) -> None:
    exchange, line = evaluation.exchange, evaluation.line
    stop = stop_of(evaluation)
    serving = Serving(evaluation, exchange, slots, offers=2 * stop["most"])
    card = evaluation.station.card(evaluation.device) or {}
    question = {
        "ask": "time",
        "what": "candidate",
        "case": line.name,
        "figures": list(FIGURES if evaluation.thorough else FIGURES[:2]),
        "n": stop["most"],
        "stop": stop if evaluation.thorough else None,
        "slots": slots,
        "arch": card.get("arch", ""),
    }
    limits = evaluation.job.limits
    asking = Asking(run_s=limits.run_s, build_s=limits.build_s)
    body = await exchange.ask_plain(question, asking, serving.answer)
    try:
        evaluation.got.samples += relay.samples(body.get("samples"), case=line.name, figures=FIGURES)
        evaluation.got.profile = relay.profile(body.get("profile"))
    except relay.Breach as breach:
        raise await exchange.breach(breach) from None


class Serving:
    """Serves what a timed case asks: refills from the referee, and whether an output is wanted for checking."""

    def __init__(self, evaluation: Evaluation, exchange: Exchange, slots: int, *, offers: int) -> None:
        self._evaluation, self._exchange, self._slots = evaluation, exchange, slots
        # drawn here and now, in a process that the candidate is no fork of any more
        self._wanted = set(random_source.sample(range(max(offers, CHECKED_OUTPUTS)), CHECKED_OUTPUTS))
        self._offered = 0

    async def answer(self, letter: Letter) -> tuple[dict[str, Any], list[int]]:
        """One request of the case."""
        want = letter.body.get("want")
        if want == "refill":
            return await self._refill(letter.body), []
        if want == "sample":
            self._offered += 1
            return {"take": self._offered - 1 in self._wanted}, []
        if want == "check":
            return await self._check(letter), []
        raise relay.Breach("an unknown request")

    def _seed(self, index: Any) -> int:
        return trial_seed(self._evaluation.seed, "timed", relay.count(index, 1 << 20))

    async def _refill(self, body: dict[str, Any]) -> dict[str, Any]:
        fills = body.get("fills")
        if not isinstance(fills, list) or len(fills) > self._slots:
            raise relay.Breach("no refills")
        checked = [
            {
                "name": f"ring-{relay.count(each.get('slot'), self._slots - 1)}",
                "offset": relay.count(each.get("offset"), MARGIN_BYTES),
                "what": "timed",
                "seed": self._seed(each.get("index")),
            }
            for each in fills
        ]
        await self._exchange.fill(self._evaluation.line, checked)
        return {}

    async def _check(self, letter: Letter) -> dict[str, Any]:
        """An output that was taken: compared at once, while its process waits."""
        evaluation, body = self._evaluation, letter.body
        slot = relay.count(body.get("slot"), self._slots - 1)
        question = {
            "kind": "timed",
            "inputs": f"ring-{slot}",
            "offset": relay.count(body.get("offset"), MARGIN_BYTES),
        }
        seed = self._seed(body.get("index"))
        trial = await self._exchange.compare(evaluation.line, seed, letter, question)
        evaluation.got.trials.append(trial)
        return {}


async def _outside(evaluation: Evaluation, specs: tuple[TensorSpec, ...]) -> None:
    """Launch on many inputs in a row, timed by our own clock, and check every output afterwards."""
    exchange, line = evaluation.exchange, evaluation.line
    size = max(sum(_size_bytes(spec) for spec in specs if spec.is_tensor), 1)
    free = exchange.spare.facts.get("device", {}).get("free_bytes", 0)
    launches = max(min(_BURST_MOST, free // 8 // size), 1)
    names = [f"burst-{index}" for index in range(launches)]
    seeds = evaluation.seeds(line, launches, "burst")
    for name, seed in zip(names, seeds, strict=True):
        await exchange.make(name, specs)
        await exchange.fill(line, [{"name": name, "what": "inputs", "seed": seed}])
    empty_s = await _burst(evaluation, [])
    await _burst(evaluation, names)  # the allocator's first outputs cost more than the launches
    least_s, right = float("inf"), True
    for _round in range(_BURSTS):
        least_s = min(least_s, await _burst(evaluation, names))
        right = await _burst_right(evaluation, list(zip(names, seeds, strict=True))) and right
    seconds = max(least_s - empty_s, 0.0)
    evaluation.got.outside = OutsideClock(launches=launches, seconds=seconds, outputs_right=right)


async def _burst_right(evaluation: Evaluation, fills: list[tuple[str, int]]) -> bool:
    """Whether every output of the latest burst is right."""
    exchange, line = evaluation.exchange, evaluation.line
    right = True
    for index, (name, seed) in enumerate(fills):
        letter = await exchange.ask({"ask": "export", "index": index, "inputs": name})
        try:
            trial = await exchange.compare(line, seed, letter, {"kind": "timed", "inputs": name})
        except relay.Breach as breach:
            raise await exchange.breach(breach) from None
        finally:
            letter.close()
        evaluation.got.trials.append(trial)
        right = right and not any(each.out_of_tolerance or each.problem for each in trial.outputs)
    return right


async def _burst(evaluation: Evaluation, names: list[str]) -> float:
    """Seconds from the order to go to the answer, by the loop's clock."""
    loop, limits = evaluation.station.loop, evaluation.job.limits
    started = 0.0

    async def go(letter: Letter) -> tuple[dict[str, Any], list[int]]:
        nonlocal started
        started = loop.time()
        return {}, []

    await evaluation.exchange.ask_plain({"ask": "burst", "inputs": names}, Asking(run_s=limits.run_s), go)
    return loop.time() - started


def note(evaluation: Evaluation, code: str, message: str) -> None:
    """Add a remark to what loading and running already knew."""
    learned = evaluation.got.learned
    if learned is not None:
        flags = (*learned.notes, Flag(code=code, message=message))
        evaluation.got.learned = replace(learned, notes=flags)
