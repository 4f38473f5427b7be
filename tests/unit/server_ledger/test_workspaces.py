"""Workspaces: what is made, what comes along from another one, and that no number does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evalcore.problem import Case, Inputs, InputsKind
from evalcore.results import correct, incorrect
from server import cli
from server.evaluators.task import TaskError, task_of
from server.ledger.evidence import NoEvidence, evidence
from server.ledger.store import Ledger
from server.workspaces.making import CannotMake, Evaluator, make, shapes_of
from server.workspaces.shape_sets import shape_sets
from tests.support import measurements
from tests.support.ledgers import in_environment, judged, plain, sha_of

INPUTS = Inputs(
    kind=InputsKind.STATEMENTS, statements="x = torch.randn(M, N)", names=("x",), constants=(("M", 4096), ("N", 4096)),
    batch_like=("M",),
)  # fmt: skip


def problem(tmp_path: Path, *cases: Case):  # type: ignore[no-untyped-def]
    path = tmp_path / "kernel file.py"
    path.write_text("def k(): pass\n")
    made = measurements.problem(path.read_text(), path=str(path))
    return replace(made, inputs=INPUTS, cases=cases or (Case(name="as given"),))


def test_shape_sets_are_derived_from_the_official_ones(tmp_path: Path) -> None:
    cases = tuple(Case(name=str(n), sizes=(("N", n),)) for n in (4096, 1000, 64))
    odd = Case(name="odd", sizes=(("N", 63),), origin="neighbour")
    sets = shape_sets(problem(tmp_path, *cases, odd))
    assert sets["dev"] == [{"M": 4096, "N": n} for n in (4096, 1000, 64)], "the official list itself"
    assert {"M": 4096, "N": 4096} in sets["stress"] and {"M": 4096, "N": 64} in sets["stress"]
    assert {"M": 4096, "N": 4097} in sets["stress"] and {"M": 4096, "N": 4095} in sets["stress"]
    assert all(sizes["M"] * sizes["N"] <= 1 << 16 for sizes in sets["smoke"]) and sets["smoke"]


def test_a_long_official_list_is_thinned_and_keeps_its_ends(tmp_path: Path) -> None:
    cases = tuple(Case(name=str(n), sizes=(("N", n),)) for n in range(128, 128 * 101, 128))
    dev = shape_sets(problem(tmp_path, *cases))["dev"]
    assert len(dev) == 8 and dev[0]["N"] == 128 and dev[-1]["N"] == 12800


def test_without_constants_there_are_no_shapes(tmp_path: Path) -> None:
    given = replace(problem(tmp_path), inputs=replace(INPUTS, constants=(), batch_like=()))
    assert shape_sets(given) == {"smoke": [], "dev": [], "stress": []}


def test_a_new_workspace(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text("import candidate\n")
    given = Evaluator(adapter="script", path=script, candidate="candidate.py")
    made = make(tmp_path / "work", state_dir=tmp_path / "state", problem=problem(tmp_path), evaluator=given)
    for name in ("rules.md", "phases/1-correct.md", "phases/2-fast.md", "phases/3-per-shape.md", "skills/README.md",
                 "candidates/README.md", "evaluator/check.py", "kernel file.py", "workspace.toml"):  # fmt: skip
        assert name in made.files
    task = task_of(made.folder)
    assert task is not None and task.script == "check.py" and made.evaluator_md5
    shapes = shapes_of(made.folder)
    assert shapes["dev"] == [{"M": 4096, "N": 4096}] and len(shapes["stress"]) > 3 and shapes["smoke"]
    assert made.shapes == {name: len(each) for name, each in shapes.items()}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("mine")
    with pytest.raises(CannotMake, match="not empty"):
        make(tmp_path / "work", state_dir=tmp_path / "state")
    with pytest.raises(CannotMake, match=r"no workspace\.toml"):
        make(tmp_path / "other", state_dir=tmp_path / "state", source=tmp_path / "work")


@pytest.fixture()
def old(tmp_path: Path) -> Path:
    """A workspace with an evaluator, candidates and a ledger of another card."""
    script = tmp_path / "check.py"
    script.write_text("import candidate\n")
    make(tmp_path / "old", state_dir=tmp_path / "state", problem=problem(tmp_path),
         evaluator=Evaluator(adapter="script", path=script))  # fmt: skip
    (tmp_path / "old" / "candidates" / "idea.py").write_text("# an idea\n")
    (tmp_path / "old" / "secret").symlink_to("/etc/passwd")
    (tmp_path / "old" / "candidates" / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "old" / "plot.png").write_text("a number")
    with Ledger.open(tmp_path / "old", state_dir=tmp_path / "state") as ledger:
        for text, result in (("right\n", correct(runtime_us=12.5, ref_runtime_us=25.0)), ("wrong\n", incorrect("no")),
                             ("dead\n", None)):  # fmt: skip
            row = in_environment(judged(text, result, file="k.py", author="tuner"), card="Old Card", uuid="GPU-old")
            ledger.append(row, text=text, intent="num_warps | 8")
        ledger.bury(sha_of("dead\n"), "slow")
    return tmp_path / "old"


def test_evaluator_and_candidates_come_along_and_the_evidence_stays(old: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "new", state_dir=tmp_path / "state", source=old)
    assert made.carried == 1 and "3 rows" in (made.left_behind or "")
    files = set(made.files)
    assert {"evaluator/check.py", "candidates/idea.py", f"candidates/k-{sha_of('right' + chr(10))[:12]}.py"} <= files
    assert not any(".odyssey" in name or "ledger" in name or name.endswith((".png", "link.py")) for name in files)
    assert (made.folder / f"candidates/k-{sha_of('right' + chr(10))[:12]}.py").read_text() == "right\n"
    index = (made.folder / "candidates" / "CARRIED.md").read_text()
    assert "~~right 12.5 us 2.00x~~ on Old Card" in index and "num_warps / 8" in index, "struck out until measured here"
    everything = "".join(p.read_text() for p in made.folder.rglob("*") if p.is_file() and p.name != "CARRIED.md")
    assert "12.5" not in everything
    assert made.evaluator_md5 == make(tmp_path / "third", state_dir=tmp_path / "state", source=old).evaluator_md5
    with Ledger.open(made.folder, state_dir=tmp_path / "state") as ledger:
        assert ledger.last_seq() == 0


def test_evidence_is_read_without_a_byte_changed(old: Path) -> None:
    path = old / ".odyssey" / "ledger.db"
    before = path.read_bytes()
    with evidence(old / ".odyssey") as ledger:
        assert ledger.last_seq() == 3 and all(row.foreign for row in ledger.rows())
        assert ledger.text(sha_of("right\n")) == "right\n"
    assert path.read_bytes() == before
    with pytest.raises(NoEvidence), evidence(old / "nothing"):
        pass
    db = plain(path)
    db.execute("create trigger mine after insert on rows begin delete from pins; end")
    db.close()
    with pytest.raises(NoEvidence, match="not ours"), evidence(old / ".odyssey"):
        pass


@pytest.mark.parametrize(
    "text",
    ["[shapes]\ndev = [1]\n", '[shapes]\ndev = [{ M = "x" }]\n', "[shapes]\ndev = [{ M = true }]\n", "[shapes\n"],
)
def test_bad_shapes_are_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "workspace.toml").write_text(text)
    with pytest.raises(TaskError):
        shapes_of(tmp_path)


# as commands


@pytest.fixture()
def odyssey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("VIRTUAL_ENV", "")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


CHECK = "import sys\nfrom candidate import double\nsys.exit(0 if double(21) == 42 else 1)\n"


def test_new_and_evaluator_run(odyssey: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(CHECK)
    code, out, err = odyssey("new", "work", "--evaluator", "check.py", "--json")
    found = json.loads(out)
    assert code == 0 and found["evaluator_md5"], err
    good, bad = tmp_path / "work" / "candidates" / "good.py", tmp_path / "work" / "candidates" / "bad.py"
    good.write_text("def double(x):\n    return x + x\n")
    bad.write_text("def double(x):\n    return x\n")
    python = ("--python", sys.executable, "--workspace", "work")
    code, out, err = odyssey("evaluator", "run", str(good), *python)
    assert code == 0 and "evaluator/script" in out and found["evaluator_md5"] in out, err
    code, out, _ = odyssey("evaluator", "run", str(bad), *python, "--json")
    assert code == 1 and json.loads(out)["judge"] == "evaluator/script"
    (tmp_path / "work" / "evaluator" / "check.py").write_text("import sys\nsys.exit(0)\n")
    code, _, err = odyssey("evaluator", "run", str(bad), *python)
    assert code == 2 and "pin it anew" in err
    code, out, _ = odyssey("evaluator", "pin", "--workspace", "work")
    assert code == 1 and "refused until pinned" in out
    code, _, _ = odyssey("evaluator", "pin", "--again", "--workspace", "work")
    assert code == 0
    code, out, _ = odyssey("ledger", "list", "--workspace", "work")
    assert len(out.splitlines()) == 2 and "by script" in out


def test_new_from_another(odyssey: Callable[..., tuple[int, str, str]], old: Path) -> None:
    code, out, err = odyssey("new", "fresh", "--from", str(old))
    assert code == 0 and "1 candidates came along; 3 rows of" in out, err
    code, _, err = odyssey("new", "fresh")
    assert code == 2 and "not empty" in err


def test_dispatch_says_what_is_missing(odyssey: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, _, err = odyssey("dispatch", "nothing.py")
    assert code == 2 and "no file that can be read" in err
    (tmp_path / "k.py").write_text("x = 1\n")
    code, _, err = odyssey("dispatch", "k.py", "--group", "bad")
    assert code == 2 and "no kernel" in err
