"""Spans move along with edits exactly as the text does, in any script."""

from __future__ import annotations

import random

from server.analysis.finding import Edit, Finding, Fix, Severity, Span
from server.document import Document, byte_edit, common_ends, find_definition, moved_finding
from server.lines import LineIndex, TextEdit
from server.sites import Bound, Site

ALPHABET = "ab\n\r é漢😀"


def test_a_marked_word_is_found_where_its_span_moved_to():
    draw = random.Random(3)
    for _ in range(2000):
        before = "".join(draw.choices(ALPHABET, k=draw.randint(0, 12)))
        after = "".join(draw.choices(ALPHABET, k=draw.randint(0, 12)))
        index = LineIndex(before + "KERNEL" + after)
        span = Span(len(before.encode()), len((before + "KERNEL").encode()))
        in_front = draw.random() < 0.5
        low, high = (0, len(before)) if in_front else (len(before) + 6, len(index.text))
        start = draw.randint(low, high)
        end = draw.randint(start, high)
        new = "".join(draw.choices(ALPHABET, k=draw.randint(0, 5)))
        if not in_front and start == len(before) + 6:
            new = " " + new
        move = byte_edit(index, TextEdit(start, end, new))
        text = index.edited(TextEdit(start, end, new)).text.encode()
        moved = move.moved(span)
        assert text[moved.start : moved.end] == b"KERNEL"


def test_an_edit_over_a_span_shrinks_it_to_the_edit():
    index = LineIndex("abcdefgh")
    move = byte_edit(index, TextEdit(2, 6, "X"))
    assert move.moved(Span(3, 5)) == Span(2, 3)
    assert move.moved(Span(0, 4)) == Span(0, 3)
    assert move.moved(Span(4, 8)) == Span(2, 5)


def test_fixes_are_dropped_when_the_text_they_were_written_for_moved():
    fix = Fix(title="t", edits=(Edit(span=Span(8, 9), new_text=""),))
    finding = Finding(code="c", severity=Severity.HINT, span=Span(4, 6), message="m", fixes=(fix,))
    move = byte_edit(LineIndex("0123456789"), TextEdit(0, 0, "xx"))
    assert moved_finding(finding, move).span == Span(6, 8)
    assert moved_finding(finding, move).fixes == ()


def document(text: str) -> Document:
    return Document(path="/w/k.py", uri="file:///w/k.py", version=1, language="python", index=LineIndex(text))


def test_a_whole_replacement_moves_kernels_by_what_is_common():
    text = "import a\n\ndef kernel(x):\n    pass\n"
    doc = document(text)
    start = text.index("kernel")
    doc.sites = (Site(name="kernel", language="triton", span=Span(10, 33), name_span=Span(start, start + 6)),)
    doc.change(LineIndex("import a\nimport b\n\ndef kernel(x):\n    pass\n"), None, 2)
    span = doc.sites[0].name_span
    assert doc.index.text.encode()[span.start : span.end] == b"kernel"
    assert doc.generation == 1


def test_the_sha_follows_the_text_and_comes_back_with_it():
    doc = document("a")
    first = doc.sha
    doc.change(LineIndex("ab"), (TextEdit(1, 1, "b"),), 2)
    assert doc.sha != first
    doc.change(LineIndex("a"), (TextEdit(1, 2, ""),), 3)
    assert doc.sha == first


def test_an_entry_without_a_kernel_is_a_site_of_its_own():
    doc = document("class ModelNew(nn.Module):\n    pass\n")
    doc.bounds = (Bound(anchor="ModelNew", kernels=(), packed="{}"),)
    (site,) = doc.all_sites()
    assert (site.name, site.language, site.name_span) == ("ModelNew", "entry", Span(6, 14))
    assert find_definition(LineIndex("def other(): pass"), "ModelNew") is None
    assert find_definition(LineIndex("x"), "not a name(") is None


def test_edited_spans_stay_bounded_and_cover_what_was_typed():
    doc = document("x" * 4000)
    for number in range(200):
        doc.change(
            doc.index.edited(TextEdit(number * 20, number * 20, "y")), (TextEdit(number * 20, number * 20, "y"),), 2
        )
    assert len(doc.edited_spans) <= 64
    assert doc.edited_spans[-1].end >= 199 * 20


def test_common_ends_never_overlap():
    for old, new in [("aaa", "aa"), ("", "x"), ("abc", "abc"), ("é", "è"), ("aXb", "aYb"), ("abab", "ab")]:
        start, tail = common_ends(old, new)
        assert start + tail <= min(len(old), len(new))
        assert old[:start] == new[:start] and old[len(old) - tail :] == new[len(new) - tail :]
        assert old[:start] + new[start : len(new) - tail] + old[len(old) - tail :] == new
