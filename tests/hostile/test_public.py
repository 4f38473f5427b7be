"""The screen accuses nobody in public Triton files, fetched by pinned hash for the test."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evalcore.screen import screen
from tests.hostile.judging import Worker, problem_of
from tests.hostile.public_problems import PUBLIC, Row, fetch

PINS = Path(__file__).with_name("public_files.txt")
AT_LEAST = 100


def triton_texts(folder: Path) -> list[tuple[str, str]]:
    """(name, text) of every file with a kernel in the packages in `folder`."""
    found = []
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                text = archive.read(name).decode("utf-8", "replace") if name.endswith(".py") else ""
                if "triton.jit" in text:
                    found.append((f"{wheel.name}/{name}", text))
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_false_alarm_on_public_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", str(PINS)]
    done = subprocess.run([*command, "-d", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    texts = triton_texts(tmp_path)
    assert len(texts) >= AT_LEAST
    alarms = [(name, hit) for name, text in texts for hit in screen(text, "triton") if hit.gate or hit.proof]
    print(f"{len(texts)} public Triton files, {len(alarms)} alarms")
    assert alarms == []


def check(row: Row, worker: Worker) -> None:
    """A public kernel beside plain torch is correct, and nobody is accused."""
    candidate, reference = row.write(fetch())
    found = worker.judge(problem_of(candidate, reference), run_s=60.0)
    assert found.result.correct, found.result.error
    assert not [flag for flag in found.flags if flag.code.startswith("screen-")], found.flags


def test_thirty_rows() -> None:
    assert len(PUBLIC) >= 30 and len({row.name for row in PUBLIC}) == len(PUBLIC)


@pytest.mark.slow
@pytest.mark.parametrize("row", PUBLIC, ids=lambda row: row.name)
def test_public_kernels_are_right(row: Row, interpreting: Worker) -> None:
    check(row, interpreting)


@pytest.mark.gpu
@pytest.mark.parametrize("row", PUBLIC, ids=lambda row: row.name)
def test_public_kernels_are_right_on_a_card(row: Row, on_card: Worker) -> None:
    check(row, on_card)
