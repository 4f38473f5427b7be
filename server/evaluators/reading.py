"""Owns what an evaluator said, in our words: verdict, figures, cases. Never adds a figure that it did not print."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReading:
    """One case of the evaluator's own."""

    name: str
    right: bool
    runtime_us: float | None = None
    ref_runtime_us: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The whole verdict."""

    status: str
    """'correct' | 'incorrect' | 'compile_error' | 'error', as evalcore.results.Status."""
    message: str | None = None
    """Why not, where it is not correct."""
    runtime_us: float | None = None
    ref_runtime_us: float | None = None
    speedup: float | None = None
    """As the evaluator says it, where it gives no times."""
    cases: tuple[CaseReading, ...] = ()
    timed_out: bool = False


def last_lines(text: str, count: int = 12) -> str:
    """The end of an output, for a person: some lines, at most 2,000 characters."""
    return "\n".join(text.strip().splitlines()[-count:])[-2000:]
