"""Owns where on a text the messages of a worker and of a verdict stand. Never words a verdict: `server.words` does."""

from __future__ import annotations

from dataclasses import replace

from evalcore.jobs import Diagnostic, Measurement, Reason, Refusal
from evalcore.results import Status
from server import words
from server.analysis.finding import Finding, Severity, Span
from server.lines import LineIndex
from server.sites import Site

QUIET_FLAGS = frozenset({"interpreted", "reduced-sizes"})
"""Remarks that already stand in the hint's words."""

_SEVERITIES = {each.value: each for each in Severity}


def span_of(index: LineIndex, diagnostic: Diagnostic) -> Span:
    """The bytes that a worker's (line, column) from 1 point at; to the end of the line where no end is given."""
    line = min(max(diagnostic.line - 1, 0), index.count - 1)
    start = index.offset(line, diagnostic.column - 1)
    if diagnostic.end_line is not None and diagnostic.end_column is not None:
        end = index.offset(min(diagnostic.end_line - 1, index.count - 1), diagnostic.end_column - 1)
    else:
        end = index.starts[line] + len(index.line(line).rstrip())
    if end <= start:  # a place at the end of a line: mark the line's words
        text = index.line(line)
        start = index.starts[line] + len(text) - len(text.lstrip())
        end = max(index.starts[line] + len(text.rstrip()), start)
    return Span(index.byte_of(start), index.byte_of(end))


def worker_finding(index: LineIndex, diagnostic: Diagnostic, source: str) -> Finding:
    """A worker's diagnostic as a finding of this text."""
    return Finding(
        code=diagnostic.code,
        severity=_SEVERITIES.get(diagnostic.severity, Severity.ERROR),
        span=span_of(index, diagnostic),
        message=diagnostic.message,
        source=source,
    )


def verdict_findings(measurement: Measurement, index: LineIndex, site: Site | None) -> tuple[Finding, ...]:
    """What a verdict has to say on its own text: located errors where they are, the rest at the kernel's name."""
    here = site.name_span if site is not None else Span(0, 0)
    found = [
        worker_finding(index, each, "verdict") for each in measurement.diagnostics if each.path == measurement.file
    ]
    if measurement.result.status is not Status.CORRECT and not any(each.severity is Severity.ERROR for each in found):
        found.append(_verdict_at(measurement, here))
    if said := words.critic(measurement):
        found.append(Finding(code="critic", severity=Severity.HINT, span=here, message=said, source="critic"))
    for flag in measurement.flags:
        if flag.code not in QUIET_FLAGS:
            found.append(_remark(flag.code, flag.message, here))
    return tuple(found)


def diagnostic_of(finding: Finding, path: str, index: LineIndex) -> Diagnostic:
    """A finding with lines and columns from 1, in code points."""
    line, column = index.place(index.offset_of_byte(finding.span.start))
    end_line, end_column = index.place(index.offset_of_byte(finding.span.end))
    return Diagnostic(
        path=path,
        line=line + 1,
        column=column + 1,
        severity=finding.severity.value,
        code=finding.code,
        message=finding.message,
        end_line=end_line + 1,
        end_column=end_column + 1,
    )


def other_files(measurement: Measurement) -> dict[str, list[Diagnostic]]:
    """The located errors of a verdict that lie in other files, e.g. in a helper."""
    found: dict[str, list[Diagnostic]] = {}
    for each in measurement.diagnostics:
        if each.path != measurement.file:
            found.setdefault(each.path, []).append(each)
    return found


def refusal_finding(refusal: Refusal, site: Site | None) -> Finding:
    """Why a kernel was not judged, with what would make it possible."""
    here = site.name_span if site is not None else Span(0, 0)
    return Finding(
        code=refusal.code.replace("_", "-"),
        severity=Severity.INFORMATION,
        span=here,
        message=words.refusal_words(refusal),
        source="verdict",
    )


def syntax_finding(refusal: Refusal, index: LineIndex, place: tuple[int, int]) -> Finding:
    """Python's own parser stops here: nothing in this text can be judged."""
    where = Diagnostic(path="", line=place[0], column=place[1], severity="error", code="syntax-error", message="")
    return Finding(
        code="syntax-error",
        severity=Severity.ERROR,
        span=span_of(index, where),
        message=words.refusal_words(refusal),
        source="verdict",
    )


def as_older(finding: Finding) -> Finding:
    """A verdict's finding on a text that moved on: faded, and it says so."""
    return replace(
        finding,
        severity=Severity.HINT,
        message=words.OLDER + finding.message,
        fixes=(),
        tags=("unnecessary",),
    )


def _verdict_at(measurement: Measurement, here: Span) -> Finding:
    quiet = measurement.reason is Reason.NOT_JUDGEABLE
    return Finding(
        code=(measurement.reason or measurement.result.status).value.replace("_", "-"),
        severity=Severity.INFORMATION if quiet else Severity.ERROR,
        span=here,
        message=measurement.result.error or words.verdict_words(measurement),
        source="verdict",
    )


def _remark(code: str, message: str, here: Span) -> Finding:
    return Finding(code=code, severity=Severity.INFORMATION, span=here, message=message, source="verdict")
