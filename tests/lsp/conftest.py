"""Owns the fixtures of the protocol's tests: a workspace, a state folder, editors that are shut down at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.editor import Editor
from tests.support.fake_python import fake_python

MakeEditor = Callable[..., Awaitable[Editor]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    place = tmp_path / "work space"
    place.mkdir()
    return place


@pytest_asyncio.fixture
async def make_editor(tmp_path: Path, workspace: Path) -> AsyncIterator[MakeEditor]:
    """Makes editors on the scripted worker; each is shut down at the end, and must end with 0."""
    made: list[Editor] = []

    async def make(
        settings: dict[str, Any] | None = None, *, gpu: bool = False, script: dict[str, str] | None = None,
        env: dict[str, str] | None = None, **start: Any,
    ) -> Editor:  # fmt: skip
        tools = tmp_path / f"tools{len(made)}"
        tools.mkdir()
        environment = {**({"SCRIPT_GPU": "1"} if gpu else {}), **(script or {})}
        editor = Editor(workspace, state=tmp_path / "state", env=env)
        made.append(editor)
        await editor.start({"python": fake_python(tools, **environment), **(settings or {})}, **start)
        return editor

    yield make
    codes = [await editor.stop() for editor in made if editor.client._server is not None]
    assert all(code in (0, -9) for code in codes), codes
