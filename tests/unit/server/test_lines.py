"""The line index: every edit must give the same index as scanning the new text from nothing."""

from __future__ import annotations

import random

from server.lines import LineIndex, TextEdit, without_surrogates

PIECES = ["a", "\n", "\r", "\r\n", "\u2028", "\x0c", "é", "漢", "😀", "  ", "\r\r\n", "x = 1\n", ""]


def check_same(index: LineIndex) -> None:
    fresh = LineIndex(index.text)
    assert index.starts == fresh.starts, repr(index.text)
    assert index.byte_starts == fresh.byte_starts


def test_lines_are_split_as_editors_do():
    index = LineIndex("a\u2028b\x0cc\r\nd\re\n")
    assert [index.line(i) for i in range(index.count)] == ["a\u2028b\x0cc", "d", "e", ""]


def test_ten_thousand_random_edits_equal_a_fresh_scan():
    draw = random.Random(7)
    index = LineIndex("def f():\r\n    return 1\n")
    for _ in range(10_000):
        start = draw.randint(0, len(index.text))
        end = min(len(index.text), start + draw.choice([0, 0, 1, 2, 7]))
        index = index.edited(TextEdit(start, end, "".join(draw.choices(PIECES, k=draw.randint(0, 3)))))
        check_same(index)
        if len(index.text) > 400:
            index = LineIndex(index.text[: draw.randint(0, 60)])


def test_byte_offsets_both_ways():
    text = "é漢\n😀 x\r\nplain\n"
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        byte = len(text[:offset].encode())
        assert index.byte_of(offset) == byte
        assert index.offset_of_byte(byte) == offset
    assert index.offset_of_byte(1) == 0  # inside é


def test_places_are_clamped():
    index = LineIndex("ab\r\ncd")
    assert index.offset(0, 99) == 2
    assert index.offset(9, 0) == 6
    assert index.offset(-1, 5) == 0
    assert index.place(99) == (1, 2)


def test_unpaired_surrogates_become_replacement_characters():
    assert without_surrogates("a\ud83d b") == "a\ufffd b"
    assert without_surrogates("😀") == "😀"
