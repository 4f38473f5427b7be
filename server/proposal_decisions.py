"""Owns the proposals that wait for a person, and what was decided about each. Never edits a text.

A proposal that is not known any more, because the server was started again, comes out of the ledger.
"""

from __future__ import annotations

import logging
import sqlite3

from evalcore.jobs import Refusal
from server.events import Judged, LedgerGrew
from server.ledger.store import LedgerUnusable
from server.proposals import OpenProposal, burial, recovered
from server.recorder import Recorder
from server.state import State

log = logging.getLogger("odyssey.proposals")


class Decisions:
    """Every proposal of this server, by id."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: dict[str, OpenProposal] = {}
        self._decided: dict[str, str] = {}

    def waits(self, proposal: OpenProposal) -> None:
        """A search has found it."""
        self._waiting[proposal.proposal_id] = proposal
        self._decided.pop(proposal.proposal_id, None)

    async def find(self, proposal_id: str) -> OpenProposal | Refusal:
        """A proposal that is still open."""
        if proposal_id in self._decided:
            return Refusal(code="decided", message=f"That proposal was {self._decided[proposal_id]} already", remedy="")
        known = self._waiting.get(proposal_id)
        if known is not None:
            return known
        for recorder in self._recorders():
            found = await _in_ledger(recorder, proposal_id)
            if found is not None:
                return found
        return Refusal(
            code="no_proposal",
            message="There is no such proposal: it is not in the ledger of any open folder",
            remedy="Ask for a new one.",
        )

    def accepted(self, proposal: OpenProposal) -> None:
        """The text stands in the editor now, and its verdict is known."""
        self._decide(proposal, "accepted")
        self._state.post(Judged(verdict=proposal.verdict))

    async def reject(self, proposal: OpenProposal, reason: str | None) -> None:
        """Bury the candidate with the person's reason. Raises LedgerUnusable, OSError and sqlite3.Error."""
        said = burial(reason)
        recorder = self._state.recorder(proposal.path)
        await recorder.call(lambda ledger: ledger.bury(proposal.candidate_sha, said))
        self._decide(proposal, "rejected")
        self._state.post(LedgerGrew(seq=proposal.seq))

    def _decide(self, proposal: OpenProposal, how: str) -> None:
        self._waiting.pop(proposal.proposal_id, None)
        self._decided[proposal.proposal_id] = how

    def _recorders(self) -> tuple[Recorder, ...]:
        for path in self._state.documents:
            self._state.recorder(path)  # a file outside every folder has a ledger too
        return self._state.all_recorders()


async def _in_ledger(recorder: Recorder, proposal_id: str) -> OpenProposal | None:
    try:
        if not await recorder.exists():
            return None
        return await recorder.call(lambda ledger: recovered(ledger, proposal_id))
    except (LedgerUnusable, OSError, sqlite3.Error) as problem:
        log.warning("the ledger of %s cannot be read: %s", recorder.workspace, problem)
        return None
