"""Owns Budget and its one question, "may I". Everything that loops holds one and asks before spending."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a search may still spend. Immutable: spending returns a new budget."""

    attempts: int = 16
    tokens: int = 60_000
    usd: float = 2.0
    gpu_s: float = 60.0

    def may(self, *, attempts: int = 0, tokens: int = 0, usd: float = 0.0, gpu_s: float = 0.0) -> bool:
        """Whether that much is left."""
        return (
            attempts <= self.attempts
            and tokens <= self.tokens
            and usd <= self.usd + 1e-9
            and gpu_s <= self.gpu_s + 1e-9
        )

    def spend(self, *, attempts: int = 0, tokens: int = 0, usd: float = 0.0, gpu_s: float = 0.0) -> Budget:
        """The budget after spending; may go below zero, after which `may` says no."""
        return replace(
            self,
            attempts=self.attempts - attempts,
            tokens=self.tokens - tokens,
            usd=self.usd - usd,
            gpu_s=self.gpu_s - gpu_s,
        )
