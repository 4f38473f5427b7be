"""Evaluators that stay unmodified: run in a copy, confined, pinned; their verdict is the only one."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from evalcore.jobs import Measurement, Reason, Refusal
from evalcore.results import Status, incorrect
from server.evaluators import task as tasks
from server.evaluators.judging import Asked, Card, judge, record
from server.evaluators.running import Confinement
from server.host import Host
from tests.support.ledgers import judged, opened

CARD = Card(name="Test Card", uuid="GPU-test", driver="1")
RIGHT, WRONG = "def double(x):\n    return 2 * x\n", "def double(x):\n    return x\n"

CHECK = """
import sys
from candidate import double
if double(21) != 42:
    print("double(21) is", double(21))
    sys.exit(1)
print("mean 0.125 ms, reference 0.250 ms")
"""


class FixedHost(Host):
    """A host whose state lies in the test's folder."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None) -> None:
        super().__init__({**os.environ, **(environ or {})})
        self._folder = folder

    def state_dir(self) -> Path:
        (self._folder / "state").mkdir(exist_ok=True)
        return self._folder / "state"


@pytest.fixture()
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "evaluator").mkdir(parents=True)
    return tmp_path


def put(folder: Path, text: str, name: str = "check.py") -> Path:
    path = folder / "workspace" / "evaluator" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def task(folder: Path, **changes: Any) -> tasks.Task:
    given = {"adapter": "script", "script": "check.py", "candidate": "candidate.py", "timeout_s": 60, **changes}
    return tasks.parse(folder / "workspace", given)


async def verdict(folder: Path, text: str, **changes: Any) -> Measurement | Refusal:
    where = Confinement(host=FixedHost(folder), python=sys.executable, cuda=False)
    return await judge(task(folder, **changes), Asked(file="candidate.py", kernel="double", text=text), where, CARD)


async def measured(folder: Path, text: str, **changes: Any) -> Measurement:
    found = await verdict(folder, text, **changes)
    assert isinstance(found, Measurement), found
    return found


async def test_a_script_says_right_and_its_numbers_are_read(folder: Path) -> None:
    path = put(folder, CHECK)
    found = await measured(folder, RIGHT, runtime_ms=r"mean ([0-9.]+) ms", ref_runtime_ms=r"reference ([0-9.]+) ms")
    assert found.result.status is Status.CORRECT
    assert (found.result.runtime_us, found.result.ref_runtime_us, found.result.speedup) == (125.0, 250.0, 2.0)
    assert found.format == "evaluator/script" and found.environment.evaluator_md5
    assert sorted(each.name for each in path.parent.iterdir()) == ["check.py"], "nothing is left in the person's folder"


async def test_a_script_says_wrong(folder: Path) -> None:
    put(folder, CHECK)
    found = await measured(folder, WRONG)
    assert found.result.status is Status.INCORRECT and "double(21) is 21" in (found.result.error or "")
    assert found.result.speedup is None


async def test_no_number_is_invented(folder: Path) -> None:
    put(folder, CHECK)
    found = await measured(folder, RIGHT)
    assert (found.result.runtime_us, found.result.speedup, found.cases) == (None, None, ())


LEAVES_A_CHILD = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
sys.exit(4)
"""


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ("import sys; sys.exit(3)", None, "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Reason.CRASH, "signal 11"),
        ("while True: pass", Reason.TIMEOUT, "did not end within 1 s"),
        (LEAVES_A_CHILD, None, "exit code 4"),
        ("print('x' * 50_000_000); raise SystemExit(5)", None, "exit code 5"),
    ],
    ids=["other exit code", "crash", "endless", "leaves a child", "prints megabytes"],
)  # fmt: skip
async def test_a_script_that_ends_badly(body: str, reason: Reason | None, words: str, folder: Path) -> None:
    put(folder, body)
    found = await measured(folder, RIGHT, timeout_s=1 if reason is Reason.TIMEOUT else 60)
    assert found.result.status is Status.ERROR and words in (found.result.error or "") and found.reason is reason
    assert len(found.result.error or "") < 5000


async def test_a_script_gets_no_secrets_and_no_home(folder: Path) -> None:
    put(folder, """
        import os, sys
        print(sorted(os.environ))
        bad = [name for name in os.environ if "TOKEN" in name or "KEY" in name]
        home = os.path.expanduser("~")
        sys.exit(1 if bad or not home.startswith(os.environ["TMPDIR"].rsplit("/", 1)[0]) else 0)
    """)  # fmt: skip
    where = Confinement(
        host=FixedHost(folder, {"HF_TOKEN": "secret", "OPENAI_API_KEY": "secret"}), python=sys.executable, cuda=False
    )
    found = await judge(task(folder), Asked(file="c.py", kernel="k", text=RIGHT), where, CARD)
    assert isinstance(found, Measurement) and found.result.correct, found
    assert "rlimits" in found.environment.isolation


async def test_what_holds_of_the_sandbox_stands_in_the_row(folder: Path) -> None:
    put(folder, f"""
        import pathlib, sys
        try:
            pathlib.Path({str(folder / "workspace" / "stolen")!r}).write_text("x")
        except OSError:
            sys.exit(0)
        sys.exit(1)
    """)  # fmt: skip
    found = await measured(folder, RIGHT)
    assert found.result.correct == ("landlock" in found.environment.isolation)
    assert any(flag.code == "less-isolation" for flag in found.flags) != ("landlock" in found.environment.isolation)


async def test_a_changed_evaluator_is_refused_until_it_is_pinned_again(folder: Path) -> None:
    path = put(folder, CHECK)
    put(folder, "x = 1\n", "support/data.py")
    first = await measured(folder, RIGHT)
    put(folder, CHECK.replace("!= 42", "== 0"))
    refused = await verdict(folder, WRONG)
    assert isinstance(refused, Refusal) and refused.code == "evaluator_changed"
    assert first.environment.evaluator_md5 in refused.message
    put(folder, CHECK)
    assert isinstance(await verdict(folder, RIGHT), Measurement)
    put(folder, "x = 2\n", "support/data.py")
    assert isinstance(await verdict(folder, RIGHT), Refusal), "a support file counts as well"
    tasks.pin(task(folder), folder / "state")
    again = await measured(folder, RIGHT)
    assert again.environment.evaluator_md5 != first.environment.evaluator_md5
    assert path.exists()


async def test_the_organisers_md5_is_that_of_md5sum(folder: Path) -> None:
    put(folder, CHECK)
    md5, _ = tasks.digests(task(folder))
    assert md5 == os.popen(f"md5sum < {folder}/workspace/evaluator/check.py").read().split()[0]
    assert isinstance(await verdict(folder, RIGHT, md5=md5), Measurement)
    refused = await verdict(folder, RIGHT, md5="0" * 32)
    assert isinstance(refused, Refusal) and md5 in refused.message


async def test_a_candidate_that_rewrites_the_evaluator_changes_a_copy(folder: Path) -> None:
    path = put(folder, CHECK)
    cheat = "import pathlib\npathlib.Path('check.py').write_text('')\n" + WRONG
    found = await measured(folder, cheat)
    assert found.result.status is Status.INCORRECT
    assert path.read_text() == CHECK


GPUMODE = """
import os, sys
from submission import custom_kernel
log = os.fdopen(int(os.environ["POPCORN_FD"]), "w")
lines = open(sys.argv[2]).read().splitlines()
kind = "test" if sys.argv[1] == "test" else "benchmark"
print(f"{kind}-count: {len(lines)}", file=log)
passed = True
for number, line in enumerate(lines):
    sizes = dict(part.split(": ") for part in line.split("; "))
    print(f"{kind}.{number}.spec: {line}", file=log)
    if custom_kernel(int(sizes["size"])) == 2 * int(sizes["size"]):
        said = "status: pass" if kind == "test" else f"mean: {1000 * 4 ** number}"
        print(f"{kind}.{number}.{said}", file=log)
    else:
        passed = False
        print(f"{kind}.{number}.status: fail", file=log)
        print(f"{kind}.{number}.error: mismatch found! got {custom_kernel(int(sizes['size']))}", file=log)
print("check: pass" if passed else "check: fail", file=log)
log.close()
sys.exit(0 if passed else 112)
"""
TESTS = [{"size": 127, "seed": 4242}, {"size": 128, "seed": 5236}]


async def test_gpu_modes_evaluator(folder: Path) -> None:
    put(folder, GPUMODE, "eval.py")
    given: dict[str, Any] = {"adapter": "gpumode", "script": "eval.py", "candidate": "submission.py", "tests": TESTS}
    right, wrong = (f"def custom_kernel(x):\n    return {factor} * x\n" for factor in (2, 3))
    found = await measured(folder, right, **given)
    assert found.result.correct
    assert [case.name for case in found.cases] == ["size: 127; seed: 4242", "size: 128; seed: 5236"]
    assert found.result.runtime_us is None, "its tests are not timed"
    timed = await measured(folder, right, **given, mode="benchmark")
    assert timed.result.runtime_us == pytest.approx(2.0) and [case.runtime_us for case in timed.cases] == [1.0, 4.0]
    bad = await measured(folder, wrong, **given)
    assert bad.result.status is Status.INCORRECT
    assert "size: 127; seed: 4242: mismatch found! got 381" in (bad.result.error or "")
    broken = await measured(folder, "raise RuntimeError('no kernel')\n", **given)
    assert broken.result.status is Status.ERROR and "no kernel" in (broken.result.error or "")


KERNELBENCH = """
import sys
given = dict(argument.split("=", 1) for argument in sys.argv[1:])
space = {}
try:
    exec(open(given["kernel_src_path"]).read(), space)
    right = space["double"](21) == 42
    print(f"[Eval] Kernel eval result: compiled=True correctness={right} metadata={{}} runtime=0.031")
except SyntaxError as problem:
    right = False
    print(f"[Eval] Kernel eval result: compiled=False correctness=False metadata={{'error': '{problem}'}}")
print("[Timing] PyTorch Reference Eager exec time: 0.062 ms")
print("[Timing] Custom Kernel exec time: " + ("0.031 ms" if right else "-1.0 ms"))
"""


@pytest.mark.parametrize(
    ("text", "status"), [(RIGHT, Status.CORRECT), (WRONG, Status.INCORRECT), ("def (", Status.COMPILE_ERROR)]
)
async def test_kernelbenchs_own_evaluator(text: str, status: Status, folder: Path) -> None:
    put(folder, KERNELBENCH, "scripts/run_and_check.py")
    given: dict[str, Any] = {"adapter": "kernelbench", "script": "scripts/run_and_check.py",
                             "arguments": ["ref_arch_src_path=model.py"]}  # fmt: skip
    found = await measured(folder, text, **given)
    assert found.result.status is status
    assert found.result.speedup == (pytest.approx(2.0) if status is Status.CORRECT else None)


FLASHINFER = """
import json, pathlib, sys
def cli():
    name = sys.argv[sys.argv.index("--solutions") + 1]
    solution = json.loads(pathlib.Path("solutions", name + ".json").read_text())
    space = {}
    exec(solution["sources"][0]["content"], space)
    pathlib.Path("traces").mkdir()
    with open("traces/double.jsonl", "w") as out:
        for size in (3, 4):
            right = space["double"](size) == 2 * size
            evaluation = {"status": "PASSED" if right else "INCORRECT_NUMERICAL", "log": "off by %d" % size,
                          "performance": {"latency_ms": 0.01, "reference_latency_ms": 0.02} if right else None}
            trace = {"definition": "double", "solution": name, "workload": {"axes": {"N": size}, "uuid": str(size)},
                     "evaluation": evaluation}
            print(json.dumps(trace), file=out)
        print(json.dumps({**trace, "solution": "somebody else's"}), file=out)
"""


@pytest.mark.parametrize(("text", "status"), [(RIGHT, Status.CORRECT), (WRONG, Status.INCORRECT)])
async def test_flashinfer_bench(text: str, status: Status, folder: Path) -> None:
    put(folder, FLASHINFER, "flashinfer_bench/cli/main.py")
    for name in ("flashinfer_bench/__init__.py", "flashinfer_bench/cli/__init__.py"):
        put(folder, "", name)
    given: dict[str, Any] = {"adapter": "flashinfer", "definition": "double", "entry": "kernel.py::double"}
    given["script"] = ""
    found = await measured(folder, text, **given)
    assert found.result.status is status and [case.name for case in found.cases] == ["N=3", "N=4"]
    if status is Status.CORRECT:
        assert found.result.runtime_us == pytest.approx(10.0) and found.result.speedup == pytest.approx(2.0)
    else:
        assert "N=3: INCORRECT_NUMERICAL off by 3" in (found.result.error or "")


async def test_its_verdict_is_the_only_one_and_ours_stands_beside_it(folder: Path) -> None:
    put(folder, CHECK)
    theirs = await measured(folder, RIGHT)
    with opened(folder) as ledger:
        ours = judged(RIGHT, incorrect("differs for 0"), file="candidate.py", kernel="double")
        seq = record(ledger, theirs, text=RIGHT, ours=ours)
        latest = ledger.latest("candidate.py", "double")
        assert latest is not None and latest.seq == seq and latest.status == "correct"
        assert latest.judge == "evaluator/script"
        flag = next(flag for flag in latest.measurement.flags if flag.code == "odyssey-disagrees")
        assert "differs for 0" in flag.message and latest.measurement.environment.flags["odyssey_seq"] == seq - 1
        assert ledger.row(seq - 1).status == "incorrect" and ledger.verify().ok


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"adapter": "script"}, "candidate"),
        ({"adapter": "script", "candidate": "../../escape.py"}, "leads out of"),
        ({"adapter": "script", "candidate": "c.py", "folder": "/etc"}, "leads out of"),
        ({"adapter": "script", "candidate": "c.py", "script": "../x.py"}, "leads out of"),
        ([], "table"),
    ],
)
def test_a_description_that_leads_astray_is_refused(given: Any, words: str, folder: Path) -> None:
    with pytest.raises(tasks.TaskError, match=words):
        tasks.parse(folder / "workspace", given)


async def test_a_link_in_the_evaluator_is_refused(folder: Path) -> None:
    put(folder, CHECK)
    (folder / "workspace" / "evaluator" / "data").symlink_to("/etc")
    refused = await verdict(folder, RIGHT)
    assert isinstance(refused, Refusal) and "symbolic link" in refused.message


def test_workspace_toml_is_read(folder: Path) -> None:
    assert tasks.task_of(folder / "workspace") is None
    path = folder / "workspace" / "workspace.toml"
    path.write_text('name = "x"\n')
    assert tasks.task_of(folder / "workspace") is None
    path.write_text('[evaluator]\nadapter = "script"\nscript = "check.py"\ncandidate = "c.py"\nspeedup = "(x)"\n')
    found = tasks.task_of(folder / "workspace")
    assert found is not None and found.options == {"speedup": "(x)"} and found.timeout_s == 600
    path.write_text("[evaluator\n")
    with pytest.raises(tasks.TaskError):
        tasks.task_of(folder / "workspace")
