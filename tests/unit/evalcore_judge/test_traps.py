"""Traps in the case's process: the tripwire on the reference, ablated launches, poisoned memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from evalcore.gpu.ablation import ablated
from evalcore.gpu.arrival import arrive_late, take
from evalcore.gpu.outputs import flatten
from evalcore.gpu.tripwire import Tripwire
from evalcore.gpu.uninitialised import poisoned
from evalcore.problem import ProgramKind
from tests.unit.evalcore_judge.made import problem


def module_of(name: str, path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module as an import of `path` would make it."""
    path.write_text(text)
    made = ModuleType(name)
    made.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(text, str(path), "exec"), vars(made))
    return made


REFERENCE = "class Model:\n    def __init__(self): self.w = 1\n    def forward(self, x): return x + 1\n"


def armed(tmp_path: Path, candidate: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Tripwire, ModuleType]:
    """A tripwire between a reference file and a candidate that imports it."""
    path = tmp_path / "reference_of_traps.py"
    module_of("reference_of_traps", path, REFERENCE, monkeypatch)
    own = module_of("candidate_of_traps", tmp_path / "candidate.py", candidate, monkeypatch)
    made = problem()
    made = replace(made, reference=replace(made.reference, path=str(path)))
    wire = Tripwire(made, own)
    wire.arm()
    return wire, own


@pytest.mark.parametrize(
    ("body", "called"),
    [
        ("class ModelNew(Model):\n    def forward(self, x): return super().forward(x)\n", True),
        ("class ModelNew(Model):\n    pass\n", True),
        ("class ModelNew:\n    def forward(self, x): return Model().forward(x)\n", True),
        ("class ModelNew(Model):\n    def forward(self, x): return x + self.w\n", False),
    ],
)
def test_the_tripwire_records_a_computing_reference(
    body: str, called: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, own = armed(tmp_path, "from reference_of_traps import Model\n" + body, monkeypatch)
    assert own.ModelNew().forward(2) == 3
    assert wire.called is called


def test_a_function_in_a_shared_file_is_wrapped_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shared_of_traps.py"
    text = "def reference(x): return x + 1\nalias = reference\ndef candidate(x): return alias(x)\n"
    own = module_of("shared_of_traps", path, text, monkeypatch)
    made = problem()
    program = replace(made.reference, path=str(path), entry="reference", kind=ProgramKind.FUNCTION)
    wire = Tripwire(replace(made, reference=program, candidate=replace(program, entry="candidate")), own)
    wire.arm()
    assert not wire.called and own.candidate(1) == 2 and wire.called


def test_ablated_launches_do_nothing_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class JITFunction:
        __name__ = "kernel"

        def run(self, *args: Any, **kwargs: Any) -> str:
            return "ran"

    stand_in = ModuleType("triton.runtime.jit")
    stand_in.JITFunction = JITFunction  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", stand_in)
    with ablated() as left_out:
        assert JITFunction().run(1) is None
    assert left_out == ["kernel"] and JITFunction().run(1) == "ran"


def test_uninitialised_memory_is_poison_only_inside() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    with poisoned():
        assert bool(torch.isnan(torch.empty(64)).all())
        assert bool(torch.isnan(torch.ones(4).new_empty(4)).all())
        assert int(torch.empty(4, dtype=torch.int32)[0]) == torch.iinfo(torch.int32).max
    assert torch.are_deterministic_algorithms_enabled() is before
    with pytest.raises(ZeroDivisionError), poisoned():
        raise ZeroDivisionError
    assert torch.are_deterministic_algorithms_enabled() is before


def test_nothing_arrives_late_on_a_cpu() -> None:
    raw = torch.zeros(16, dtype=torch.uint8)
    assert arrive_late([raw]) == [] and int(raw.sum()) == 0
    outputs = flatten(torch.ones(3))
    assert take(outputs)[0].tensor is outputs[0].tensor
