"""What crosses a border comes out as it went in: settings, framing, positions, compact findings, packed problems."""

from __future__ import annotations

import json
import random

import pytest
from lsprotocol import types

from evalcore.problem import Case, Inputs, InputsKind, Problem, Program, ProgramKind
from handlers import from_lsp, to_lsp
from server import config
from server.analysis.finding import Edit, Finding, Fix, Severity, Span
from server.compact import pack_findings, pack_sites, unpack_findings, unpack_sites
from server.lines import LineIndex
from server.lsp import ext
from server.lsp.framing import Framer, FramingLost, frame
from server.sites import Bound, Site, pack_bounds, packed, unpack_bounds

TEXT = "ascii\r\né漢字 x\n😀😀 = 'a'\rlast"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_there_and_back(encoding):
    index = LineIndex(TEXT)
    for offset in range(len(TEXT) + 1):
        if TEXT[offset - 1 : offset + 1] == "\r\n":
            continue  # inside a line's end there is no position
        position = to_lsp.position_of_offset(index, offset, encoding)
        assert from_lsp.offset_of(index, position, encoding) == offset
        byte = len(TEXT[:offset].encode())
        assert to_lsp.position(index, byte, encoding) == position
        assert from_lsp.byte_of(index, position, encoding) == byte


def test_a_position_inside_a_surrogate_pair_is_the_characters_start():
    index = LineIndex("😀x")
    assert from_lsp.offset_of(index, types.Position(0, 1), "utf-16") == 0
    assert from_lsp.offset_of(index, types.Position(0, 2), "utf-16") == 1
    assert from_lsp.offset_of(index, types.Position(7, 7), "utf-16") == 2


def test_changes_are_applied_one_after_the_other():
    index = LineIndex("one\ntwo\n")
    changes = [
        types.TextDocumentContentChangePartial(range=_range(1, 0, 1, 3), text="2"),
        types.TextDocumentContentChangePartial(range=_range(0, 3, 1, 0), text=" "),
    ]
    after, edits = from_lsp.changed(index, changes, "utf-16")
    assert after.text == "one 2\n" and edits is not None and len(edits) == 2
    whole, none = from_lsp.changed(index, [types.TextDocumentContentChangeWholeDocument(text="x\ud800")], "utf-16")
    assert whole.text == "x\ufffd" and none is None
    backwards = types.TextDocumentContentChangePartial(range=_range(1, 2, 0, 1), text="")
    assert from_lsp.changed(index, [backwards], "utf-16")[0].text == "one\ntwo\n"


def _range(a: int, b: int, c: int, d: int) -> types.Range:
    return types.Range(start=types.Position(a, b), end=types.Position(c, d))


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file:///a%20b/c%25.py", "/a b/c%.py"),
        ("file:///%C3%BC/%F0%9F%98%80.py", "/ü/😀.py"),
        ("file:///a/what%3F%23.py", "/a/what?#.py"),
        ("file:///a/what?#.py", "/a/what?#.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file:///a/../b//c.py", "/b/c.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("vscode-notebook-cell:/a.ipynb#1", "vscode-notebook-cell:/a.ipynb#1"),
    ],
)
def test_uris(uri, path):
    assert from_lsp.path_of(uri) == path
    if path.startswith("/"):
        assert from_lsp.path_of(to_lsp.uri_of(path)) == path
    else:
        assert to_lsp.uri_of(path) == path


def test_frames_in_any_pieces():
    bodies = [b"{}", b"", b"x" * 5000, "é".encode()]
    stream = b"".join(frame(body) for body in bodies) + b"content-LENGTH:2\nOther: y\n\nok"
    for size in (1, 2, 7, 100, len(stream)):
        framer, found = Framer(), []
        for start in range(0, len(stream), size):
            found += framer.feed(stream[start : start + size])
        assert found == [*bodies, b"ok"]


@pytest.mark.parametrize(
    "header", [b"Nothing: 1\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"Content-Length: 9999999999\r\n\r\n"]
)
def test_a_stream_that_cannot_be_followed(header):
    with pytest.raises(FramingLost):
        Framer().feed(header)


def test_settings_are_read_leniently_and_each_problem_is_said():
    section = {"python": "/p", "evaluate": "sometimes", "watch": ["a", 3], "device": "cuda:1", "reuse": "off",
               "trace": 1, "mode": "thorough", "unknown": 5, "model": None}  # fmt: skip
    settings, problems = config.read(section)
    assert (settings.python, settings.evaluate, settings.watch, settings.device) == ("/p", "save", (), "cuda:1")
    assert settings.reuse is False and settings.mode == "thorough"
    assert len(problems) == 3 and all("it is ignored" in each for each in problems)
    assert config.read(None) == (config.Settings(), ())
    assert config.read([1])[1][0].startswith("odyssey: settings should be an object")
    assert config.read({"device": "cuda:x"})[1] and config.read({"python": "a\0b"})[1]


def test_compact_findings_and_sites():
    finding = Finding(
        code="c", severity=Severity.WARNING, span=Span(1, 2), message="m", related=((Span(3, 4), "w"),), tags=("t",),
        fixes=(Fix(title="f", edits=(Edit(span=Span(5, 6), new_text="x"),), preferred=True, new_file=("/p", "t")),),
    )  # fmt: skip
    site = Site(name="k", language="triton", span=Span(0, 9), name_span=Span(1, 2), helper=True)
    wire = json.loads(json.dumps([pack_findings((finding,)), pack_sites((site,))]))
    assert unpack_findings(wire[0]) == (finding,) and unpack_sites(wire[1]) == (site,)


def test_a_problem_is_packed_without_its_texts():
    program = Program(path="/p", text="T" * 1000, entry="f", kind=ProgramKind.FUNCTION)
    other = Program(path="/q", text="other", entry="g", kind=ProgramKind.FUNCTION)
    problem = Problem(id="i", format="f", reference=other, candidate=program, inputs=Inputs(kind=InputsKind.GET_INPUTS),
                      cases=(Case(name="c", sizes=(("n", 4),)),))  # fmt: skip
    texts = [program.text]
    bound = Bound(anchor="f", kernels=("f",), packed=packed(problem, texts), texts=tuple(texts))
    assert "TTT" not in bound.packed
    line = json.dumps(pack_bounds((bound, bound), program.text))
    assert line.count("TTT") == 0 and line.count("other") == 1
    first, _ = unpack_bounds(json.loads(line), program.text)
    assert first.problem() == problem
    assert Bound(anchor="x", kernels=(), refusal_code="no_reference").problem() is None


def test_our_parameters_are_read_strictly_and_their_names_stay():
    read = ext.read(ext.KernelArgument, {"uri": "u", "kernel": "k", "base_sha": "s", "later": 1})
    assert (read.base_sha, read.mode) == ("s", None)
    assert ext.plain(ext.StatusParams(state="idle", text="", card=None, detail="", grey_reason=None, missing=[])) == {
        "state": "idle", "text": "", "card": None, "detail": "", "grey_reason": None, "missing": [],
    }  # fmt: skip
    for kind, value in [(ext.SeqParams, {"seq": True}), (ext.SeqParams, {}), (ext.TrustParams, {"trusted": 1}),
                        (ext.CandidateParams, {"sha": 5}), (ext.ScopeParams, [1])]:  # fmt: skip
        with pytest.raises(ext.InvalidParams):
            ext.read(kind, value)


def test_restoring_is_one_small_edit():
    draw = random.Random(5)
    for _ in range(300):
        old = "".join(draw.choices("ab\né漢😀", k=draw.randint(0, 20)))
        new = "".join(draw.choices("ab\né漢😀", k=draw.randint(0, 20)))
        index = LineIndex(old)
        edit = to_lsp.whole_document(index, new, "utf-16")
        start = from_lsp.offset_of(index, edit.range.start, "utf-16")
        end = from_lsp.offset_of(index, edit.range.end, "utf-16")
        assert old[:start] + edit.new_text + old[end:] == new
