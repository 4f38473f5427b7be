"""Owns making a file that can be given as `odyssey.python` and behaves like a worker's interpreter. For tests only."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fake_python(folder: Path, **environment: str) -> str:
    """A shell script in `folder` that runs the scripted worker with extra environment variables."""
    place = folder / "python-scripted"
    exports = "".join(f"export {name}='{value}'\n" for name, value in environment.items())
    place.write_text(f'#!/bin/sh\n{exports}exec "{sys.executable}" "{HERE / "scripted_worker.py"}" "$@"\n')
    place.chmod(0o755)
    return str(place)
