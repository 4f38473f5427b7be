"""Marked text: carets under the code name the rule and the words, `<|>` is the cursor. One place that calls analysis.

    i = tl.arange(0, 96)
    #   ^^^^^^^^^^^^^^^^ arange-size: 96 is not a power of two

A caret line is a comment line that holds nothing but `#`, carets and `code: words`; it speaks of the last code line
above. It is taken out before the text is analysed, and words need only be part of the message.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from server.analysis.check import Analysis, analyse
from server.analysis.finding import Finding

_CARETS = re.compile(r"^(?P<lead>[ \t]*#[ \t]*)(?P<carets>\^+)[ \t]*(?P<code>[\w-]+)(?:[ \t]*:[ \t]*(?P<words>.*))?$")
CURSOR = "<|>"


@dataclass(frozen=True)
class Mark:
    """What must be found: line and columns from 0, in code points."""

    line: int
    start: int
    end: int
    code: str
    words: str


def read_marks(marked: str) -> tuple[str, list[Mark], int | None]:
    """(text without marks, marks, cursor offset in code points or None)."""
    lines: list[str] = []
    marks: list[Mark] = []
    for line in textwrap.dedent(marked).lstrip("\n").split("\n"):
        match = _CARETS.match(line)
        if match:
            start = len(match["lead"])
            words = (match["words"] or "").strip()
            marks.append(Mark(len(lines) - 1, start, start + len(match["carets"]), match["code"], words))
        else:
            lines.append(line)
    text = "\n".join(lines)
    cursor = text.find(CURSOR)
    return (text.replace(CURSOR, "", 1), marks, cursor) if cursor >= 0 else (text, marks, None)


def check_findings(marked: str, *, path: str = "kernel.py") -> Analysis:
    """Assert that exactly the marked findings are found. Returns the analysis for further looks."""
    text, marks, _cursor = read_marks(marked)
    analysis = analyse(path, text)
    found = [_place(text, each) for each in analysis.findings]
    wanted = [(mark.line, mark.start, mark.end, mark.code) for mark in marks]
    assert found == wanted, "\n".join([f"found {found}", f"wanted {wanted}", *(f.message for f in analysis.findings)])
    for mark, finding in zip(marks, analysis.findings, strict=True):
        assert mark.words in finding.message, finding.message
    return analysis


def fixed(text: str, finding: Finding, which: int = 0) -> str:
    """The text after a finding's fix."""
    data = text.encode()
    for edit in sorted(finding.fixes[which].edits, key=lambda each: -each.span.start):
        data = data[: edit.span.start] + edit.new_text.encode() + data[edit.span.end :]
    return data.decode()


def _place(text: str, finding: Finding) -> tuple[int, int, int, str]:
    data = text.encode()
    head = data[: finding.span.start].decode()
    line = head.count("\n")
    start = len(head) - (head.rfind("\n") + 1)
    covered = data[finding.span.start : finding.span.end].decode()
    end = start + len(covered.split("\n")[0])
    return line, start, end, finding.code
