"""Owns what is known after judging: a verdict with the text it is about, and a judgement on its way. Never decides."""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.jobs import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A measurement that stands in the ledger, and the text it is about."""

    path: str
    kernel: str
    sha: str
    seq: int
    measurement: Measurement
    reused: bool = False
    old_because: str = ""
    """A reason beside the text why it is no longer about what is there: a helper that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A judgement on its way."""

    run_id: str
    path: str
    kernel: str
    cause: str
    stage: str = "queued"
    done: int = 0
    total: int = 0
