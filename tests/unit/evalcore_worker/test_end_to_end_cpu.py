"""The whole worker on this machine's CPU: right texts, broken ones, hostile ones, and that nothing outlives the loop."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalcore.jobs import Limits, Mode, Reason
from evalcore.results import Status
from tests.unit.evalcore_worker.real_loop import (
    KERNELS,
    SOFTMAX,
    SQUARE,
    TUNED,
    RealLoop,
    gone_within,
    kernelbench,
    kill_hard,
    processes_of,
    tutorial,
    with_forward,
    with_gradients,
)

pytestmark = pytest.mark.timeout(400)
SHORT = Limits(build_s=30.0, run_s=2.0, memory_bytes=3 << 30)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLoop]:
    made = RealLoop(tmp_path_factory.mktemp("loop") / "scratch")
    yield made
    made.close()
    assert not gone_within(made.scratch)


def assert_next_is_right(loop: RealLoop, folder: Path) -> None:
    """The point of the whole picture: whatever the last text did, the next one is judged as ever."""
    after = loop.evaluate(kernelbench(folder / "next"))
    assert after.result.correct, after.result.error


def test_hello_says_who_it_is(loop: RealLoop) -> None:
    hello = loop.hello
    assert hello["protocol"] == 1 and hello["flavour"] == "interpret"
    assert hello["torch"] and hello["triton"] and hello["fork"] is True
    assert len(hello["evaluator_sha"]) == 64 and len(hello["evaluator_md5"]) == 32
    assert {"process", "no-secrets"} <= set(hello["isolation"])
    assert Path(hello["scratch"]).is_dir()


def test_kernelbench_pair_is_right(loop: RealLoop, tmp_path: Path) -> None:
    done = loop.evaluate(kernelbench(tmp_path))
    assert done.result.status is Status.CORRECT, done.result.error
    assert done.reason is None
    assert done.result.runtime_us is None and done.result.speedup is None and done.timing is None
    line = done.cases[0]
    assert (line.status, line.trials_right, line.trials) == ("right", 5, 5)
    assert len(set(line.seeds)) >= 5
    assert "interpreted" in {flag.code for flag in done.flags}
    assert done.environment.interpreted and done.environment.card is None
    assert any(kernel.name == "fused_add" and kernel.launches for kernel in done.kernels)
    assert done.stages["total"] > 0 and done.seed > 0


def test_the_references_parameters_are_copied_over(loop: RealLoop, tmp_path: Path) -> None:
    """A candidate that draws its own weights otherwise is right all the same, as KernelBench has it."""
    text = KERNELS.replace("torch.randn(300)", "torch.zeros(300)")
    assert loop.evaluate(kernelbench(tmp_path, text)).result.correct


def test_tutorial_style_is_right(loop: RealLoop, tmp_path: Path) -> None:
    done = loop.evaluate(tutorial(tmp_path))
    assert done.result.correct, done.result.error


def test_a_given_seed_repeats_the_trials(loop: RealLoop, tmp_path: Path) -> None:
    first = loop.evaluate(kernelbench(tmp_path))
    again = loop.evaluate(kernelbench(tmp_path), seed=first.seed)
    assert again.seed == first.seed
    few, many = sorted((set(again.cases[0].seeds), set(first.cases[0].seeds)), key=len)
    assert len(few) >= 5 and few <= many, "how many calls follow the trials is a matter of time, which ones is not"
    assert again.cases[0].max_abs_error == first.cases[0].max_abs_error
    assert not set(loop.evaluate(kernelbench(tmp_path)).cases[0].seeds) & many


def test_a_wrong_tail_is_incorrect_and_described(loop: RealLoop, tmp_path: Path) -> None:
    text = KERNELS.replace("mask = offsets < columns", "mask = offsets < columns - 7")
    done = loop.evaluate(kernelbench(tmp_path, text))
    assert done.result.status is Status.INCORRECT
    assert "columns >= 293 untouched" in (done.result.error or "")
    assert done.cases[0].trials_right == 0


def test_a_compile_error_has_its_place(loop: RealLoop, tmp_path: Path) -> None:
    text = KERNELS + "\nthis is no Python\n"
    done = loop.evaluate(kernelbench(tmp_path, text))
    assert done.result.status is Status.COMPILE_ERROR
    (diagnostic,) = done.diagnostics
    assert diagnostic.line == len(text.rstrip().splitlines())
    assert diagnostic.path == str(tmp_path / "candidate.py")


def test_an_exception_has_its_place(loop: RealLoop, tmp_path: Path) -> None:
    text = with_forward("        return x.no_such_method()")
    done = loop.evaluate(kernelbench(tmp_path, text))
    assert (done.result.status, done.reason) == (Status.ERROR, Reason.CRASH)
    assert text.splitlines()[done.diagnostics[0].line - 1].strip() == "return x.no_such_method()"


def test_out_of_bounds_is_found_before_it_hurts(loop: RealLoop, tmp_path: Path) -> None:
    text = KERNELS.replace("mask = offsets < columns", "mask = offsets < columns + 100")
    done = loop.evaluate(kernelbench(tmp_path, text))
    assert done.result.status in (Status.ERROR, Status.INCORRECT)
    assert not done.result.correct


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("        while True: pass", Reason.TIMEOUT),
        ("        import signal, time\n        [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]\n"
         "        time.sleep(600)", Reason.TIMEOUT),
        ("        import ctypes\n        ctypes.string_at(0)", Reason.CRASH),
        ("        os._exit(0)", Reason.CRASH),
        ("        raise SystemExit(3)", Reason.CRASH),
        ("        keep = []\n        while True: keep.append(torch.ones(16 << 20))", Reason.OUT_OF_MEMORY),
        ("        [os.fork() or __import__('time').sleep(900) for _ in range(6)]\n        os._exit(1)", Reason.CRASH),
        ("        for n in range(3, 256):\n            try: os.write(n, b'{\"post\": \"answer\"}' * 99)\n"
         "            except OSError: pass\n        return x", Reason.CRASH),
    ],
    ids=["endless", "ignores signals", "segfault", "exit 0", "SystemExit", "memory", "forks", "garbage on its channel"],
)  # fmt: skip
def test_a_hostile_text_ends_alone(loop: RealLoop, tmp_path: Path, body: str, reason: Reason) -> None:
    limits = replace(SHORT, run_s=30.0, memory_bytes=1 << 30) if reason is Reason.OUT_OF_MEMORY else SHORT
    done = loop.evaluate(kernelbench(tmp_path, with_forward(body)), limits=limits)
    assert (done.result.status, done.reason) == (Status.ERROR, reason), (done.result.error, done.reason)
    assert_next_is_right(loop, tmp_path)


def test_megabytes_of_print_do_no_harm(loop: RealLoop, tmp_path: Path) -> None:
    body = "        for _ in range(200): print('x' * 100_000)\n        return x + y * self.weight * self.scale"
    done = loop.evaluate(kernelbench(tmp_path, with_forward(body)))
    assert done.result.correct, done.result.error
    assert "no-custom-kernel" in {flag.code for flag in done.flags}
    assert_next_is_right(loop, tmp_path)


def test_sleepers_of_a_dead_case_are_ended(loop: RealLoop, tmp_path: Path) -> None:
    body = (
        "        if os.fork() == 0:\n            os.setsid()\n            if os.fork() == 0:\n"
        "                import time\n                time.sleep(900)\n            os._exit(0)\n"
        "        os.kill(os.getpid(), 9)"
    )
    done = loop.evaluate(kernelbench(tmp_path, with_forward(body)), limits=SHORT)
    assert not done.result.correct
    assert_next_is_right(loop, tmp_path)
    end = time.monotonic() + 10
    while (sleeping := _orphans(loop)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not sleeping


def _orphans(loop: RealLoop) -> set[int]:
    """Processes of the loop whose session is led by nobody that lives: daemons of a case that is gone."""
    living = processes_of(loop.scratch)
    return {pid for pid in living if os.getsid(pid) not in living}


def test_a_file_of_the_person_stays(loop: RealLoop, tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("keep me")
    body = (
        f"        import shutil\n        shutil.rmtree({str(tmp_path)!r}, ignore_errors=True)\n"
        f"        try: open({str(precious)!r}, 'w').write('gone')\n        except OSError: pass\n"
        "        return x + y * self.weight * self.scale"
    )
    done = loop.evaluate(kernelbench(tmp_path, with_forward(body)))
    if "landlock" in done.environment.isolation:
        assert precious.read_text() == "keep me"


def test_secrets_do_not_reach_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hush-4711")
    monkeypatch.setenv("UNRELATED_VARIABLE", "hush-4712")
    made = RealLoop(tmp_path / "scratch")
    try:
        body = (
            "        everything = repr(dict(os.environ)) + open('/proc/self/environ').read()\n"
            "        raise ValueError('secret seen' if 'hush' in everything else 'nothing seen')"
        )
        done = made.evaluate(kernelbench(tmp_path / "project", with_forward(body)))
        assert "nothing seen" in (done.result.error or "")
    finally:
        made.close()


def test_cancel_while_running_and_while_waiting(loop: RealLoop, tmp_path: Path) -> None:
    endless = kernelbench(tmp_path, with_forward("        while True: pass"))
    running = loop.start(endless, limits=Limits(build_s=60, run_s=100))
    waiting = loop.start(endless)
    time.sleep(1.0)
    loop.send("cancel", job_id=waiting)
    loop.send("cancel", job_id=running)
    refused = [loop.wait("refused", "done"), loop.wait("refused", "done")]
    assert {frame["job_id"] for frame in refused} == {running, waiting}
    assert all(frame["frame"] == "refused" and frame["refusal"]["code"] == "cancelled" for frame in refused)
    assert_next_is_right(loop, tmp_path)


def test_an_unreadable_frame_is_said_and_survived(loop: RealLoop, tmp_path: Path) -> None:
    assert loop.process.stdin is not None
    loop.process.stdin.write(b'{"frame": "evaluate", "job": 3}\nnot json\n{"frame": "whatever"}\n')
    loop.process.stdin.flush()
    assert_next_is_right(loop, tmp_path)
    assert sum("cannot be understood" in line for line in loop.logs) >= 3


def test_a_failing_reference_is_not_the_candidates_fault(loop: RealLoop, tmp_path: Path) -> None:
    problem = kernelbench(tmp_path)
    broken = replace(problem.reference, text=problem.reference.text.replace("x + y", "x @ y"))
    done = loop.evaluate(replace(problem, reference=broken))
    assert (done.result.status, done.reason) == (Status.ERROR, Reason.NOT_JUDGEABLE)
    assert "reference itself" in (done.result.error or "")


def test_thorough_looks_at_other_sizes(loop: RealLoop, tmp_path: Path) -> None:
    """Right at every size that divides by 64 only: a warning that names a size, not a red verdict."""
    text = KERNELS.replace("(x.shape[0],)", "(x.shape[0] // 64 * 64 if x.shape[0] >= 64 else x.shape[0],)")
    done = loop.evaluate(kernelbench(tmp_path, text), mode=Mode.THOROUGH)
    assert done.result.correct, done.result.error
    assert any(case.origin == "neighbour" and case.status == "wrong" for case in done.cases)
    assert "fails-at-other-sizes" in {flag.code for flag in done.flags}


def test_gradients_are_judged_where_they_are_part_of_the_task(loop: RealLoop, tmp_path: Path) -> None:
    done = loop.evaluate(with_gradients(tmp_path))
    assert done.result.correct, done.result.error
    assert "backward" in done.stages
    wrong = SQUARE.replace("2.0 * a * g", "2.1 * a * g")
    failed = loop.evaluate(with_gradients(tmp_path, wrong))
    assert failed.result.status is Status.INCORRECT
    assert "gradient" in (failed.result.error or "")
    broken = loop.evaluate(with_gradients(tmp_path, SQUARE.replace("(x,) = ctx.saved_tensors", "(x,) = ctx.nothing")))
    assert broken.result.status is Status.ERROR
    assert (
        "ctx.nothing" in SQUARE.replace("ctx.saved_tensors", "ctx.nothing").splitlines()[broken.diagnostics[0].line - 1]
    )


def test_each_config_of_a_tuned_kernel_is_judged(loop: RealLoop, tmp_path: Path) -> None:
    assert loop.evaluate(tutorial(tmp_path, TUNED), mode=Mode.THOROUGH).result.correct
    wrong = TUNED.replace("{'BLOCK': 256}", "{'BLOCK': 64}")
    done = loop.evaluate(tutorial(tmp_path, wrong), mode=Mode.THOROUGH)
    assert done.result.status is Status.INCORRECT
    assert "BLOCK=64" in (done.result.error or "")
    saved = loop.evaluate(tutorial(tmp_path, wrong.replace("'BLOCK': 64", "'BLOCK': 32")))
    assert saved.result.status is Status.INCORRECT, "a config that is new since the last evaluation runs on a save"


def test_too_large_is_reduced_and_said(loop: RealLoop, tmp_path: Path) -> None:
    problem = kernelbench(tmp_path)
    large = problem.reference.text.replace("N = 64", "N = 1_000_000")
    problem = replace(
        problem,
        reference=replace(problem.reference, text=large),
        inputs=replace(problem.inputs, constants=(("N", 1_000_000),)),
    )
    done = loop.evaluate(problem)
    assert done.result.correct, done.result.error
    assert done.cases[0].origin == "reduced"
    assert "reduced-sizes" in {flag.code for flag in done.flags}
    wrong = problem.candidate.text.replace("mask = offsets < columns", "mask = offsets < columns - 7")
    failed = loop.evaluate(replace(problem, candidate=replace(problem.candidate, text=wrong)))
    assert (failed.result.status, failed.reason) == (Status.ERROR, Reason.NOT_JUDGEABLE)


def test_too_large_with_nothing_to_vary(loop: RealLoop, tmp_path: Path) -> None:
    problem = kernelbench(tmp_path)
    large = problem.reference.text.replace("N = 64", "N = 1_000_000")
    problem = replace(
        problem,
        reference=replace(problem.reference, text=large),
        inputs=replace(problem.inputs, constants=(), batch_like=()),
    )
    done = loop.evaluate(problem)
    assert (done.result.status, done.reason) == (Status.ERROR, Reason.NOT_JUDGEABLE)


def test_prepare_then_the_save_pays_for_no_inputs(loop: RealLoop, tmp_path: Path) -> None:
    problem = tutorial(tmp_path, SOFTMAX.replace("181, 78", "90, 70"))
    loop.send("prepare", problem=problem)
    assert loop.wait("prepared")["case"] == "181x78"
    done = loop.evaluate(problem)
    assert done.result.correct, done.result.error
    assert done.stages["prepare"] < 0.05


def _start_endless(tmp_path: Path) -> RealLoop:
    made = RealLoop(tmp_path / "scratch")
    body = "        [os.fork() or __import__('time').sleep(900) for _ in range(4)]\n        while True: pass"
    made.start(kernelbench(tmp_path / "project", with_forward(body)), limits=Limits(build_s=60, run_s=100))
    end = time.monotonic() + 60
    while not any(stage["stage"] == "trials" for stage in made.stages) and time.monotonic() < end:
        try:
            made.wait("nothing", seconds=0.3)
        except Exception:
            continue
    time.sleep(1.0)
    assert len(processes_of(made.scratch)) > 5
    return made


def test_nothing_outlives_a_killed_worker(tmp_path: Path) -> None:
    """SIGKILL to the process that the server started: the loop below it, its cases and what they forked all end."""
    made = _start_endless(tmp_path)
    kill_hard(made)
    assert not gone_within(made.scratch)
    made.log.close()


def test_nothing_outlives_a_killed_loop(tmp_path: Path) -> None:
    """SIGKILL to the loop itself, as the system's memory killer would: its warden sweeps up."""
    made = _start_endless(tmp_path)
    below = [pid for pid in processes_of(made.scratch) if _parent(pid) == made.process.pid]
    assert len(below) == 1
    os.kill(below[0], 9)
    assert not gone_within(made.scratch)
    assert made.process.wait(10) != 0
    made.log.close()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_nothing_outlives_a_server_that_ends(tmp_path: Path) -> None:
    made = _start_endless(tmp_path)
    assert made.process.stdin is not None
    made.process.stdin.close()
    assert not gone_within(made.scratch)
    assert made.process.wait(10) == 0
    assert not any(made.scratch.glob("loop-*")), "the loop's folder is swept"
    made.log.close()
