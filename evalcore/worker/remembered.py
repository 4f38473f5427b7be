"""Owns what one evaluation leaves for the next: reference times, autotune winners, opponents. Never a verdict.

Everything here is keyed by what it depends on and dies with the loop; the ledger is the server's.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from evalcore.facts import Samples

_MOST = 256


class Remembered:
    """Small tables with an end."""

    def __init__(self) -> None:
        self._references: OrderedDict[tuple[str, str, str], tuple[Samples, ...]] = OrderedDict()
        self._winners: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._configs: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()
        self._opponents: OrderedDict[tuple[str, str], tuple[dict[str, Any], ...]] = OrderedDict()

    def reference(self, sha: str, device: str, case: str, *, at_least: int) -> tuple[Samples, ...] | None:
        """Times of a reference on a device at a case, if they rest on enough samples."""
        found = self._references.get((sha, device, case))
        if found is None or not any(len(each.values_us) >= at_least for each in found):
            return None
        return found

    def keep_reference(self, sha: str, device: str, case: str, samples: tuple[Samples, ...]) -> None:
        """Remember times of a reference."""
        _put(self._references, (sha, device, case), samples)

    def winners(self, sha: str) -> dict[str, str]:
        """Kernel name -> words of the autotune config that won last, for a problem."""
        return self._winners.get(sha, {})

    def keep_winners(self, sha: str, winners: dict[str, str]) -> None:
        """Remember which configs won."""
        if winners:
            _put(self._winners, sha, winners)

    def configs(self, sha: str, kernel: str) -> tuple[str, ...]:
        """Configs of an autotuned kernel that were there at an evaluation before; () where there was none."""
        return self._configs.get((sha, kernel), ())

    def keep_configs(self, sha: str, kernel: str, configs: tuple[str, ...]) -> None:
        """Remember which configs a kernel has."""
        _put(self._configs, (sha, kernel), configs)

    def opponents(self, sha: str, device: str) -> tuple[dict[str, Any], ...]:
        """Rows of torch's own attempts at a problem, where they were measured."""
        return self._opponents.get((sha, device), ())

    def keep_opponents(self, sha: str, device: str, rows: list[dict[str, Any]]) -> None:
        """Remember rows of opponents."""
        _put(self._opponents, (sha, device), tuple(rows))


def _put(table: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > _MOST:
        table.popitem(last=False)
