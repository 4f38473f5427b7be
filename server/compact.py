"""Owns the compact form in which a reader child sends kernels and findings. Never validates: both ends are ours.

Decoding a few hundred findings by field names took 10 ms, twice what the event loop may be held; lists take 1 ms.
"""

from __future__ import annotations

from typing import Any

from server.analysis.finding import Edit, Finding, Fix, Severity, Span
from server.sites import Site

_SEVERITIES = {each.value: each for each in Severity}


def pack_sites(sites: tuple[Site, ...]) -> list[list[Any]]:
    """Kernels as lists."""
    return [[s.name, s.language, s.span.start, s.span.end, s.name_span.start, s.name_span.end, s.helper] for s in sites]


def unpack_sites(rows: list[list[Any]]) -> tuple[Site, ...]:
    """What `pack_sites` made."""
    return tuple(
        Site(name=name, language=language, span=Span(start, end), name_span=Span(first, last), helper=helper)
        for name, language, start, end, first, last, helper in rows
    )


def pack_findings(findings: tuple[Finding, ...]) -> list[list[Any]]:
    """Findings as lists."""
    return [
        [
            f.code,
            f.severity.value,
            f.span.start,
            f.span.end,
            f.message,
            f.source,
            [_pack_fix(fix) for fix in f.fixes],
            [[span.start, span.end, words] for span, words in f.related],
            list(f.tags),
        ]
        for f in findings
    ]


def unpack_findings(rows: list[list[Any]]) -> tuple[Finding, ...]:
    """What `pack_findings` made."""
    return tuple(
        Finding(
            code=code,
            severity=_SEVERITIES[severity],
            span=Span(start, end),
            message=message,
            source=source,
            fixes=tuple(_unpack_fix(fix) for fix in fixes),
            related=tuple((Span(first, last), words) for first, last, words in related),
            tags=tuple(tags),
        )
        for code, severity, start, end, message, source, fixes, related, tags in rows
    )


def _pack_fix(fix: Fix) -> list[Any]:
    edits = [[edit.span.start, edit.span.end, edit.new_text] for edit in fix.edits]
    return [fix.title, edits, fix.preferred, list(fix.new_file) if fix.new_file else None]


def _unpack_fix(row: list[Any]) -> Fix:
    title, edits, preferred, new_file = row
    return Fix(
        title=title,
        edits=tuple(Edit(span=Span(start, end), new_text=text) for start, end, text in edits),
        preferred=preferred,
        new_file=(new_file[0], new_file[1]) if new_file else None,
    )
