"""Owns which opponent a measurement's headline is against. Never formats: `server.words` does.

The strongest admissible opponent counts; eager (the reference as it stands) is the floor. An opponent that is not exact
enough, or that fell back silently, is never beaten for credit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalcore.jobs import Measurement


@dataclass(frozen=True, slots=True)
class Headline:
    """`ratio` times as fast as `against`."""

    ratio: float
    against: str
    opponent_us: float


def headline(measurement: Measurement) -> Headline | None:
    """The ratio that stands on the line, or None where either side was not measured."""
    runtime_us = measurement.result.runtime_us
    if not runtime_us:
        return None
    best: tuple[float, str] | None = None
    if measurement.result.ref_runtime_us:
        best = (measurement.result.ref_runtime_us, "eager")
    for opponent in measurement.opponents:
        time_us = _admissible_us(opponent)
        if time_us is not None and (best is None or time_us < best[0]):
            best = (time_us, str(opponent.get("name", "opponent")))
    if best is None:
        return None
    return Headline(best[0] / runtime_us, best[1], best[0])


def _admissible_us(opponent: dict[str, Any]) -> float | None:
    time_us = opponent.get("runtime_us")
    if opponent.get("admissible") is True and isinstance(time_us, (int, float)) and time_us > 0:
        return float(time_us)
    return None
