"""Owns the closed union of what the session tells the outside. Never acts; the LSP outbox and the CLI listen."""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.jobs import Refusal
from server.proposals import OpenProposal
from server.verdicts import Running, Verdict


@dataclass(frozen=True, slots=True)
class FindingsChanged:
    """What is to be said about a document may have changed; the outbox publishes only a difference."""

    path: str


@dataclass(frozen=True, slots=True)
class VerdictsChanged:
    """Hints, lenses or marks of a document changed."""

    path: str


@dataclass(frozen=True, slots=True)
class VerdictShown:
    """A fresh verdict is on the board."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class RunChanged:
    """A run began, moved on, or ended (`ended`)."""

    run: Running
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A piece of the environment that is not there, and what would supply it."""

    what: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged:
    """The state of the whole server, in finished words."""

    state: str
    """'starting', 'idle', 'busy' or 'degraded'."""
    text: str
    card: str | None
    detail: str
    grey_reason: str | None = None
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class RowAppended:
    """The ledger has a new row."""

    seq: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A kernel was not judged. `loud` where a person had asked for it."""

    path: str
    kernel: str
    refusal: Refusal
    loud: bool = False


@dataclass(frozen=True, slots=True)
class ProposalMade:
    """A candidate waits for the person."""

    proposal: OpenProposal


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence for the person, outside any document. `loud` asks for a message box instead of the log."""

    level: str
    """'error', 'warning' or 'info'."""
    text: str
    loud: bool = False


Signal = (
    FindingsChanged
    | VerdictsChanged
    | VerdictShown
    | RunChanged
    | StatusChanged
    | RowAppended
    | Refused
    | ProposalMade
    | Said
)
