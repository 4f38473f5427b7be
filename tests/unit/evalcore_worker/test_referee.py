"""The referee by itself, on the CPU: what was filled is what is expected, and claims that lie are the case's fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from evalcore.gpu.inputs import arguments, raw_bytes, view
from evalcore.gpu.transfer import Exporter
from evalcore.problem import TensorSpec
from evalcore.wire import decode, encode
from evalcore.worker import referee_sizes
from evalcore.worker.post import Letter
from evalcore.worker.referee import Referee, RefereeOptions
from tests.unit.evalcore_worker.real_loop import kernelbench

pytestmark = pytest.mark.filterwarnings("ignore")


class Case:
    """A case as the referee sees it: lent storage, and outputs that it computes from what lies there."""

    def __init__(self, referee: Referee, case: dict[str, Any], name: str, seed: int) -> None:
        self.referee, self.case, self.name = referee, case, name
        stocked = self.ask(ask="stock", seed=seed)
        self.specs = [decode(TensorSpec, each) for each in stocked["specs"]]
        self.raws, exported = Exporter("cpu").storage([raw_bytes(each) for each in self.specs if each.is_tensor])
        self.ask(exported.descriptors, ask="lend", owner="me", name=name, handles=exported.handles)

    def ask(self, descriptors: list[int] | None = None, **body: Any) -> dict[str, Any]:
        body.setdefault("case", self.case)
        return self.referee.answer_to(Letter(body=body, descriptors=list(descriptors or [])))

    def fill(self, what: str, seed: int) -> list[Any]:
        self.ask(ask="fill", owner="me", fills=[{"name": self.name, "what": what, "seed": seed}])
        return arguments(self.specs, [view(spec, raw) for spec, raw in zip(self.specs, self.raws, strict=True)])

    def compare(self, out: Any, seed: int, **changes: Any) -> dict[str, Any]:
        exported = Exporter("cpu").publish([out])
        described = {"name": "out", "handle": 0, "shape": list(out.shape), "dtype": str(out.dtype)[6:], "device": "cpu"}
        question = {"ask": "compare", "owner": "me", "seed": seed, "kind": "timed", "inputs": self.name}
        question.update(handles=exported.handles, outputs=[{**described, **changes}])
        answer = self.ask(exported.descriptors, **question)
        exported.close()
        return answer


@pytest.fixture
def case(tmp_path: Path) -> Case:
    problem = kernelbench(tmp_path)
    referee = Referee(RefereeOptions(problem=problem, device="cpu", scratch=str(tmp_path), seed=3))
    return Case(referee, encode(problem.cases[0]), "inputs", 1)


def weight(case: Case) -> Any:
    (side,) = case.referee._sides.values()
    return side.loaded.state["weight"]


@pytest.mark.parametrize("slow_s", [1e9, -1.0], ids=["made anew", "rotated"])
def test_what_was_filled_is_what_is_expected(case: Case, slow_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where inputs are slow to make and timed calls get rotated copies, and when that begins half way."""
    case.fill("inputs", 5)
    early_x, early_y = (each.clone() for each in case.fill("timed", 6))
    monkeypatch.setattr(referee_sizes, "_SLOW_S", slow_s)
    case.fill("inputs", 7)
    x, y = case.fill("timed", 8)
    answer = case.compare(x + y * weight(case) * 0.5, 8)
    assert answer["trial"]["outputs"][0]["out_of_tolerance"] == 0, answer
    filled = case.fill("inputs", 9)
    answer = case.compare(filled[0] + filled[1] * weight(case) * 0.5, 9)
    assert answer["trial"]["outputs"][0]["out_of_tolerance"] == 0, "an untimed set is never a rotated one"
    answer = case.compare(early_x + early_y * weight(case) * 0.5, 6)
    assert answer["trial"]["outputs"][0]["out_of_tolerance"] == 0, "what was filled before stays as it was"


def test_a_changed_input_is_noticed(case: Case) -> None:
    x, y = case.fill("inputs", 5)
    out = x + y * weight(case) * 0.5
    x[3, 4] += 1
    assert case.compare(out, 5)["trial"]["mutated_inputs"] == ["input 0"]


@pytest.mark.parametrize("changes", [{"shape": [3, 3]}, {"dtype": "nonsense"}, {"dtype": "float64"}])
def test_a_claim_that_lies_is_a_breach_and_no_fault_of_the_reference(case: Case, changes: dict[str, Any]) -> None:
    x, _y = case.fill("inputs", 5)
    answer = case.compare(x.clone(), 5, **changes)
    assert "breach" in answer and "crash" not in answer


def test_a_used_set_is_gone_and_forgetting_closes_all(case: Case) -> None:
    x, y = case.fill("inputs", 5)
    case.compare(x, 5)
    assert all(key[1] != 5 for key in case.referee._sets)
    case.ask(ask="stock", seed=11)
    case.ask(ask="forget", owner="me", seeds=[11])
    assert all(key[1] != 11 for key in case.referee._sets)
    assert "breach" in case.ask(ask="fill", owner="me", fills=[{"name": "inputs", "what": "inputs", "seed": 5}])
