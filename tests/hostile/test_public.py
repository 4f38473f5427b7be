"""The screen accuses nobody in public Triton files, fetched by pinned hash for the test."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evalcore.screen import screen

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
