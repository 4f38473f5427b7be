"""Owns what verdicts, bindings and the front end say on one document now. Never acts: `server.session` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from evalcore.jobs import Diagnostic
from server import placing, words
from server.analysis.finding import Finding, Severity, Span
from server.board import Board, VerdictLayer
from server.document import Document
from server.sites import Bound, Site
from server.state import State


def refresh(state: State, document: Document) -> None:
    """Let each verdict of exactly this text say what it says, at exact places.

    What verdicts of other texts said stays where the edits moved it to; the board shows it as older.
    """
    sites = {site.name: site for site in document.all_sites()}
    said = state.board.said(document.path)
    for verdict in state.board.verdicts(document.path):
        if verdict.sha != document.sha:
            continue
        layer = said.get(verdict.kernel)
        if layer is None or layer.moved or layer.sha != verdict.sha:
            found = placing.verdict_findings(verdict.measurement, document.index, sites.get(verdict.kernel))
            state.board.say(document.path, verdict.kernel, VerdictLayer(verdict.sha, found))
    for verdict in state.board.verdicts():
        here = placing.other_files(verdict.measurement).get(document.path)
        if here and verdict.path != document.path:
            found = tuple(placing.worker_finding(document.index, each, "verdict") for each in here)
            state.board.say(document.path, f"{verdict.path}::{verdict.kernel}", VerdictLayer(document.sha, found))


def unbound(document: Document) -> tuple[Finding, ...]:
    """A hint on each kernel that is compared with nothing."""
    sites = {site.name: site for site in document.all_sites()}
    return tuple(
        finding
        for bound in document.bounds
        if bound.refusal_code == "no_reference" and (finding := _unbound(bound, sites.get(bound.anchor))) is not None
    )


def _unbound(bound: Bound, site: Site | None) -> Finding | None:
    if site is None:
        return None
    return Finding(
        code="no-reference",
        severity=Severity.HINT,
        span=site.name_span,
        message=bound.refusal_words or words.no_reference(bound.anchor),
        source="binding",
        fixes=bound.fixes,
    )


def front_end(
    board: Board, document: Document, diagnostics: Sequence[Diagnostic], kernels: Sequence[str]
) -> tuple[Finding, ...]:
    """The front end's new word on the kernels it looked at, and its last word on the others."""
    looked_at = [site.span for site in document.sites if site.name in kernels]
    kept: list[Finding] = []
    if len(looked_at) < len(document.sites):
        kept = [
            finding
            for finding in board.layer(document.path, "frontend")
            if not any(_inside(finding.span, span) for span in looked_at)
        ]
    here = [each for each in diagnostics if each.path == document.path]
    return (*kept, *(placing.worker_finding(document.index, each, "frontend") for each in here))


def outdate(state: State, changed: str, sha: str) -> tuple[str, ...]:
    """Mark the verdicts that rest on another text of a file as old; the files whose kernels depend on it."""
    dependents: dict[str, None] = {}
    because = f"{PurePath(changed).name} has changed since this was measured."
    for verdict in state.board.verdicts():
        known = dict(verdict.measurement.dependencies).get(changed)
        if verdict.path != changed and known is not None and known != sha:
            state.board.outdate(verdict, because)
            dependents[verdict.path] = None
    for path, document in state.documents.items():
        if path != changed and any(changed in bound.depends for bound in document.bounds):
            for verdict in state.board.verdicts(path):
                if dict(verdict.measurement.dependencies).get(changed) != sha:
                    state.board.outdate(verdict, because)
                    dependents[path] = None
            if not state.board.verdicts(path):
                dependents[path] = None
    return tuple(dependents)


def _inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start <= outer.end
