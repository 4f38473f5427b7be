"""The command line, with a scripted worker: output, JSON, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.cli import run
from tests.lsp.texts import ADD, UNBOUND, many
from tests.support.fake_python import fake_python

KEYS = ["schema", "file", "kernel", "result", "reason", "flags", "cases", "environment", "diagnostics"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A workspace of its own, with a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def evaluate(place: Path, text: str, *more: str, script: dict[str, str] | None = None, name: str = "add.py") -> int:
    (place / name).write_text(text)
    return run(["eval", *more, name, "--python", fake_python(place.parent, **(script or {}))])


@pytest.mark.parametrize(
    ("order", "code", "words"),
    [
        ("", 0, "right 5/5 (interpreted, no GPU)"),
        ("# worker: wrong\n", 1, "wrong (right 0/5)"),
        ("# worker: compile_error 3\n", 1, "does not compile"),
        ("# worker: error\n", 2, "RuntimeError: scripted"),
        ("# worker: refuse no_torch\n", 2, "could not be judged"),
        ("# worker: die\n", 2, "exit code 9"),
    ],
)
def test_eval_prints_a_card_and_its_exit_code_says_the_verdict(place, capsys, order, code, words):
    assert evaluate(place, order + ADD) == code
    out = capsys.readouterr().out
    assert words in out and "\033" not in out


def test_eval_json_has_exactly_the_promised_keys(place, capsys):
    assert evaluate(place, ADD, "--json", script={"SCRIPT_GPU": "1"}) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found)[: len(KEYS)] == KEYS
    assert set(found) - set(KEYS) <= {"samples", "timing", "regime", "floor_us", "probes", "opponents", "ab", "kernels",
                                      "isolation"}  # fmt: skip
    assert found["schema"] == 1 and found["kernel"] == "add_kernel" and found["file"] == str(place / "add.py")
    assert found["result"]["status"] == "correct" and found["result"]["runtime_us"] == 34.4
    assert found["timing"]["n"] == 10 and found["isolation"] == ["process"]
    assert (place / ".odyssey" / "ledger.db").exists()


def test_eval_json_of_a_wrong_kernel_points_at_its_line(place, capsys):
    assert evaluate(place, "# worker: wrong\n" + ADD, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    (diagnostic,) = found["diagnostics"]
    assert (diagnostic["line"], diagnostic["column"], diagnostic["severity"]) == (8, 5, "error")
    assert "max abs error 0.5" in diagnostic["message"] and found["result"]["speedup"] is None


def test_eval_of_what_cannot_be_judged_still_prints_one_object(place, capsys):
    for arguments, code in [
        (["nothing.py"], "unreadable"),
        (["lonely.py"], "no_reference"),
        (["lonely.py::other"], "no_kernel"),
        (["notes.txt"], "no_kernel"),
    ]:
        (place / "lonely.py").write_text(UNBOUND)
        (place / "notes.txt").write_text("x")
        assert run(["eval", *arguments, "--json"]) == 2
        found = json.loads(capsys.readouterr().out)
        assert list(found) == KEYS and found["flags"][0]["code"] == code
        assert found["reason"] == "not_judgeable" and found["result"]["status"] == "error"


def test_eval_of_a_text_that_is_no_python_is_a_compile_error_on_its_line(place, capsys):
    assert evaluate(place, ADD.replace("mask = i < n", "mask = i < (n"), "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["result"]["status"] == "compile_error" and found["reason"] is None
    assert found["diagnostics"][0]["line"] == 9


def test_eval_takes_the_named_kernel_and_says_what_else_there_is(place, capsys):
    assert evaluate(place, many(3)) == 0
    captured = capsys.readouterr()
    assert "kernel_0: right" in captured.out and "kernel_1, kernel_2" in captured.err
    assert run(["eval", "add.py::kernel_2", "--python", fake_python(place.parent)]) == 0
    assert "kernel_2: right" in capsys.readouterr().out


def test_eval_asks_for_a_card_that_is_not_there(place, capsys):
    assert evaluate(place, ADD, "--device", "cuda:0") == 2
    assert "sees no CUDA device" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(["eval", "add.py", "--device", "tpu"])


def test_eval_names_a_python_that_is_not_there(place, capsys):
    (place / "add.py").write_text(ADD)
    assert run(["eval", "add.py", "--python", "/nowhere/python"]) == 2
    assert "/nowhere/python" in capsys.readouterr().out


def test_a_kernels_words_cannot_steer_the_terminal(place, capsys):
    evil = ADD.replace("# worker", "").replace('"add', '"add')
    assert evaluate(place, "# worker: wrong\n" + evil) == 1
    from server.terminal import printable

    assert printable("a\033[2Jb\x07c\nd") == "a\ufffd[2Jb\ufffdc\nd"
    assert "\033" not in capsys.readouterr().out


def test_check_says_what_the_text_shows(place, capsys):
    (place / "bad.py").write_text(ADD.replace("tl.arange(0, BLOCK)", "tl.arange(0, 96)"))
    (place / "good.py").write_text(ADD)
    (place / ".venv").mkdir()
    (place / ".venv" / "hidden.py").write_text(ADD.replace("tl.arange(0, BLOCK)", "tl.arange(0, 96)"))
    os.symlink(place, place / "round")
    assert run(["check", "good.py"]) == 0
    assert capsys.readouterr().out == ""
    assert run(["check", "."]) == 1
    out = capsys.readouterr().out
    assert f"{place}/bad.py:8:" in out and "[arange-size]" in out and "hidden" not in out
    assert run(["check", "bad.py", "missing.py", "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["diagnostics"][0]["code"] == "arange-size" and found["unreadable"] == [str(place / "missing.py")]


def test_doctor_names_the_one_missing_thing(place, capsys):
    assert run(["doctor", "--json", "--python", fake_python(place.parent)]) == 1
    found = json.loads(capsys.readouterr().out)
    missing = [check for check in found["checks"] if not check["ok"]]
    assert [check["name"] for check in missing] == ["gpu"] and missing[0]["remedy"]
    assert run(["doctor", "--python", fake_python(place.parent, SCRIPT_GPU="1")]) == 0
    assert "Everything" in capsys.readouterr().out
    assert run(["doctor", "--python", "/nowhere/python"]) == 1
    assert "/nowhere/python" in capsys.readouterr().out


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        run(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    for command in ("lsp", "eval", "check", "watch", "doctor", "ledger", "map", "plot", "dispatch", "new", "propose"):
        assert f"    {command}" in out, command
    assert run([]) == 2


def test_watch_judges_what_changes(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "server", "watch", str(folder), "--json", "--python", fake_python(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    try:
        time.sleep(2.0)
        assert process.stdout is not None
        for _ in range(40):  # the watcher may not be up yet
            (folder / "add.py").write_text(ADD + f"# {time.monotonic()}\n")
            time.sleep(0.5)
            if (folder / ".odyssey").exists():
                break
        found = json.loads(process.stdout.readline())
    finally:
        process.send_signal(2)
        process.wait(20)
    assert found["status"] == "correct" and found["kernel"] == "add_kernel"
