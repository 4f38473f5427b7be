"""Owns building a dispatch: measure, admit, decide by A/B, write, judge what was written, and take back what is slower.

The rules are in evalcore.admission, the text in server.dispatch.module; every number is a ledger row before it counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalcore.admission import AMBIGUOUS, Candidate, CaseFigures, Choice, Group, choose, group_verdict
from evalcore.jobs import Mode, Refusal
from evalcore.problem import Case, TensorSpec
from evalcore.stats import AB_SAME
from server.dispatch.figures import Ask, Desk, Known, judge, measure
from server.dispatch.merging import CannotMerge
from server.dispatch.module import Entry, Sheet, look_of, module_text

NEVER_SLOWER = 1 / (1 + AB_SAME)
"""The module's worst case must reach this over the baseline: the baseline's own path differs from itself by as much."""
MOST_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A dispatch that has passed its own judgement."""

    text: str
    sha: str
    seq: int
    """The row of the module itself."""
    choices: tuple[Choice, ...]
    duels: tuple[dict[str, Any], ...]
    worst_speedup: float | None
    seqs: tuple[int, ...]
    """Every row that it rests on."""
    card: str | None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Duels:
    """Interleaved A/Bs, asked before `choose` runs; each pair once."""

    desk: Desk
    known: Mapping[str, Known]
    verdicts: dict[tuple[str, str, str], str] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, group: Group, a: Candidate, b: Candidate) -> str:
        """a against b over a group's cases."""
        verdicts = []
        for case in group.cases:
            key = (a.sha, b.sha, case)
            if key not in self.verdicts:
                self.verdicts[key] = await self._once(a, b, case)
            verdicts.append(self.verdicts[key])
        return group_verdict(verdicts)

    async def _once(self, a: Candidate, b: Candidate, case: str) -> str:
        self.desk.say(f"A/B {a.sha[:12]} against {b.sha[:12]} on {case}")
        asked = Ask(text=self.known[a.sha].text, mode=Mode.FAST, case=case, against=self.known[b.sha].text,
                    author=self.known[a.sha].author, intent=f"A/B against {b.sha[:12]} for a dispatch")  # fmt: skip
        found = await judge(self.desk, asked)
        if isinstance(found, Refusal):
            return AMBIGUOUS
        measured, seq = found
        ab = measured.ab or {}
        self.log.append({"a": a.sha, "b": b.sha, "case": case, "row": seq, **ab})
        return str(ab.get("verdict", AMBIGUOUS))


def groups_of(cases: Sequence[Case], named: Mapping[str, Sequence[str]]) -> list[Group]:
    """Groups by name where given, else each timed case by itself; all untimed cases guard every group."""
    timed = [case.name for case in cases if case.timed and case.origin == "given"]
    guards = tuple(case.name for case in cases if case.name not in timed)
    grouped = {name for names in named.values() for name in names}
    unknown = grouped - set(timed)
    if unknown:
        raise CannotMerge(f"no case is called {sorted(unknown)[0]!r}; there are {', '.join(timed)}")
    made = [Group(name=name, cases=tuple(names), guards=guards) for name, names in named.items()]
    return made + [Group(name=name, cases=(name,), guards=guards) for name in timed if name not in grouped]


async def build(
    desk: Desk, asks: Mapping[str, Ask], groups: Sequence[Group], specs: Mapping[str, tuple[TensorSpec, ...]]
) -> Built | Refusal:
    """The whole way. `asks`: candidates by sha; `specs`: how each case's inputs look. Raises CannotMerge."""
    timed = [case for group in groups for case in group.cases]
    known: dict[str, Known] = {}
    for sha, ask in asks.items():
        found = await measure(desk, ask, timed)
        if isinstance(found, Refusal):
            return found
        known[sha] = found
    duels = _Duels(desk, known)
    choices = [await _choose(group, [each.candidate for each in known.values()], duels) for group in groups]
    seqs = [seq for each in known.values() for seq in each.seqs] + [each["row"] for each in duels.log]
    for _ in range(MOST_ROUNDS):
        text = module_text(_sheet(desk, known, choices, specs))
        parents = tuple(dict.fromkeys(choice.winner for choice in choices if choice.winner))
        ask = Ask(text=text, mode=Mode.THOROUGH, author="tuner", intent="dispatch by shape", parents=parents,
                  renamed=True)  # fmt: skip
        judged = await measure(desk, ask, timed)
        if isinstance(judged, Refusal):
            return judged
        wrong = [name for name, case in judged.candidate.cases.items() if not case.right]
        slower = _slower(judged.candidate, groups)
        if not wrong and not slower:
            return _built(judged, choices, duels, seqs)
        if not _take_back(choices, slower or wrong):
            words = f"The module is {'wrong on ' + wrong[0] if wrong else 'slower than the baseline on ' + slower[0]}"
            return Refusal(code="dispatch_refused", message=words, remedy="Look at it: odyssey ledger show "
                           + str(judged.seqs[-1]))  # fmt: skip
    return Refusal(code="dispatch_refused", message="No table was found that is never slower than the baseline",
                   remedy="Measure again on a quiet card.")  # fmt: skip


async def _choose(group: Group, candidates: Sequence[Candidate], duels: _Duels) -> Choice:
    """`choose` is pure: it is run again with each A/B that it still asks for."""
    while True:
        asked: list[tuple[Candidate, Candidate]] = []

        def duel(a: Candidate, b: Candidate, asked: list[tuple[Candidate, Candidate]] = asked) -> str:
            verdicts = [duels.verdicts.get((a.sha, b.sha, case)) for case in group.cases]
            if any(verdict is None for verdict in verdicts):
                asked.append((a, b))
            return group_verdict([verdict or AMBIGUOUS for verdict in verdicts])

        choice = choose(group, candidates, duel)
        if not asked:
            return choice
        await duels.run(group, *asked[0])


def _sheet(
    desk: Desk, known: Mapping[str, Known], choices: Sequence[Choice], specs: Mapping[str, tuple[TensorSpec, ...]]
) -> Sheet:
    entries, baseline = [], []
    for choice in choices:
        group = choice.group
        looks = tuple(look_of(specs[case]) for case in group.cases if case in specs)
        if choice.winner is None or not looks:
            baseline.append((group.name, choice.reason if choice.winner is None else "its inputs' look is not known"))
            continue
        worst = next(each for each in choice.admissions if each.sha == choice.winner)
        winner = known[choice.winner]
        entries.append(Entry(group=group.name, sha=choice.winner, text=winner.text, seq=winner.seqs[0],
                             words=f"{worst.reason}; {choice.reason}", looks=looks))  # fmt: skip
    first = next(iter(known.values())).newest if known else None
    where = first.environment if first is not None else None
    versions = {name: value for name in ("driver", "torch", "triton") if where is not None
                and (value := getattr(where, name))}  # fmt: skip
    card = (where.card if where is not None else None) or "cpu"
    return Sheet(problem=desk.problem, card=card, entries=tuple(entries), baseline_groups=tuple(baseline),
                 versions=versions, at=desk.host.now_utc())  # fmt: skip


def _slower(candidate: Candidate, groups: Sequence[Group]) -> list[str]:
    """Cases on which the module was measured slower than the baseline."""
    found = []
    for group in groups:
        for case in group.cases:
            figures: CaseFigures | None = candidate.cases.get(case)
            if figures is not None and figures.speedup is not None and figures.speedup < NEVER_SLOWER:
                found.append(case)
    return found


def _take_back(choices: list[Choice], cases: Sequence[str]) -> bool:
    """Give the groups of these cases back to the baseline; False where they had it already."""
    changed = False
    for index, choice in enumerate(choices):
        if choice.winner is not None and set(cases) & {*choice.group.cases, *choice.group.guards}:
            reason = f"taken back: the module did not hold on {cases[0]}"
            choices[index] = dataclasses.replace(choice, winner=None, reason=reason)
            changed = True
    return changed


def _built(judged: Known, choices: Sequence[Choice], duels: _Duels, seqs: Sequence[int]) -> Built:
    speedups = [case.speedup for case in judged.candidate.cases.values() if case.speedup is not None]
    environment = judged.newest.environment if judged.newest is not None else None
    card = environment.card if environment is not None else None
    note = () if speedups else ("nothing was timed: without a card every group keeps the baseline",)
    return Built(
        text=judged.text, sha=judged.candidate.sha, seq=judged.seqs[-1], choices=tuple(choices),
        duels=tuple(duels.log), worst_speedup=min(speedups, default=None), seqs=tuple(seqs), card=card, notes=note,
    )  # fmt: skip


def evidence(built: Built, ledger_head: str | None) -> dict[str, Any]:
    """What the module rests on, as plain values to lie beside it."""
    return {
        "schema": 1, "module_sha256": built.sha, "row": built.seq, "card": built.card, "rows": list(built.seqs),
        "ledger_head": ledger_head, "worst_speedup": built.worst_speedup,
        "groups": [
            {"group": choice.group.name, "cases": list(choice.group.cases), "guards": list(choice.group.guards),
             "winner": choice.winner, "reason": choice.reason,
             "admissions": [dataclasses.asdict(each) for each in choice.admissions]}
            for choice in built.choices
        ],
        "ab": list(built.duels), "notes": list(built.notes),
    }  # fmt: skip
