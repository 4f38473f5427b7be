"""What stands on a document: late results are dropped, verdicts of other texts say that they are older."""

from __future__ import annotations

from server.analysis.finding import Finding, Severity, Span
from server.board import Board, VerdictLayer
from server.document import ByteEdit
from server.lines import LineIndex
from server.verdicts import Verdict
from tests.unit.server.measured import PATH, measurement

TEXT = LineIndex("0123456789\nabcdefghij\n")


def finding(code: str = "c", *, start: int = 0, source: str = "static", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code=code, severity=severity, span=Span(start, start + 2), message=code, source=source)


def test_an_older_generation_is_dropped():
    board = Board()
    assert board.put(PATH, "static", 5, [finding("new")])
    assert not board.put(PATH, "static", 4, [finding("old")])
    assert [each.code for each in board.findings(PATH, "s", TEXT)] == ["new"]


def test_a_verdicts_error_on_another_text_is_a_faded_hint():
    board = Board()
    board.say(PATH, "k", VerdictLayer("sha1", (finding("wrong"), finding("remark", severity=Severity.INFORMATION))))
    assert [each.severity for each in board.findings(PATH, "sha1", TEXT)] == [Severity.ERROR, Severity.INFORMATION]
    (older,) = board.findings(PATH, "sha2", TEXT)
    assert older.message == "older text: wrong" and older.severity is Severity.HINT and older.tags == ("unnecessary",)


def test_everything_moves_with_an_edit():
    board = Board()
    board.put(PATH, "static", 1, [finding(start=4)])
    board.say(PATH, "k", VerdictLayer("sha1", (finding(start=6),)))
    board.move(PATH, [ByteEdit(0, 0, 3)])
    assert sorted(each.span.start for each in board.findings(PATH, "sha1", TEXT)) == [7, 9]
    assert board.said(PATH)["k"].moved


def test_the_front_end_does_not_repeat_what_the_verdict_says_on_a_line():
    board = Board()
    board.put(PATH, "frontend", 1, [finding("same", source="frontend"), finding("other", start=12, source="frontend")])
    board.say(PATH, "k", VerdictLayer("sha1", (finding("verdict", start=3),)))
    assert [each.code for each in board.findings(PATH, "sha1", TEXT)] == ["other", "verdict"]
    assert [each.code for each in board.findings(PATH, "sha2", TEXT)] == ["same", "other", "verdict"]


def test_a_new_verdict_takes_back_what_the_old_one_said():
    board = Board()
    board.say(PATH, "k", VerdictLayer("sha1", (finding(),)))
    board.set_verdict(Verdict(path=PATH, kernel="k", sha="sha2", seq=2, measurement=measurement()))
    assert board.findings(PATH, "sha2", TEXT) == ()


def test_an_outdated_verdict_stays_with_its_reason():
    board = Board()
    verdict = Verdict(path=PATH, kernel="k", sha="s", seq=1, measurement=measurement())
    board.set_verdict(verdict)
    board.outdate(verdict, "helper.py has changed")
    found = board.verdict(PATH, "k")
    assert found is not None and found.old_because == "helper.py has changed"


def test_closing_keeps_verdicts():
    board = Board()
    board.put(PATH, "static", 1, [finding()])
    board.set_verdict(Verdict(path=PATH, kernel="k", sha="s", seq=1, measurement=measurement()))
    board.forget(PATH)
    assert board.findings(PATH, "s", TEXT) == () and board.verdict(PATH, "k") is not None
