"""Owns the closed union of what can happen to the session. Never acts.

Everything that can wake the session is one of these; `Session.apply` is the one place that acts on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.jobs import Cause, Diagnostic, Mode, Refusal
from server.analysis.finding import Finding
from server.config import Settings
from server.lines import LineIndex, TextEdit
from server.proposals import OpenProposal
from server.sites import Bound, Site
from server.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOpened:
    """A document was opened in the editor."""

    path: str
    uri: str
    version: int | None
    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChanged:
    """A document was edited. `edits` one after the other lead to `index`; None where the whole text was replaced."""

    path: str
    version: int | None
    index: LineIndex
    edits: tuple[TextEdit, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSaved:
    """A document was saved."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextClosed:
    """A document was closed; the disk is the truth again."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanged:
    """Somebody changed, made, moved or deleted a file on the disk. `text` is None where it is gone or unreadable."""

    path: str
    text: str | None
    checkout: bool = False
    """Whether git changed its own state at the same moment: a checkout or pull must not run a stranger's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsRead:
    """The editor's settings arrived or changed."""

    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """The person trusts this folder, or does not."""

    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysed:
    """A text was analysed by syntax."""

    path: str
    generation: int
    sites: tuple[Site, ...]
    findings: tuple[Finding, ...]
    parses: bool
    """Whether the text is whole enough to be compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingsFound:
    """It is known how the kernels of a text are judged."""

    path: str
    sha: str
    bounds: tuple[Bound, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEndChecked:
    """The compiler's front end looked at an unsaved text."""

    path: str
    generation: int
    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[str, ...]
    """The kernels that were looked at; what stands on others stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAsked:
    """Judge these kernels of a text (all bound ones where empty)."""

    path: str
    kernels: tuple[str, ...] = ()
    cause: Cause = Cause.COMMAND
    mode: Mode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked:
    """End a run; all of them where `run_id` is None."""

    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapePicked:
    """Another case of the problem is to stand on the line."""

    path: str
    kernel: str
    case: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A job was given to a worker."""

    run_id: str
    path: str
    kernel: str
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgressed:
    """A job reached a stage."""

    run_id: str
    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A job is over, with or without a verdict."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict stands in the ledger and may be shown."""

    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRefused:
    """A kernel could not be judged; `sha` is the text it was about."""

    path: str
    kernel: str
    sha: str
    refusal: Refusal
    cause: Cause
    place: tuple[int, int] | None = None
    """Line and column from 1 of what is in the way, where it has a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFound:
    """A search ended with a candidate for the person to decide. `model_refusal`: why the model brought nothing."""

    proposal: OpenProposal
    model_refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProposal:
    """A search ended without one."""

    path: str
    kernel: str
    refusal: Refusal
    model_refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerGrew:
    """A row was appended, by us or by another process."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersChanged:
    """A worker loop came up, went away or was refused; `server.gpu_pool` knows the details."""


Event = (
    TextOpened
    | TextChanged
    | TextSaved
    | TextClosed
    | FileChanged
    | SettingsRead
    | Trusted
    | Analysed
    | BindingsFound
    | FrontEndChecked
    | JudgeAsked
    | StopAsked
    | ShapePicked
    | RunStarted
    | RunProgressed
    | RunEnded
    | Judged
    | JudgeRefused
    | ProposalFound
    | NoProposal
    | LedgerGrew
    | WorkersChanged
)
