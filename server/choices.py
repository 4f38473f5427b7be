"""Owns which shape a person picked for which kernel, across restarts. Never fails: a lost choice is the default."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

MOST = 2000
"""Choices kept; the oldest go first."""


class Choices:
    """(file, kernel) -> name of the case that stands on the line."""

    def __init__(self, place: Path | None = None) -> None:
        self._place = place
        self._cases: dict[str, str] = {}
        if place is not None:
            with contextlib.suppress(OSError, ValueError):
                found = json.loads(place.read_text(encoding="utf-8"))
                if isinstance(found, dict):
                    self._cases = {str(key): str(value) for key, value in found.items()}

    def case(self, path: str, kernel: str) -> str | None:
        """The picked case's name, None for the problem's first."""
        return self._cases.get(f"{path}::{kernel}")

    def pick(self, path: str, kernel: str, case: str | None) -> None:
        """Remember a choice; None forgets it."""
        key = f"{path}::{kernel}"
        self._cases.pop(key, None)
        if case is not None:
            self._cases[key] = case
        while len(self._cases) > MOST:
            del self._cases[next(iter(self._cases))]
        self._keep()

    def _keep(self) -> None:
        if self._place is None:
            return
        draft = self._place.with_suffix(f".{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(self._cases), encoding="utf-8")
            os.replace(draft, self._place)
