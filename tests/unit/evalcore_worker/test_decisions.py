"""Small decisions of the loop, each by itself: deadlines, sizes, endings, what a spare may serve."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcore.jobs import Limits
from evalcore.problem import Case, Inputs, InputsKind, Problem
from evalcore.worker.children import Ending
from evalcore.worker.deadline import Deadline
from evalcore.worker.desks import trial_seed
from evalcore.worker.endings import crash_of
from evalcore.worker.remembered import Remembered
from evalcore.worker.sizes import INTERPRETER_ELEMENTS, TooLarge, choose
from evalcore.worker.spares import _needed
from evalcore.worker.station import Options, roots_of
from tests.unit.evalcore_worker.real_loop import kernelbench


async def phases(run_s: float, build_s: float, steps: list[tuple[float, bool]]) -> list[str]:
    """Which clock ran out: after each (wait, building) step the child's note arrives."""
    late: list[str] = []
    deadline = Deadline(asyncio.get_running_loop(), run_s, build_s, late.append)
    for wait, building in steps:
        await asyncio.sleep(wait)
        deadline.building(building)
    await asyncio.sleep(0.15)
    deadline.stop()
    return late


async def test_building_does_not_count_as_running() -> None:
    assert await phases(0.1, 1.0, [(0.05, True), (0.2, False)]) == ["run"], (
        "what was left before the build runs out after"
    )
    assert await phases(0.3, 1.0, [(0.05, True), (0.2, False)]) == []


async def test_a_child_that_builds_for_ever_has_the_build_time_once() -> None:
    assert await phases(5.0, 0.1, [(0.0, True)]) == ["build"]
    assert await phases(5.0, 0.2, [(0.0, True), (0.15, False), (0.0, True)]) == ["build"]


async def test_nothing_is_late_once_stopped() -> None:
    late: list[str] = []
    deadline = Deadline(asyncio.get_running_loop(), 0.02, 0.0, late.append)
    deadline.stop()
    await asyncio.sleep(0.05)
    assert late == []


class Sized:
    """A desk that knows how large a case of `n` rows of 100 is."""

    def __init__(self, problem: Problem, *, unknown: bool = False) -> None:
        self.problem, self.choices, self.asked = problem, {}, 0
        self._unknown = unknown

    async def size(self, case: Case) -> tuple[int | None, int | None]:
        self.asked += 1
        if self._unknown:
            return None, None
        rows = {**dict(self.problem.inputs.constants), **dict(case.sizes)}["n"]
        return rows * 100, rows * 400


def sized(problem: Problem, n: int, **how: Any) -> Any:
    inputs = Inputs(kind=InputsKind.GET_INPUTS, constants=(("n", n),), batch_like=("n",))
    return Sized(replace(problem, inputs=inputs), **how)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return kernelbench(tmp_path)


async def test_what_fits_is_judged_as_given(problem: Problem) -> None:
    choice = await choose(sized(problem, 100), problem.cases[0], free_bytes=None)
    assert choice.case.origin == "given" and choice.input_bytes == 40_000


async def test_what_is_too_large_is_reduced_to_what_fits(problem: Problem) -> None:
    desk = sized(problem, 1 << 20)
    choice = await choose(desk, problem.cases[0], free_bytes=None)
    assert choice.case.origin == "reduced" and not choice.case.timed
    assert dict(choice.case.sizes)["n"] * 100 <= INTERPRETER_ELEMENTS
    asked = desk.asked
    assert await choose(desk, problem.cases[0], free_bytes=None) == choice and desk.asked == asked, "asked once"


async def test_a_card_takes_more_than_the_interpreter(problem: Problem) -> None:
    assert (await choose(sized(problem, 1 << 20), problem.cases[0], free_bytes=64 << 30)).case.origin == "given"
    assert (await choose(sized(problem, 1 << 20), problem.cases[0], free_bytes=64 << 20)).case.origin == "reduced"


async def test_a_listed_size_is_preferred_to_a_reduced_one(problem: Problem) -> None:
    cases = tuple(Case(name=f"n={n}", sizes=(("n", n),)) for n in (1 << 20, 1 << 16, 900, 40))
    desk = sized(replace(problem, cases=cases), 1 << 20)
    assert (await choose(desk, cases[0], free_bytes=None)).case.name == "n=900"


async def test_unknown_sizes_are_tried_as_given(problem: Problem) -> None:
    choice = await choose(sized(problem, 1 << 20, unknown=True), problem.cases[0], free_bytes=None)
    assert choice.case.origin == "given" and choice.smaller, "with something to fall back to"


async def test_nothing_to_vary_and_far_too_large(problem: Problem) -> None:
    desk = sized(problem, 1 << 22)
    desk.problem = replace(
        desk.problem, inputs=replace(desk.problem.inputs, batch_like=(), constants=(("n", 1 << 22),))
    )
    desk.problem = replace(desk.problem, inputs=replace(desk.problem.inputs, constants=()))

    async def size(case: Case) -> tuple[int, int]:
        return 1 << 28, 1 << 30

    desk.size = size
    with pytest.raises(TooLarge):
        await choose(desk, problem.cases[0], free_bytes=None)


@pytest.mark.parametrize(
    ("ending", "kind", "word"),
    [
        (Ending(signal=9, cause="timeout", message="run"), "timeout", "2 s"),
        (Ending(signal=9, cause="timeout", message="build"), "timeout", "building"),
        (Ending(signal=9, cause="memory", message="it held 9 GiB"), "out_of_memory", "9 GiB"),
        (Ending(signal=9, cause="breach", message="it wrote"), "killed", "it wrote"),
        (Ending(signal=9), "out_of_memory", "memory"),
        (Ending(signal=int(signal.SIGSEGV)), "killed", "segmentation fault"),
        (Ending(signal=64), "killed", ""),
        (Ending(exit_code=0), "exit", "exit code 0"),
        (Ending(exit_code=70), "exit", "its process failed: the last line"),
    ],
)
def test_an_ending_has_its_words(ending: Ending, kind: str, word: str) -> None:
    crash = crash_of(ending, Limits(run_s=2.0), "first\nthe last line")
    assert crash.kind == kind and word in crash.message


def test_trial_seeds_follow_from_the_base_alone() -> None:
    seeds = {trial_seed(base, kind, index) for base in (1, 2) for kind in ("a", "b") for index in range(5)}
    assert len(seeds) == 20 and all(0 <= seed < 2**31 for seed in seeds)
    assert trial_seed(7, "a", 3) == trial_seed(7, "a", 3)


def test_a_spare_serves_unless_something_needed_is_out_of_its_reach(tmp_path: Path, problem: Problem) -> None:
    folder = Path(problem.candidate.path).parent
    assert not _needed({problem.candidate.path, problem.reference.path}, problem), "their texts come with the job"
    assert not _needed({str(folder / name) for name in ("__pycache__", ".a.py.swp", "4913", "a.py~", "x.tmp")}, problem)
    assert not _needed({str(folder / "unrelated.py")}, problem)
    assert _needed({str(folder / "weights.bin")}, problem)
    (folder / "helper.py").write_text("A = 1\n")
    using = replace(problem, candidate=replace(problem.candidate, text="import helper\n" + problem.candidate.text))
    assert _needed({str(folder / "helper.py")}, using)
    laid_over = replace(using, overlays=((str(folder / "helper.py"), "A = 2\n"),))
    assert not _needed({str(folder / "helper.py")}, laid_over)


def test_roots_cover_all_files_of_a_problem(problem: Problem) -> None:
    folder = str(Path(problem.candidate.path).parent)
    assert roots_of(problem) == (folder,)
    outside = replace(problem, reference=replace(problem.reference, path="/elsewhere/reference.py"))
    assert roots_of(outside) == (folder, "/elsewhere")


def test_options_keep_their_defaults_against_nonsense() -> None:
    assert Options.read(None) == Options()
    read = Options.read({"spares": "many", "idle_s": 5, "sandbox": False, "roots": ["/a"], "unknown": 1})
    assert (read.spares, read.idle_s, read.sandbox, read.roots) == (2, 5.0, False, ("/a",))


def test_what_is_remembered_has_an_end() -> None:
    memory = Remembered()
    for number in range(400):
        memory.keep_winners(str(number), {"k": "BLOCK=1"})
    assert memory.winners("399") and not memory.winners("0")
