"""Dispatch: who is admitted, who wins, what is written, and that the written module does what the table says."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from evalcore.admission import (
    FASTER,
    SAME,
    SLOWER,
    Candidate,
    CaseFigures,
    Group,
    admit,
    choose,
    complexity,
    group_verdict,
)
from evalcore.jobs import CaseReport, EvalJob, Measurement, Refusal
from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind, TensorSpec
from evalcore.results import correct, incorrect
from evalcore.wire import encode
from server.dispatch.building import Built, build, evidence, groups_of
from server.dispatch.evaluating import PatientPool
from server.dispatch.figures import Ask, Desk, candidates_of
from server.dispatch.looks import looks
from server.dispatch.merging import CannotMerge, part, shared_imports
from server.dispatch.module import Entry, Sheet, look_of, module_text
from server.dispatch.surface import surface
from server.host import Host
from server.ledger.compare import with_text
from tests.support import measurements
from tests.support.ledgers import in_environment, judged, opened, sha_of

# the rule


def candidate(sha: str = "a", complexity: int = 100, **speedups: float | None) -> Candidate:
    cases = {name: CaseFigures(right=True, runtime_us=100.0 / s if s else None, ref_runtime_us=100.0)
             for name, s in speedups.items()}  # fmt: skip
    return Candidate(sha=sha, complexity=complexity, cases=cases)


GROUP = Group(name="g", cases=("x", "y"), guards=("odd",))


@pytest.mark.parametrize(
    ("changes", "admitted", "words"),
    [
        ({"x": 2.0, "y": 1.06}, True, "worst case 1.06x on y"),
        ({"x": 2.0, "y": 1.05}, False, "not above 1.05x"),
        ({"x": 5.0, "y": 0.9}, False, "worst case 0.9x on y"),
        ({"x": 2.0, "y": None}, False, "not timed on y"),
        ({"x": 2.0}, False, "not judged on y"),
    ],
)
def test_admission(changes: dict[str, float | None], admitted: bool, words: str) -> None:
    found = admit(GROUP, candidate(**changes, odd=None))
    assert found.admitted == admitted and words in found.reason


def test_a_guard_that_is_wrong_shuts_a_candidate_out() -> None:
    given = candidate(x=3.0, y=3.0)
    assert admit(GROUP, given).reason == "not judged on odd"
    wrong = replace(given, cases={**given.cases, "odd": CaseFigures(right=False)})
    assert admit(GROUP, wrong).reason == "wrong on odd"
    assert not admit(Group(name="empty", cases=()), given).admitted


def test_a_tie_goes_to_the_simpler_one_and_a_win_needs_the_duel() -> None:
    simple, clever = candidate("simple", 10, x=1.5, y=1.5, odd=None), candidate("clever", 99, x=9.0, y=9.0, odd=None)
    for verdict, winner in ((SAME, "simple"), (SLOWER, "simple"), ("ambiguous", "simple"), (FASTER, "clever")):
        choice = choose(GROUP, [clever, simple], lambda a, b, verdict=verdict: verdict)
        assert choice.winner == winner, "the numbers alone never decide"
    assert choose(GROUP, [candidate(x=1.0, y=1.0, odd=None)], lambda a, b: FASTER).winner is None


def test_the_duel_is_asked_with_the_challenger_first() -> None:
    asked: list[tuple[str, str]] = []

    def duel(a: Candidate, b: Candidate) -> str:
        asked.append((a.sha, b.sha))
        return FASTER

    three = [candidate(str(n), n, x=2.0, y=2.0, odd=None) for n in (3, 1, 2)]
    assert choose(GROUP, three, duel).winner == "3" and asked == [("2", "1"), ("3", "2")]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([FASTER, SAME], FASTER), ([FASTER, SLOWER], SAME), ([SLOWER, "ambiguous"], SLOWER), ([], SAME), ([SAME], SAME)],
)
def test_a_groups_verdict(verdicts: list[str], expected: str) -> None:
    assert group_verdict(verdicts) == expected


def test_comments_do_not_make_a_text_less_simple() -> None:
    assert complexity("# why\n\n    a = 1\n") == complexity("a = 1")


# merging

MESSY = '''
import math
import torch
from torch import nn

SCALE = 2
NAMES = ["SCALE", "helper"]


class Box:
    SCALE = 5

    def value(self):
        return SCALE


def helper(x, scale=SCALE):
    """helper uses SCALE"""
    SCALE_LOCAL = scale
    return x * SCALE_LOCAL


def shadow(SCALE):
    return SCALE + 1


def count():
    global SCALE
    SCALE += 0
    return [helper(SCALE) for SCALE in (1, 2)]


def entry(x, helper=helper):
    box = Box()
    words = f"{SCALE} {box.SCALE}"
    return helper(x, scale=SCALE) + box.value() + shadow(1) + sum(count()) + len(words) + math.floor(0.5)


print("ran at import")
assert entry(1) == 0
'''


def test_renaming_follows_scopes() -> None:
    made = part(MESSY, ["entry"], "c1")
    assert "ran at import" not in made.text and "assert" not in made.text
    space: dict[str, Any] = {"math": __import__("math"), "torch": torch}
    exec(made.text, space)
    original: dict[str, Any] = {}
    exec(MESSY[: MESSY.index("print(")], original)
    assert space[made.names["entry"]](10) == original["entry"](10)
    own = {name for name in space if not name.startswith("__")} - {"math", "torch"}
    assert own == {"SCALE_c1", "Box_c1", "helper_c1", "shadow_c1", "count_c1", "entry_c1"}


def test_imports_are_shared_and_conflicts_are_named() -> None:
    one = part("import torch\nimport numpy as np\ndef f(): return np, torch\n", ["f"], "a")
    two = part("from __future__ import annotations\nimport torch\ndef f(): return torch\n", ["f"], "b")
    lines = shared_imports([one, two])
    assert lines[0].startswith("from __future__") and lines.count("import torch") == 1
    three = part("import math as np\ndef f(): return np\n", ["f"], "c")
    with pytest.raises(CannotMerge, match="'np' means numpy in one candidate and math in another"):
        shared_imports([one, three])


# the surface

BASE = Program(path="/p/k.py", text="import torch\n", entry="", kind=ProgramKind.EXPRESSION, call="torch.relu(x) * 2")
TRIAL = Program(path="/p/k.py", text="", entry="", kind=ProgramKind.EXPRESSION, call="act(x, scale=2)")
PROBLEM = Problem(
    id="k", format="tutorial", reference=BASE, candidate=TRIAL, kernels=("act",),
    inputs=Inputs(kind=InputsKind.STATEMENTS, statements="x = torch.randn(M, 8)", names=("x",), constants=(("M", 4),)),
    cases=(Case(name="4"), Case(name="16", sizes=(("M", 16),)), Case(name="5", sizes=(("M", 5),), origin="neighbour")),
)  # fmt: skip

CODE = """
import torch

TAG = {tag!r}


def act(x, scale=2):
    assert scale == 2
    out = torch.relu(x) * scale
    out.tag = TAG
    return out


print("benchmark ran")
"""


def text_of(tag: str) -> str:
    return CODE.format(tag=tag)


def test_what_is_read_from_the_call() -> None:
    found = surface(PROBLEM, text_of("a"))
    assert (found.public, found.inputs, found.fixed, found.signature) == ("act", ("x",), (("scale", 2),), "x, scale=2")
    wrapped = replace(
        TRIAL, kind=ProgramKind.FUNCTION, entry="odyssey_candidate", call="",
        text=text_of("a") + "\n\n\ndef odyssey_candidate(x):\n    return act(x, 2)\n",
    )  # fmt: skip
    assert surface(replace(PROBLEM, candidate=wrapped), text_of("a")) == found
    again = with_text(replace(PROBLEM, candidate=wrapped), text_of("b"))
    assert again.candidate.text.endswith("return act(x, 2)\n") and "TAG = 'b'" in again.candidate.text


@pytest.mark.parametrize("call", ["act(x * 2)", "act(y)", "torch.relu(x)", "act(x)[0]", "act(scale=2)", "missing(x)"])
def test_what_cannot_be_seen_through_is_refused(call: str) -> None:
    with pytest.raises(CannotMerge):
        surface(replace(PROBLEM, candidate=replace(TRIAL, call=call)), text_of("a"))


# the module


def specs(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[TensorSpec, ...]:
    made = [torch.empty(shape, device="meta") for shape in shapes]
    return tuple(TensorSpec(name="x", shape=tuple(t.shape), dtype=dtype, stride=t.stride()) for t in made)


def sheet(*groups: tuple[str, tuple[int, ...]], problem: Problem = PROBLEM, card: str = "cpu") -> Sheet:
    entries = tuple(
        Entry(
            group=tag, sha=sha_of(tag), text=text_of(tag), seq=7, words="worst case 2x", looks=(look_of(specs(shape)),)
        )
        for tag, shape in groups
    )
    return Sheet(problem=problem, card=card, entries=entries, baseline_groups=(("rest", 'no """ candidate'),),
                 versions={"torch": "2"}, at="2026-11-29T12:00:00Z")  # fmt: skip


def loaded(text: str, folder: Path, name: str = "dispatch_module") -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_shape_takes_its_path_and_anything_unknown_the_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = module_text(sheet(("small", (4, 8)), ("large", (16, 8))))
    module = loaded(text, tmp_path)
    assert capsys.readouterr().out == "", "nothing of a candidate's own benchmark runs"
    for shape, tag in (((4, 8), "small"), ((16, 8), "large"), ((5, 8), None), ((8, 4), None)):
        x = torch.randn(shape)
        out = module.act(x)
        assert getattr(out, "tag", None) == tag
        assert torch.equal(out, torch.relu(x) * 2)
    assert not hasattr(module.act(torch.randn(4, 8).double()), "tag"), "another dtype"
    assert not hasattr(module.act(torch.randn(8, 4).t()), "tag"), "another layout of the same shape"
    assert not hasattr(module.act(torch.randn(4, 8, requires_grad=True)), "tag"), "gradients take the baseline"
    with pytest.raises(ValueError, match="judged with scale=2 only"):
        module.act(torch.randn(4, 8), scale=3)


def test_another_card_takes_the_baseline(tmp_path: Path) -> None:
    module = loaded(module_text(sheet(("small", (4, 8)), card="NVIDIA H200")), tmp_path)
    assert not hasattr(module.act(torch.randn(4, 8)), "tag")


def test_the_module_is_readable_and_needs_no_odyssey(tmp_path: Path) -> None:
    text = module_text(sheet(("small", (4, 8)), ("large", (16, 8))))
    assert not any(
        f"{verb} {name}" in text for verb in ("import", "from") for name in ("odyssey", "server", "evalcore")
    )
    assert "small: candidate " + sha_of("small")[:12] + " (ledger row 7): worst case 2x" in text
    compile(text, "dispatch.py", "exec")
    assert max(len(line) for line in text.splitlines()) <= 130
    for line in text.splitlines():
        assert line == line.rstrip()


def test_a_dispatch_without_a_winner_is_the_baseline(tmp_path: Path) -> None:
    trial = replace(TRIAL, text=text_of("a"))
    module = loaded(module_text(sheet(problem=replace(PROBLEM, candidate=trial))), tmp_path)
    x = torch.randn(4, 8)
    assert torch.equal(module.act(x), torch.relu(x) * 2)


MODEL = """
import torch
from torch import nn


class {name}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = nn.Linear(width, 4)
        {extra}

    def forward(self, x):
        out = self.line(x) * {factor}
        out.tag = {tag!r}
        return out
"""


def test_a_module_shares_the_references_parameters(tmp_path: Path) -> None:
    reference = MODEL.format(name="Model", extra="", factor="1", tag="baseline")
    given = MODEL.format(
        name="ModelNew", extra="self.register_buffer('unused', torch.zeros(1))", factor="1", tag="fast"
    )
    problem = replace(
        PROBLEM,
        reference=Program(path="/p/r.py", text=reference, entry="Model", kind=ProgramKind.MODULE),
        candidate=Program(path="/p/k.py", text=given, entry="ModelNew", kind=ProgramKind.MODULE),
    )
    entry = Entry(group="g", sha=sha_of(given), text=given, seq=1, words="w", looks=(look_of(specs((3, 8))),))
    module = loaded(module_text(replace(sheet(problem=problem), entries=(entry,))), tmp_path)
    model = module.ModelNew(8)
    assert set(model.state_dict()) == {"line.weight", "line.bias"}, "the judge can copy the reference's state"
    with torch.no_grad():
        x = torch.randn(3, 8)
        out = model(x)
        assert out.tag == "fast" and torch.allclose(out, model.line(x))
        model.line.weight.mul_(3)
        assert torch.allclose(model(x), model.line(x)), "no stale copy of a parameter"
        assert model(torch.randn(5, 8)).tag == "baseline"
    assert model(x).tag == "baseline", "in training the reference's own forward runs"


async def test_how_inputs_look_is_asked_of_the_interpreter() -> None:
    found = await looks(Host(), sys.executable, PROBLEM, PROBLEM.cases)
    assert not isinstance(found, Refusal)
    assert {name: [spec.shape for spec in each] for name, each in found.items()} == {
        "4": [(4, 8)], "16": [(16, 8)], "5": [(5, 8)],
    }  # fmt: skip
    broken = replace(PROBLEM, inputs=replace(PROBLEM.inputs, statements="x = nothing"))
    assert isinstance(await looks(Host(), sys.executable, broken, PROBLEM.cases), Refusal)


# the whole way


class Bench:
    """An evaluator with a table of times: text tag -> case -> microseconds. The module is run for real on the CPU."""

    def __init__(self, times: Mapping[str, Mapping[str, float]], folder: Path, *, card: str | None = "cpu") -> None:
        self.times, self.folder, self.card = times, folder, card
        self.jobs: list[EvalJob] = []
        self.module_penalty: dict[str, float] = {}

    async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
        self.jobs.append(job)
        text = job.problem.candidate.text
        reports = [self._case(case, text, job) for case in job.problem.cases]
        right = all(report.status == "right" for report in reports)
        made = judged(text, correct(runtime_us=1.0, ref_runtime_us=1.0) if right else incorrect("wrong"))
        environment = replace(made.environment, card=self.card)
        ab = self._ab(job, text) if job.compare_with is not None else None
        return replace(made, cases=tuple(reports), environment=environment, kernel=job.kernel, file="/p/k.py", ab=ab,
                       problem_sha="1" * 64)  # fmt: skip

    def _time(self, text: str, case: Case) -> float | None:
        if self.card is None or not case.timed or case.origin != "given":
            return None
        tags = [tag for tag in self.times if f"TAG = {tag!r}" in text]
        if text.startswith('"""'):
            module = loaded(text, self.folder, f"judged_{len(self.jobs)}")
            tag = getattr(module.act(torch.randn(dict(case.sizes).get("M", 4), 8)), "tag", None)
            return self.module_penalty.get(case.name, 1.0) * (self.times[tag][case.name] if tag else 100.0)
        return self.times[tags[0]][case.name]

    def _case(self, case: Case, text: str, job: EvalJob) -> CaseReport:
        time_us = self._time(text, case) if job.case in (None, case.name) else None
        wrong = "TAG = 'wrong'" in text and case.name == "5" and not text.startswith('"""')
        return CaseReport(
            name=case.name, sizes=dict(case.sizes), origin=case.origin, status="wrong" if wrong else "right",
            trials=5, trials_right=5, runtime_us=time_us, ref_runtime_us=100.0 if time_us else None,
        )  # fmt: skip

    def _ab(self, job: EvalJob, text: str) -> dict[str, Any]:
        case = next(case for case in job.problem.cases if case.name == job.case)
        mine, theirs = self._time(text, case), self._time(job.compare_with or "", case)
        assert mine and theirs
        ratio = mine / theirs
        return {"verdict": FASTER if ratio < 0.98 else SLOWER if ratio > 1.02 else SAME, "ratio": ratio}


async def whole(folder: Path, bench: Bench, tags: list[str]) -> Built | Refusal:
    problem = replace(PROBLEM, candidate=replace(TRIAL, text=text_of(tags[0])))
    with opened(folder) as ledger:
        desk = Desk(host=Host(), ledger=ledger, evaluator=bench, problem=problem, kernel="act", file="/p/k.py")
        for tag in tags:
            ledger.append(judged(text_of(tag), kernel="act", file="/p/k.py"), text=text_of(tag))
        asks = candidates_of(desk)
        known = {"4": specs((4, 8)), "16": specs((16, 8))}
        built = await build(desk, asks, groups_of(problem.cases, {}), known)
        assert ledger.verify().ok
        if isinstance(built, Built):
            head = ledger.head()
            told = evidence(built, head.hash if head else None)
            assert ledger.row(built.seq).kernel_sha == built.sha and set(told["rows"]) <= {r.seq for r in ledger.rows()}
        return built


async def test_the_winner_of_each_shape_serves_it(tmp_path: Path) -> None:
    bench = Bench({"small": {"4": 20.0, "16": 120.0}, "large": {"4": 90.0, "16": 30.0}, "wrong": {"4": 1.0, "16": 1.0}},
                  tmp_path)  # fmt: skip
    built = await whole(tmp_path, bench, ["small", "large", "wrong"])
    assert isinstance(built, Built), built
    assert [choice.winner for choice in built.choices] == [sha_of(text_of("small")), sha_of(text_of("large"))]
    assert built.worst_speedup == pytest.approx(100 / 30)
    wrong = [each for choice in built.choices for each in choice.admissions if each.sha == sha_of(text_of("wrong"))]
    assert [each.reason for each in wrong] == ["wrong on 5", "wrong on 5"], "fast and wrong never gets in"
    assert {duel["case"] for duel in built.duels} == {"4"}, "only where two are admitted"


async def test_no_candidate_above_the_bar_leaves_the_baseline(tmp_path: Path) -> None:
    built = await whole(tmp_path, Bench({"slow": {"4": 97.0, "16": 300.0}}, tmp_path), ["slow"])
    assert isinstance(built, Built) and [choice.winner for choice in built.choices] == [None, None]
    assert built.worst_speedup == pytest.approx(1.0), "and the module says so itself: never slower"


async def test_a_group_on_which_the_module_is_slower_is_taken_back(tmp_path: Path) -> None:
    bench = Bench({"fast": {"4": 50.0, "16": 50.0}}, tmp_path)
    bench.module_penalty = {"16": 2.5}
    refused = await whole(tmp_path / "a", bench, ["fast"]) if (tmp_path / "a").mkdir() is None else None
    assert isinstance(refused, Refusal) and "slower than the baseline on 16" in refused.message
    bench.module_penalty = {}
    real = bench._time
    bench._time = lambda text, case: (  # type: ignore[method-assign]
        125.0 if text.startswith('"""') and "(16, 8)" in text and case.name == "16" else real(text, case)
    )
    (tmp_path / "b").mkdir()
    built = await whole(tmp_path / "b", bench, ["fast"])
    assert isinstance(built, Built)
    assert [choice.winner is not None for choice in built.choices] == [True, False]
    assert "taken back" in built.choices[1].reason


async def test_without_a_card_nothing_is_admitted_and_it_says_so(tmp_path: Path) -> None:
    built = await whole(tmp_path, Bench({"fast": {"4": 1.0, "16": 1.0}}, tmp_path, card=None), ["fast"])
    assert isinstance(built, Built) and built.notes and built.worst_speedup is None
    assert [choice.reason for choice in built.choices] == ["no candidate is admitted"] * 2


def test_groups_can_be_named() -> None:
    made = groups_of(PROBLEM.cases, {"all": ["4", "16"]})
    assert made == [Group(name="all", cases=("4", "16"), guards=("5",))]
    assert [group.name for group in groups_of(PROBLEM.cases, {"one": ["16"]})] == ["one", "4"]
    with pytest.raises(CannotMerge, match="no case is called 'x'"):
        groups_of(PROBLEM.cases, {"all": ["x"]})


def test_a_buried_or_foreign_text_is_no_candidate(tmp_path: Path) -> None:
    with opened(tmp_path, key=bytes(32)) as theirs:
        theirs.append(judged(text_of("theirs"), kernel="act", file="/p/k.py"), text=text_of("theirs"))
    with opened(tmp_path) as ledger:
        desk = Desk(
            host=Host(), ledger=ledger, evaluator=Bench({}, tmp_path), problem=PROBLEM, kernel="act", file="/p/k.py"
        )
        for tag in ("good", "dead"):
            ledger.append(judged(text_of(tag), kernel="act", file="/p/k.py"), text=text_of(tag))
        ledger.append(judged("x", incorrect("no"), kernel="act", file="/p/k.py"), text="x")
        ledger.bury(sha_of(text_of("dead")), "slow")
        assert list(candidates_of(desk)) == [sha_of(text_of("good"))]
        asked: dict[str, Ask] = dict(candidates_of(desk, [sha_of(text_of("theirs"))[:10]]))
        assert list(asked) == [sha_of(text_of("theirs"))], "asked for by name it is measured here, like any other"


class Pool:
    """A pool that answers at once and sends the A/B later, as the worker does."""

    def __init__(self, made: Measurement, amended: dict[str, Any] | None) -> None:
        self.made, self.amended = made, amended
        self.on_frame: Any = None

    async def evaluate(self, job: EvalJob) -> Measurement:
        if self.amended is not None:
            frame = {"frame": "amended", "job_id": job.job_id, "measurement": encode(replace(self.made, ab=self.amended))}
            asyncio.get_running_loop().call_later(0.01, self.on_frame, frame)
        asyncio.get_running_loop().call_later(0.005, self.on_frame, {"frame": "amended", "job_id": "another"})
        return self.made


async def test_an_ab_that_comes_later_is_waited_for() -> None:
    made = judged("a")
    asked = replace(measurements.job("a"), compare_with="b")
    pool = PatientPool(Pool(made, {"verdict": "faster"}))  # type: ignore[arg-type]
    found = await pool.evaluate(asked)
    assert isinstance(found, Measurement) and found.ab == {"verdict": "faster"}
    for untimed in (judged("a", incorrect("no")), in_environment(made, card=None)):
        assert await PatientPool(Pool(untimed, None)).evaluate(asked) == untimed  # type: ignore[arg-type]
    assert await PatientPool(Pool(made, None)).evaluate(measurements.job("a")) == made  # type: ignore[arg-type]
