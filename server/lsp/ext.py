"""Owns our own messages: method names and the types of their parameters. Never handles one.

Names in JSON are those of the fields. Results are plain dictionaries, described in docs/protocol.md.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

T = TypeVar("T")

STATUS = "odyssey/status"
LEDGER_APPENDED = "odyssey/ledgerAppended"
PROPOSAL_READY = "odyssey/proposalReady"
MARKS = "odyssey/marks"
TRUST = "odyssey/trust"
EDITOR_PYTHON = "odyssey/editorPython"
KEY = "odyssey/key"
LEDGER_ROWS = "odyssey/ledgerRows"
CANDIDATE = "odyssey/candidate"
MAP = "odyssey/map"
PLOTS = "odyssey/plots"
COMPARE = "odyssey/compare"
PIN = "odyssey/pin"


@attrs.frozen(kw_only=True)
class MissingPiece:
    """A piece of the environment that is not there, and what would supply it."""

    what: str
    message: str
    remedy: str


@attrs.frozen(kw_only=True)
class StatusParams:
    """server -> client: the state of the whole server, in finished words."""

    state: str
    text: str
    card: str | None
    detail: str
    grey_reason: str | None
    missing: list[MissingPiece]


@attrs.frozen(kw_only=True)
class LedgerAppendedParams:
    """server -> client: a bell, no data; the client asks for rows after the last it knows."""

    seq: int


@attrs.frozen(kw_only=True)
class ProposalReadyParams:
    """server -> client: a candidate that passed the judge, for the person to decide."""

    proposal_id: str
    uri: str
    kernel: str
    title: str
    base_sha: str
    candidate_sha: str
    version: int | None
    new_text: str
    seq: int
    change: str


@attrs.frozen(kw_only=True)
class MarkAt:
    """A gutter mark beside a judged kernel. `line` from 0."""

    line: int
    verdict: str
    stale: bool
    label: str


@attrs.frozen(kw_only=True)
class MarksParams:
    """server -> client: all marks of a document."""

    uri: str
    version: int | None
    marks: list[MarkAt]


@attrs.frozen(kw_only=True)
class TrustParams:
    """client -> server: the person trusts the folder now."""

    trusted: bool


@attrs.frozen(kw_only=True)
class KeyParams:
    """client -> server: the model's key out of the editor's secret storage; without one it is forgotten."""

    key: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class EditorPythonParams:
    """client -> server: the interpreter that is chosen in the editor."""

    path: str | None = None


@attrs.frozen(kw_only=True)
class ScopeParams:
    """client -> server: all measurements, one file's, or one kernel's."""

    uri: str | None = None
    kernel: str | None = None


@attrs.frozen(kw_only=True)
class LedgerRowsParams:
    """client -> server: a page of rows."""

    uri: str | None = None
    kernel: str | None = None
    after: int | None = None
    before: int | None = None
    limit: int | None = None


@attrs.frozen(kw_only=True)
class CandidateParams:
    """client -> server: a text by its sha."""

    sha: str


@attrs.frozen(kw_only=True)
class CompareParams:
    """client -> server: two texts by their shas."""

    a: str
    b: str


@attrs.frozen(kw_only=True)
class SeqParams:
    """client -> server: a row."""

    seq: int


@attrs.frozen(kw_only=True)
class KernelArgument:
    """The one argument of the commands on a kernel."""

    uri: str
    kernel: str
    mode: str | None = None
    base_sha: str | None = None
    case: str | None = None


@attrs.frozen(kw_only=True)
class RunArgument:
    """The one argument of odyssey.stop."""

    run_id: str | None = None


@attrs.frozen(kw_only=True)
class ProposalArgument:
    """The one argument of odyssey.accept and odyssey.reject."""

    proposal_id: str
    reason: str | None = None


@attrs.frozen(kw_only=True)
class SeqArgument:
    """The one argument of odyssey.pinBaseline."""

    seq: int


@attrs.frozen(kw_only=True)
class RestoreArgument:
    """The one argument of odyssey.restore."""

    sha: str
    uri: str


@attrs.frozen(kw_only=True)
class NoArgument:
    """The one argument of odyssey.restartWorkers and odyssey.doctor: an empty object."""


PARAMS: dict[str, type[Any]] = {
    TRUST: TrustParams,
    EDITOR_PYTHON: EditorPythonParams,
    KEY: KeyParams,
    LEDGER_ROWS: LedgerRowsParams,
    CANDIDATE: CandidateParams,
    MAP: ScopeParams,
    PLOTS: ScopeParams,
    COMPARE: CompareParams,
    PIN: SeqParams,
}
"""What a client may send, with the type that its parameters must fit."""

ARGUMENTS: dict[str, type[Any]] = {
    "odyssey.evaluate": KernelArgument,
    "odyssey.evaluateThorough": KernelArgument,
    "odyssey.history": KernelArgument,
    "odyssey.propose": KernelArgument,
    "odyssey.stop": RunArgument,
    "odyssey.accept": ProposalArgument,
    "odyssey.reject": ProposalArgument,
    "odyssey.pinBaseline": SeqArgument,
    "odyssey.pickShape": KernelArgument,
    "odyssey.restore": RestoreArgument,
    "odyssey.restartWorkers": NoArgument,
    "odyssey.doctor": NoArgument,
}
"""Each command's one argument."""


class InvalidParams(ValueError):
    """Parameters that do not fit their type; the message names the field."""


def read(kind: type[T], value: Any) -> T:
    """One of the types above from JSON. Unknown fields are let pass: a newer client may send more.

    Written out because the protocol library's converter would expect our names in camel case. Raises InvalidParams.
    """
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise InvalidParams("the parameters should be an object")
    given: dict[str, Any] = {}
    for field in attrs.fields(kind):  # type: ignore[arg-type]
        if value.get(field.name) is None:
            if field.default is attrs.NOTHING:
                raise InvalidParams(f"{field.name} is missing")
            continue
        if not _fits(value[field.name], str(field.type)):
            raise InvalidParams(f"{field.name} should be {field.type}")
        given[field.name] = value[field.name]
    return kind(**given)


def plain(message: Any) -> Any:
    """One of the types above as JSON."""
    return attrs.asdict(message)


def _fits(value: Any, kind: str) -> bool:
    wanted = kind.split(" | ")[0]
    if wanted == "bool":
        return isinstance(value, bool)
    if wanted == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)
