"""Owns the Protocols by which the search sees the world: an evaluator, a chat model, a memory. Never does IO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalcore.jobs import EvalJob, Measurement, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation with a model."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a completion cost. Money is None where the model's price is not known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's whole answer."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""


class ChatModel(Protocol):
    """A language model behind one door."""

    async def complete(
        self, messages: Sequence[Message], *, json_schema: dict[str, Any] | None = None
    ) -> Completion | Refusal:
        """Answer, or a Refusal that names the cause (no key, rate limit, server error, ...) and the remedy."""


class Evaluator(Protocol):
    """A place where jobs run: this machine's pool of cards, or another executor."""

    async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
        """Judge one text. Cancelling the awaiting task cancels the job and frees the device."""


class Memory(Protocol):
    """What was tried before. Implemented by the ledger."""

    async def append(self, measurement: Measurement, *, text: str, intent: str = "") -> int:
        """Record a measurement and the text it is about; return its seq."""

    async def bury(self, sha: str, *, reason: str) -> None:
        """Record why a branch ends here. Nothing is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A candidate that has already passed the same judge as a person's own edit."""

    proposal_id: str
    path: str
    kernel: str
    base_sha: str
    """sha256 of the text it was made from; accept is refused on any other."""
    candidate_sha: str
    new_text: str
    title: str
    """One line for the diff's title: the verdict and the change, in finished words."""
    measurement_seq: int
    author: str
    """'tuner' or 'model'."""
    change: str
    """What was changed, in words: 'num_warps 4 -> 8'."""
    ratio: float | None
    """Time of the base over time of the candidate by interleaved A/B; None where not measured."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Something happened in a search."""

    message: str
    done: int = 0
    total: int = 0
    refusal: Refusal | None = None
    """Why a part of the search (the model's round) ended early, where it did."""
