"""One real loop for all kernels of a run: it must survive every twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import has_card
from tests.unit.evalcore_worker.real_loop import RealLoop


@pytest.fixture(scope="session")
def cpu_loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLoop]:
    loop = RealLoop(tmp_path_factory.mktemp("loops") / "interpret", options={"device": "cpu", "spares": 2})
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def card_loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLoop]:
    assert has_card()
    loop = RealLoop(
        tmp_path_factory.mktemp("loops") / "compile", flavour="compile", options={"device": "cuda:0", "spares": 2}
    )
    yield loop
    loop.close()


@pytest.fixture()
def folder(tmp_path: Path) -> Path:
    """A project folder of its own for each test."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\nversion = '0'\n")
    return tmp_path
