"""Owns what is known about a proposal that waits for a person: its texts, its verdict, its words, its diff.

It can be built again from the ledger, so that it outlives the server. Never applies anything.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from evalcore.jobs import Cause, Measurement, Refusal
from evalcore.wire import WireError
from server import words
from server.ledger.store import Ledger
from server.verdicts import Verdict
from skills.ports import Proposal
from skills.search.optimize import admitted

REJECTED = "rejected"
"""How the burial of a candidate that a person turned down begins."""

_ID = re.compile(r"(?P<run>[0-9A-Za-z]+)-(?P<sha>[0-9a-f]{12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProposal:
    """A candidate that passed the judge and the A/B, for a person to decide."""

    proposal_id: str
    path: str
    kernel: str
    base_sha: str
    """sha256 of the text that it was made from: it is applied to no other."""
    candidate_sha: str
    base_text: str
    new_text: str
    title: str
    change: str
    author: str
    seq: int
    """The row of its A/B in the ledger."""
    measurement: Measurement

    @property
    def verdict(self) -> Verdict:
        """What stands on the line as soon as the text is there."""
        return Verdict(
            path=self.path, kernel=self.kernel, sha=self.candidate_sha, seq=self.seq, measurement=self.measurement
        )


def opened(proposal: Proposal, measurement: Measurement, base_text: str) -> OpenProposal:
    """A search's proposal as it waits for a person."""
    return OpenProposal(
        proposal_id=proposal.proposal_id,
        path=proposal.path,
        kernel=proposal.kernel,
        base_sha=proposal.base_sha,
        candidate_sha=proposal.candidate_sha,
        base_text=base_text,
        new_text=proposal.new_text,
        title=title(measurement, proposal.change),
        change=proposal.change,
        author=proposal.author,
        seq=proposal.measurement_seq,
        measurement=measurement,
    )


def recovered(ledger: Ledger, proposal_id: str) -> OpenProposal | None:
    """A proposal by its id from the row of its A/B, None where the ledger has none that this user made."""
    parts = _ID.fullmatch(proposal_id)
    if parts is None:
        return None
    for row in ledger.of_text(parts["sha"]):
        if row.foreign or row.cause != Cause.SEARCH.value or len(row.parents) != 1:
            continue
        try:
            measurement = row.measurement
        except WireError:
            continue
        ours = measurement.job_id.startswith(f"{parts['run']}-") and measurement.ab is not None
        base_text, new_text = ledger.text(row.parents[0]), ledger.text(row.kernel_sha)
        if not ours or admitted(measurement)[0] is None or base_text is None or new_text is None:
            continue
        return OpenProposal(
            proposal_id=proposal_id,
            path=row.file,
            kernel=row.kernel,
            base_sha=row.parents[0],
            candidate_sha=row.kernel_sha,
            base_text=base_text,
            new_text=new_text,
            title=title(measurement, row.intent),
            change=row.intent,
            author=row.author,
            seq=row.seq,
            measurement=measurement,
        )
    return None


def title(measurement: Measurement, change: str) -> str:
    """'softmax: 1.41x faster than your text, 34.4 us, right 5/5 (num_warps 4 -> 8)'."""
    ratio = (measurement.ab or {}).get("ratio")
    parts = [f"{words.ratio(float(ratio))} faster than your text"] if isinstance(ratio, (int, float)) else []
    if measurement.result.runtime_us is not None:
        parts.append(words.duration(measurement.result.runtime_us))
    parts.append(words.right_of(measurement.cases) or "right")
    return f"{measurement.kernel}: {', '.join(parts)} ({change})"


def cannot_apply(proposal: OpenProposal, sha: str | None) -> Refusal | None:
    """Why a proposal is not applied to the text with this sha (None: the file is gone), or None where it may be."""
    if sha == proposal.base_sha:
        return None
    if sha is None:
        return Refusal(
            code="unreadable",
            message=f"{proposal.path} is neither open nor on the disk, so nothing was applied",
            remedy="",
        )
    if sha == proposal.candidate_sha:
        return Refusal(code="applied", message="The proposed text already stands there", remedy="")
    return Refusal(
        code="moved_on",
        message="The text changed since the proposal was made, so nothing was applied",
        remedy="Undo your changes and accept again, or ask for a proposal on the new text.",
    )


def burial(reason: str | None) -> str:
    """The words that a rejected candidate is buried with."""
    given = " ".join((reason or "").split())
    return f"{REJECTED}: {given}" if given else f"{REJECTED} by a person, who gave no reason"


def unified_diff(name: str, before: str, after: str) -> str:
    """What changes, as `git apply` and `patch -p1` take it. `name` is the file's path below the project."""
    made = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


def _lines(text: str) -> list[str]:
    """Lines as a diff counts them: they end at a newline and nowhere else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
