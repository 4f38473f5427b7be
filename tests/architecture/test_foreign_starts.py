"""The launch rules: the workspace is never on the server's path, and only `evalcore` is on the user's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OTHER_PYTHONS = [
    p for version in ("3.10", "3.12", "3.13")
    for p in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))[:1]
]  # fmt: skip


@pytest.fixture()
def bad_workspace(tmp_path: Path) -> Path:
    for name in ("server", "handlers", "skills", "evalcore"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the workspace ran')")
        (tmp_path / name / "__main__.py").write_text("raise SystemExit('the workspace ran')")
    (tmp_path / "json.py").write_text("raise SystemExit('the workspace ran')")
    return tmp_path


@pytest.mark.parametrize("command", [["-I", "-m", "server"], None], ids=["python -I -m server", "console script"])
def test_a_workspace_with_our_names_does_not_run(command: list[str] | None, bad_workspace: Path) -> None:
    argv = [sys.executable, *command] if command else [str(Path(sys.executable).with_name("odyssey"))]
    done = subprocess.run([*argv, "--help"], cwd=bad_workspace, capture_output=True, text=True, timeout=60)
    assert "the workspace ran" not in done.stdout + done.stderr
    assert done.returncode == 0 and "doctor" in done.stdout


@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=lambda p: p.parts[-3])
def test_the_standard_library_half_runs_on_other_pythons(python: Path, tmp_path: Path) -> None:
    """Copies evalcore alone into an empty folder, so that nothing else of ours can be reached."""
    shutil.copytree(ROOT / "evalcore", tmp_path / "evalcore", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import pkgutil, importlib, sys, evalcore\n"
        "names = [m.name for m in pkgutil.walk_packages(evalcore.__path__, 'evalcore.')\n"
        "         if not m.name.startswith(('evalcore.gpu', 'evalcore.worker', 'evalcore._entry', 'evalcore.static'))]\n"
        "[importlib.import_module(n) for n in names]\n"
        "assert 'torch' not in sys.modules and len(names) > 8, names\n"
        "print(len(names))\n"
    )
    done = subprocess.run(
        [str(python), "-s", "-E", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
