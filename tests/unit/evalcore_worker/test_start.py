"""The by-path start: one name of ours becomes importable, old and poor interpreters get a sentence, not a crash."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from evalcore import wire
from tests.unit.evalcore_worker.real_loop import ENTRY, ROOT, RealLoop, kernelbench

LAUNCHER = ENTRY / "__main__.py"


def test_the_launcher_parses_on_an_old_python() -> None:
    ast.parse(LAUNCHER.read_text(), feature_version=(3, 8))


def test_an_old_python_is_told_so() -> None:
    code = (
        f"import sys, runpy; sys.version_info = (3, 8, 1, 'final', 0); sys.argv = ['x', '--role', 'loop'];"
        f"runpy.run_path({str(ENTRY)!r}, run_name='__main__')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 3
    hello = json.loads(ran.stdout)
    assert hello["frame"] == "hello" and hello["missing"][0]["what"] == "python"
    assert "too old" in ran.stderr


def test_only_evalcore_becomes_importable(tmp_path: Path) -> None:
    """From a folder full of bad names; our other packages stay invisible."""
    for name in ("evalcore", "server", "handlers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')")
    code = (
        f"import runpy, sys, importlib.util; sys.path.insert(0, {str(ENTRY)!r})\n"
        f"module = runpy.run_path({str(LAUNCHER)!r}, run_name='launcher')\n"
        "module['_repair_path'](); module['_register']()\n"
        "import evalcore, evalcore.jobs\n"
        f"assert evalcore.__file__.startswith({str(ROOT)!r}), evalcore.__file__\n"
        "assert not any(p.endswith('_entry') for p in sys.path)\n"
        "print(importlib.util.find_spec('pygls.lsp') if importlib.util.find_spec('pygls') else None)"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_a_python_without_torch_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ENTRY), "--role", "loop", "--flavour", "compile", "--scratch", str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None and process.stdout is not None
    try:
        hello = wire.parse(process.stdout.readline())
        assert hello["torch"] is None and hello["triton"] is None
        assert {"torch", "triton"} <= {each["what"] for each in hello["missing"]}
        assert all(each["remedy"] for each in hello["missing"])
        problem = kernelbench(tmp_path / "project")
        job = {"job_id": "1", "cause": "save", "mode": "fast", "kernel": "k", "kernel_sha": ""}
        process.stdin.write(wire.frame("evaluate", job={**job, "problem": wire.encode(problem)}))
        process.stdin.flush()
        while (frame := wire.parse(process.stdout.readline()))["frame"] != "refused":
            assert frame["frame"] in ("stage", "log")
        assert frame["refusal"]["code"] == "no_torch"
    finally:
        process.stdin.close()
        assert process.wait(30) == 0


def test_stdout_belongs_to_the_channel(tmp_path: Path) -> None:
    """A candidate that prints, and a reference that prints, leave every line of the channel a frame."""
    made = RealLoop(tmp_path / "scratch")
    try:
        reference = kernelbench(tmp_path / "a").reference.text + "\nprint('from the reference')\n"
        problem = kernelbench(
            tmp_path / "b", reference=reference.replace("return [0.5]", "print('noise'); return [0.5]")
        )
        assert made.evaluate(problem).result.correct
    finally:
        made.close()
