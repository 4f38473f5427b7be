"""Fixtures that run a test body in a process that interprets Triton kernels, or in one that compiles them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
_SERVER = Path(__file__).with_name("fork_server.py")


class Bodies:
    """Calls functions of a test module in a fork of a warmed process."""

    def __init__(self, flags: dict[str, str]) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_")}
        self.process = subprocess.Popen(
            [sys.executable, str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**environment, **flags},
        )

    def __call__(self, body: Callable[..., Any], *args: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        asked = {"path": body.__code__.co_filename, "name": body.__name__, "args": list(args)}
        self.process.stdin.write(json.dumps(asked, default=str) + "\n")
        self.process.stdin.flush()
        told = json.loads(self.process.stdout.readline())
        if "error" in told:
            pytest.fail(told["error"], pytrace=False)
        return told["result"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=10)


@pytest.fixture(scope="session")
def interpreted() -> Iterator[Bodies]:
    """Runs a body where Triton interprets."""
    bodies = Bodies({"TRITON_INTERPRET": "1"})
    yield bodies
    bodies.close()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bodies]:
    """Runs a body where Triton compiles (without a GPU)."""
    bodies = Bodies({"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))})
    yield bodies
    bodies.close()
