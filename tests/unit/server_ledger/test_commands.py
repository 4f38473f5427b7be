"""The commands, as a person types them: words, JSON, exit codes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalcore.results import correct, incorrect
from server import cli
from server.ledger import commands
from server.ledger.store import Ledger
from tests.support import measurements
from tests.support.ledgers import in_environment, judged, sha_of

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture()
def odyssey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in the workspace; (exit code, stdout, stderr)."""
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path / "workspace")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture()
def ledger_of(tmp_path: Path) -> Path:
    """Four rows: right, wrong, faster by a tuner, one of another card; one burial, one pin."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    with Ledger.open(workspace, state_dir=tmp_path / "odyssey") as ledger:
        file = str(workspace / "softmax.py")
        given = measurements.problem("one\n", path=file)
        ledger.append(judged("one\n", file=file), text="one\n", intent="first try", problem=given)
        ledger.append(judged("two\n", incorrect("max abs error 0.5 at [3, 1]"), file=file), text="two\n")
        fast = judged("three\n", correct(runtime_us=15.0, ref_runtime_us=60.0), file=file, author="tuner",
                      parents=(sha_of("one\n"),))  # fmt: skip
        ledger.append(fast, text="three\n", intent="num_warps 8")
        far = in_environment(judged("three\n", file=file), card="Far Card", uuid="GPU-far")
        ledger.append(far, text="three\n")
        ledger.bury(sha_of("two\n"), "wrong tail")
        ledger.pin(1)
    return workspace


@pytest.fixture()
def card_here(tmp_path: Path) -> None:
    """A machine whose nvidia-smi names the card that most rows are of."""
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir(exist_ok=True)
    command.write_text("#!/bin/sh\necho 'Test Card, GPU-test, 580.1'\n")
    command.chmod(0o755)


def test_without_a_ledger_it_says_so_and_makes_none(odyssey: Command, tmp_path: Path) -> None:
    for verb in (["ledger", "list"], ["ledger", "verify"], ["ledger", "best"], ["map"], ["plot", "history"]):
        code, out, err = odyssey(*verb)
        assert code == 2 and out == "" and "no ledger" in err, verb
    assert not (tmp_path / "workspace" / ".odyssey").exists()


def test_list(odyssey: Command, ledger_of: Path, card_here: None) -> None:
    code, out, _ = odyssey("ledger", "list")
    lines = out.splitlines()
    assert code == 0 and [line.split()[0] for line in lines] == ["#4", "#3", "#2", "#1"]
    assert "~30.0 us 2.00x~" in lines[0] and "on Far Card" in lines[0]
    assert "15.0 us 4.00x" in lines[1] and "~" not in lines[1] and "tuner: num_warps 8" in lines[1]
    assert "wrong" in lines[2] and "2026-11-29 12:00:00" in lines[3]
    _, out, _ = odyssey("ledger", "list", "--limit", "2")
    assert out.splitlines()[-1] == "older rows: odyssey ledger list --before 3"


def test_without_a_card_every_number_is_struck_out(odyssey: Command, ledger_of: Path) -> None:
    _, out, _ = odyssey("ledger", "list")
    assert all("~" in line for line in out.splitlines() if " us" in line)


def test_list_json(odyssey: Command, ledger_of: Path, card_here: None) -> None:
    _, out, _ = odyssey("ledger", "list", "--json", "--kernel", "k", "--file", "softmax.py")
    found = json.loads(out)
    assert found["schema"] == 1 and found["total"] == found["last_seq"] == 4
    assert [row["elsewhere"] for row in found["rows"]] == [True, False, False, False]
    assert found["rows"][1]["parents"] == [sha_of("one\n")]
    code, _, err = odyssey("ledger", "list", "--file", "other.py")
    assert code == 2 and "knows no file" in err and "softmax.py" in err


def test_show(odyssey: Command, ledger_of: Path) -> None:
    code, out, _ = odyssey("ledger", "show", "2")
    assert code == 0 and "max abs error 0.5 at [3, 1]" in out and "buried     wrong tail" in out
    _, out, _ = odyssey("ledger", "show", sha_of("one\n")[:8])
    assert out.startswith("row 1\n") and "pinned     baseline" in out
    _, out, _ = odyssey("ledger", "show", "#3", "--text")
    assert out == "three\n"
    _, out, _ = odyssey("ledger", "show", "3", "--body")
    assert json.loads(out)["body"]["samples"][0]["values_us"][:2] == [30.0, 30.125]
    for bad in ("99", "zzzz", "abcdef12"):
        code, _, err = odyssey("ledger", "show", bad)
        assert code == 2 and "no row" in err


def test_verify(odyssey: Command, ledger_of: Path) -> None:
    code, out, _ = odyssey("ledger", "verify")
    assert code == 0 and "intact" in out and "4 rows" in out
    db = sqlite3.connect(ledger_of / ".odyssey" / "ledger.db")
    db.execute("drop trigger rows_no_update")
    db.execute("update rows set runtime_us = 1 where seq = 3")
    db.commit()
    db.close()
    code, out, _ = odyssey("ledger", "verify", "--json")
    found = json.loads(out)
    assert code == 1 and found["state"] == "damaged" and not found["ok"]
    assert any("rows 3" in fault["message"] for fault in found["faults"])
    code, out, _ = odyssey("ledger", "verify")
    assert code == 1 and "DAMAGED" in out


def test_diff(odyssey: Command, ledger_of: Path) -> None:
    code, out, _ = odyssey("ledger", "diff", "1", "3")
    assert code == 0 and "2.00x" in out and "-one\n+three\n" in out and "not comparable" not in out
    _, out, _ = odyssey("ledger", "diff", "1", "4")
    assert "not comparable: other card: Test Card and Far Card" in out and "1.00x" not in out
    _, out, _ = odyssey("ledger", "diff", "3", "4", "--json")
    found = json.loads(out)
    assert found["diff"] == "" and found["obstacles"] and all(line["ratio"] is None for line in found["lines"])


def test_best(odyssey: Command, ledger_of: Path, card_here: None) -> None:
    _, out, _ = odyssey("ledger", "best", "--json")
    assert [row["seq"] for row in json.loads(out)["rows"]] == [3, 4], "one for each card"


def test_map(odyssey: Command, ledger_of: Path, tmp_path: Path) -> None:
    _, out, _ = odyssey("map", "--kernel", "k")
    assert "[buried: wrong tail]" in out and "best" in out
    _, out, _ = odyssey("map", "--json")
    assert [node["lane"] for node in json.loads(out)["nodes"]] == [0, 0, 1]
    _, out, _ = odyssey("map", "--format", "dot")
    assert out.startswith("digraph")
    _, out, _ = odyssey("map", "--format", "svg", "--out", str(tmp_path / "m.svg"))
    assert (tmp_path / "m.svg").read_text().startswith("<svg") and "3 candidates" in out


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "flashinfer", "nvbench"])
def test_export_says_what_it_wrote(form: str, odyssey: Command, ledger_of: Path, tmp_path: Path) -> None:
    target = tmp_path / f"out.{form}"
    code, out, err = odyssey("ledger", "export", str(target), "--format", form, "--json")
    found = json.loads(out)
    assert code == 0 and err == "" and target.stat().st_size and found["rows"] >= 1


def test_export_and_import_between_two_people(odyssey: Command, ledger_of: Path, tmp_path: Path) -> None:
    odyssey("ledger", "export", str(tmp_path / "out.jsonl"))
    other = str(tmp_path / "other")
    Path(other).mkdir()
    code, out, _ = odyssey("ledger", "import", str(tmp_path / "out.jsonl"), "--workspace", other)
    assert code == 0 and out.startswith("4 foreign rows (odyssey)")
    _, out, _ = odyssey("ledger", "import", str(tmp_path / "out.jsonl"), "--workspace", other)
    assert out.startswith("0 foreign rows (odyssey), 4 were known")
    _, out, _ = odyssey("ledger", "list", "--workspace", other)
    assert out == "", "a foreign row is never one of ours"
    _, out, _ = odyssey("ledger", "list", "--foreign", "--workspace", other)
    assert "~15 us~ on Test Card" in out
    code, _, err = odyssey("ledger", "import", str(ledger_of / ".odyssey" / "ledger.db"), "--workspace", other)
    assert code == 2 and "not a form that is known" in err


def test_plots(odyssey: Command, ledger_of: Path, tmp_path: Path) -> None:
    code, out, _ = odyssey("plot", "history", "--kernel", "k", "--out", str(tmp_path / "h.svg"))
    assert code == 0 and "1 points" in out and "of other cards left out" in out
    assert "<svg" in (tmp_path / "h.svg").read_text()
    code, _, err = odyssey("plot", "history", "--out", str(tmp_path / "h.txt"))
    assert code == 2 and ".png" in err
    code, _, err = odyssey("plot", "roofline")
    assert code == 2 and "no roof" in err, "a roof is measured or not there"


def test_the_parser_does_not_pay_for_sqlite(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import argparse, sys; from server.ledger import commands; p = argparse.ArgumentParser();"
        "commands.register(p.add_subparsers()); assert 'sqlite_utils' not in sys.modules; print('ok')"
    )
    root = Path(commands.__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr


def test_every_command_has_help_and_json() -> None:
    parser = cli.build_parser()
    actions: Any = next(action for action in parser._actions if getattr(action, "choices", None))
    for verb in ("list", "show", "verify", "export", "import", "diff", "best"):
        nested: Any = next(a for a in actions.choices["ledger"]._actions if getattr(a, "choices", None))
        help_text = nested.choices[verb].format_help()
        assert "--json" in help_text and "--workspace" in help_text, verb
