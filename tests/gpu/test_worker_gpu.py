"""The worker on a card: right, broken and hostile texts, stage times, the loop's promise never to open the card itself.

python -m pytest tests/gpu/test_worker_gpu.py -m gpu -s
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalcore.jobs import Limits, Measurement, Mode, Reason
from evalcore.problem import Problem
from evalcore.results import Status
from tests.unit.evalcore_worker.real_loop import (
    KERNELS,
    SOFTMAX,
    RealLoop,
    gone_within,
    kernelbench,
    kill_hard,
    processes_of,
    tutorial,
    with_forward,
)


def _has_card() -> bool:
    return os.path.exists("/dev/nvidiactl")


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not _has_card(), reason="no NVIDIA device on this machine"),
    pytest.mark.timeout(600),
]
SHORT = Limits(build_s=60.0, run_s=4.0)
SAVES = 12


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLoop]:
    made = RealLoop(tmp_path_factory.mktemp("loop") / "scratch", flavour="compile", options={"spares": 2})
    assert made.hello["devices"], made.hello
    yield made
    made.close()
    assert not gone_within(made.scratch)


def large(problem: Problem) -> Problem:
    """The tutorial's softmax at 4096 x 4096."""
    inputs = replace(problem.inputs, statements="x = torch.randn(4096, 4096, device=DEVICE)")
    return replace(problem, inputs=inputs, cases=(replace(problem.cases[0], name="4096x4096"),))


def variant(number: int) -> str:
    """A text never seen whose IR differs from every other's and whose answer does not."""
    return SOFTMAX.replace('other=-float("inf")', f"other=-1.{number:04d}e30")


def report(title: str, done: list[Measurement], seconds: list[float]) -> None:
    stages = sorted({name for each in done for name in each.stages})
    print(f"\n{title}: {len(done)} evaluations, save to verdict median {statistics.median(seconds):.3f} s, "
          f"most {max(seconds):.3f} s")  # fmt: skip
    for name in stages:
        values = [each.stages.get(name, 0.0) for each in done]
        print(f"  {name:16s} median {statistics.median(values):.4f} s   most {max(values):.4f} s")


def test_the_loop_never_opens_the_card(loop: RealLoop, tmp_path: Path) -> None:
    """Or its forks would be broken: no descriptor on a device in the loop itself, also after evaluations."""
    assert loop.evaluate(tutorial(tmp_path)).result.correct
    mine = [pid for pid in processes_of(loop.scratch) if _parent(pid) == loop.process.pid]
    assert len(mine) == 1
    opened = [os.readlink(f"/proc/{mine[0]}/fd/{each}") for each in os.listdir(f"/proc/{mine[0]}/fd")]
    assert not [each for each in opened if "/dev/nvidia" in each], opened
    assert len(os.listdir(f"/proc/{mine[0]}/task")) == 1


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_softmax_is_right_and_timed(loop: RealLoop, tmp_path: Path) -> None:
    done = loop.evaluate(large(tutorial(tmp_path)))
    assert done.result.status is Status.CORRECT, done.result.error
    assert done.result.runtime_us and done.result.ref_runtime_us and done.result.speedup
    assert 10 < done.result.runtime_us < 1000
    assert done.environment.card and done.environment.uuid and done.environment.driver
    assert {"process", "no-secrets"} <= set(done.environment.isolation)
    figures = {each.figure for each in done.samples if each.subject == "candidate" and each.values_us}
    assert {"device", "call"} <= figures
    assert done.timing is not None and done.timing["n"] >= 10
    assert any(kernel.name == "softmax_kernel" and kernel.registers for kernel in done.kernels)
    print("\nisolation:", done.environment.isolation, "timer:", done.timing["timer"])


def test_kernelbench_pair_is_right(loop: RealLoop, tmp_path: Path) -> None:
    done = loop.evaluate(kernelbench(tmp_path))
    assert done.result.correct, done.result.error
    assert done.cases[0].trials_right == 5


def test_save_to_verdict(loop: RealLoop, tmp_path: Path) -> None:
    """Two seconds between saves, each a text never seen; the figures are printed, the bar is a band."""
    problem = large(tutorial(tmp_path))
    loop.send("prepare", problem=problem)
    loop.wait("prepared")
    done, seconds = [], []
    for number in range(SAVES):
        text = variant(1000 + number)
        changed = replace(
            problem,
            candidate=replace(problem.candidate, text=text),
            reference=replace(problem.reference, text=text),
        )
        started = time.perf_counter()
        verdict = loop.evaluate(changed)
        seconds.append(time.perf_counter() - started)
        assert verdict.result.correct, verdict.result.error
        done.append(verdict)
        time.sleep(2.0)
    report("softmax 4096 x 4096", done, seconds)
    assert statistics.median(seconds[1:]) < 0.8


def test_a_compile_error_is_quick(loop: RealLoop, tmp_path: Path) -> None:
    problem = tutorial(tmp_path)
    seconds = []
    for number in range(4):
        text = SOFTMAX.replace("tl.exp(x)", f"tl.expp(x + {number})")
        changed = replace(
            problem,
            candidate=replace(problem.candidate, text=text),
            reference=replace(problem.reference, text=text),
        )
        started = time.perf_counter()
        verdict = loop.evaluate(changed)
        seconds.append(time.perf_counter() - started)
        assert verdict.result.status is Status.COMPILE_ERROR
        assert "tl.expp" in text.splitlines()[verdict.diagnostics[0].line - 1]
        time.sleep(2.0)
    print(f"\ncompile error on its line: median {statistics.median(seconds):.3f} s")
    assert statistics.median(seconds) < 0.5


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("        while True: pass", Reason.TIMEOUT),
        ("        import ctypes\n        ctypes.string_at(0)", Reason.CRASH),
        ("        os._exit(0)", Reason.CRASH),
        ("        [os.fork() or __import__('time').sleep(900) for _ in range(6)]\n        os._exit(1)", Reason.CRASH),
        (
            "        keep = []\n        while True: keep.append(torch.ones(1 << 30, device='cuda'))",
            Reason.OUT_OF_MEMORY,
        ),
    ],
    ids=["endless", "segfault", "exit 0", "forks", "card memory"],
)
def test_a_hostile_text_ends_alone(loop: RealLoop, tmp_path: Path, body: str, reason: Reason) -> None:
    done = loop.evaluate(kernelbench(tmp_path, with_forward(body)), limits=replace(SHORT, run_s=20.0))
    assert (done.result.status, done.reason) == (Status.ERROR, reason), (done.result.error, done.reason)
    assert loop.evaluate(kernelbench(tmp_path / "next")).result.correct


def test_an_illegal_access_ends_alone(loop: RealLoop, tmp_path: Path) -> None:
    """The fault poisons its own context for good, and nobody else's: the referee has the same memory open."""
    text = KERNELS.replace("mask = offsets < columns", "mask = offsets < columns * 100000000").replace(
        "row * columns + offsets", "row.to(tl.int64) * columns * 1000000 + offsets"
    )
    done = loop.evaluate(kernelbench(tmp_path, text), limits=SHORT)
    assert not done.result.correct
    assert loop.evaluate(kernelbench(tmp_path / "next")).result.correct


def test_an_endless_kernel_ends_alone(loop: RealLoop, tmp_path: Path) -> None:
    text = KERNELS.replace(
        "    a = tl.load(", "    while tl.load(x) > -1e30:\n        tl.store(out, 1.0)\n    a = tl.load("
    )
    done = loop.evaluate(kernelbench(tmp_path, text), limits=SHORT)
    assert (done.result.status, done.reason) == (Status.ERROR, Reason.TIMEOUT), done.result.error
    assert loop.evaluate(kernelbench(tmp_path / "next")).result.correct


def test_tensors_cross_through_the_host_without_ipc(tmp_path: Path) -> None:
    made = RealLoop(tmp_path / "scratch", flavour="compile", options={"ipc": False})
    try:
        done = made.evaluate(kernelbench(tmp_path / "project"))
        assert done.result.correct and done.result.runtime_us, done.result.error
        text = KERNELS.replace("mask = offsets < columns", "mask = offsets < columns - 7")
        assert made.evaluate(kernelbench(tmp_path / "project", text)).result.status is Status.INCORRECT
    finally:
        made.close()


def test_thorough_brings_more(loop: RealLoop, tmp_path: Path) -> None:
    started = time.perf_counter()
    done = loop.evaluate(large(tutorial(tmp_path)), mode=Mode.THOROUGH)
    seconds = time.perf_counter() - started
    assert done.result.correct, done.result.error
    assert done.environment.hostile_clock == "bounded"
    assert done.probes
    report("thorough", [done], [seconds])


def test_the_comparison_with_the_text_before_follows(loop: RealLoop, tmp_path: Path) -> None:
    problem = large(tutorial(tmp_path))
    before = problem.candidate.text
    time.sleep(3.0)
    done = loop.evaluate(problem, compare_with=before)
    started = time.perf_counter()
    amended = loop.wait("amended", seconds=60)
    assert amended["job_id"] == done.job_id
    ab = amended["measurement"]["ab"]
    print(f"\nA/B of a text against itself: {ab}, {time.perf_counter() - started:.2f} s after the verdict")
    assert ab["verdict"] in ("same", "ambiguous")


def test_roofs(loop: RealLoop) -> None:
    loop.send("ceilings", device="cuda:0")
    frame = loop.wait("ceilings", seconds=120)
    assert frame["ceilings"] and frame["ceilings"]["copy_gb_per_s"] > 100, frame


def test_nothing_outlives_a_killed_worker(tmp_path: Path) -> None:
    made = RealLoop(tmp_path / "scratch", flavour="compile")
    made.start(kernelbench(tmp_path / "project", with_forward("        while True: pass")))
    time.sleep(8.0)
    kill_hard(made)
    assert not gone_within(made.scratch)
    made.log.close()
