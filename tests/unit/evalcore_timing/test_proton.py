"""Proton's trees, as Triton 3.6.0 and 3.7.1 really wrote them (scopes and metrics on a machine without a card)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalcore.gpu.activity import RecorderError, device_us
from evalcore.gpu.proton import ProtonFile, ProtonMemory, form_of, parse_tree
from evalcore.gpu.stalls import parse_stalls

FIXTURES = Path(__file__).parent / "fixtures"


def tree(name: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads((FIXTURES / f"proton-{name}.json").read_text())
    return data


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1"])
def test_each_call_has_its_own_time(version: str) -> None:
    got = parse_tree(tree(version), range(4))
    assert [device_us(call) for call in got.calls] == [31.0, 31.501, 31.002, 0.0]
    assert sorted(launch.count for launch in got.calls[1]) == [1, 2]
    assert got.empty_us == (0.56,) * 3
    assert [launch.name for launch in got.stray] == ["refill_kernel"]


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1"])
def test_only_the_wanted_calls(version: str) -> None:
    got = parse_tree(tree(version), range(2, 6))
    assert [device_us(call) for call in got.calls] == [31.002, 0.0, 0.0, 0.0]


def test_an_empty_database() -> None:
    assert parse_tree([{"frame": {"name": "ROOT"}, "metrics": {}, "children": []}, {}], range(2)).calls == ((), ())
    assert parse_tree([], range(1)).calls == ((),)


@pytest.mark.parametrize(
    ("version", "offers", "form"),
    [
        ("3.2.0", False, "file"),
        ("3.6.0", False, "file"),
        ("3.7.1", True, "memory"),
        ("3.9.0", True, "memory"),
        ("3.7.1+git", False, "file"),
        ("4.0.0", True, "memory"),
        ("3.11.0", False, "file"),
    ],
)
def test_the_form_follows_version_and_offer(version: str, offers: bool, form: str) -> None:
    module = SimpleNamespace(data=SimpleNamespace(get=print)) if offers else SimpleNamespace()
    assert form_of(version, module) == form


class PlayedProton:
    """The functions of one Triton's profiler, playing a tree back and noting the calls."""

    def __init__(self, version: str) -> None:
        self.tree = tree(version)
        self.notes: list[str] = []
        self.paths: dict[int, str] = {}
        self.data = SimpleNamespace(get=lambda session: self.tree, clear=lambda session: self.notes.append("clear"))

    def start(self, name: str, *, context: str, data: str, backend: str) -> int:
        session = len(self.paths)
        self.paths[session] = name
        self.notes.append(f"start {Path(name).name}")
        return session

    def activate(self, session: int) -> None:
        self.notes.append(f"activate {session}")

    def deactivate(self, session: int, flushing: bool = False) -> None:
        self.notes.append(f"deactivate {session}")

    def finalize(self, session: int) -> None:
        self.notes.append(f"finalize {session}")
        Path(self.paths[session] + ".hatchet").write_text(json.dumps(self.tree))

    @contextlib.contextmanager
    def scope(self, name: str) -> Any:
        self.notes.append(name)
        yield


def test_the_file_form_keeps_cupti_attached_while_a_session_ends(tmp_path: Path) -> None:
    proton = PlayedProton("3.6.0")
    recorder = ProtonFile(proton, str(tmp_path))
    recorder.warm()
    recorder.open()
    for _ in range(2):
        with recorder.call():
            pass
        with recorder.mark():
            pass
    got = recorder.take()
    assert [device_us(call) for call in got.calls] == [31.0, 31.501]
    assert proton.notes == [
        "start keeper",
        "deactivate 0",
        "start measure-0",
        "odyssey.call.0",
        "odyssey.mark.0",
        "odyssey.call.1",
        "odyssey.mark.1",
        "activate 0",
        "finalize 1",
        "deactivate 0",
        "start measure-1",
    ]
    recorder.close()
    assert list(tmp_path.glob("*.hatchet")) == []


def test_the_memory_form_starts_one_session_and_numbers_calls_on(tmp_path: Path) -> None:
    proton = PlayedProton("3.7.1")
    recorder = ProtonMemory(proton, str(tmp_path))
    recorder.warm()
    recorder.warm()
    for first, want in ((0, [31.0, 31.501]), (2, [31.002, 0.0])):
        recorder.open()
        for _ in range(2):
            with recorder.call():
                pass
        assert [device_us(call) for call in recorder.take().calls] == want
        assert f"odyssey.call.{first}" in proton.notes
        recorder.close()
    assert proton.notes.count("start session") == 1


def test_a_proton_that_does_not_start_says_why(tmp_path: Path) -> None:
    class Refusing(PlayedProton):
        def start(self, name: str, *, context: str, data: str, backend: str) -> int:
            raise RuntimeError("Failed to execute cuptiSubscribe with error 999")

    with pytest.raises(RecorderError, match="cuptiSubscribe"):
        ProtonFile(Refusing("3.6.0"), str(tmp_path)).warm()


def test_stalls_are_shares_of_the_sampled_scope_only() -> None:
    profile = parse_stalls(tree("stalls-3.6.0"), "odyssey.sampled")
    assert profile.stalls == (("long_scoreboard", 0.5), ("barrier", 0.3), ("wait", 0.2))
    assert profile.metrics["stall_samples"] == 100.0
    first = profile.metrics["stall_lines"][0]
    assert first["path"].endswith("softmax.py")
    assert (first["line"], first["share"], first["reason"]) == (21, 0.6, "long_scoreboard")


def test_no_samples_is_no_profile() -> None:
    with pytest.raises(RecorderError, match="no samples"):
        parse_stalls(tree("3.6.0"), "odyssey.sampled")
