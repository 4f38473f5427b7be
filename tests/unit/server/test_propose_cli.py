"""`odyssey propose` as a person runs it, on a scripted worker with a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.texts import ADD
from tests.support.tuned_worker import tuned_python

ROOT = Path(__file__).resolve().parents[3]
TUNED = ADD.replace("n, BLOCK=256)", "n, BLOCK=256, num_warps=4)")


@pytest.fixture
def odyssey(tmp_path):
    """Runs the command in a fresh workspace; its (exit code, stdout, stderr)."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".odyssey").mkdir()

    def run(*arguments: str, text: str = TUNED, **script: str) -> tuple[int, str, str]:
        place = tmp_path / "work" / "add.py"
        if not place.exists():
            place.write_text(text)
        python = tuned_python(tmp_path, **script)
        done = subprocess.run(
            [sys.executable, "-c", "import sys; from server.__main__ import main; sys.exit(main())", "propose",
             "add.py::add_kernel", "--python", python, *arguments],
            cwd=tmp_path / "work", env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")},
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_diff_and_the_verdict_on_stdout_and_with_apply_in_the_file(odyssey, tmp_path):
    code, out, err = odyssey()
    assert code == 0 and out.startswith("--- a/add.py\n+++ b/add.py\n") and "BLOCK=256, num_warps=8)\n" in out
    assert "add_kernel: 1.25x faster than your text, 40.0 us, right 5/5 (num_warps 4 -> 8)" in out
    assert "tuner: num_warps 4 -> 8" in err and "judging the text as it stands" in err
    assert (tmp_path / "work" / "add.py").read_text() == TUNED
    code, out, err = odyssey("--json", "--apply")
    told = json.loads(out)
    assert (
        code == 0 and told["applied"] and told["proposal"]["change"] == "num_warps 4 -> 8" and told["refusal"] is None
    )
    assert (tmp_path / "work" / "add.py").read_text() == told["proposal"]["text"] == TUNED.replace("warps=4", "warps=8")
    assert told["proposal"]["ab"]["verdict"] == "faster"
    code, out, err = odyssey("--attempts", "3")
    assert (code, out) == (1, "") and "none of" in err, "now there is nothing faster"


def test_without_a_card_it_could_not_look_and_says_why(odyssey):
    code, out, _ = odyssey("--json", SCRIPT_GPU="")
    told = json.loads(out)
    assert code == 2 and told["proposal"] is None and told["base"]["status"] == "correct"
    assert (
        told["refusal"]["message"] == "a proposal needs times, and nothing was timed: this machine has no CUDA device"
    )


def test_a_wrong_kernel_is_not_made_faster(odyssey):
    code, out, err = odyssey(text="# worker: wrong\n" + TUNED)
    assert (code, out) == (2, "") and "only a kernel that is right can be made faster" in err
