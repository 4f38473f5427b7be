"""The map: every judged save a node, lanes that never move, burials with their reasons."""

from __future__ import annotations

import random
import time
import xml.etree.ElementTree
from pathlib import Path

from evalcore.results import compile_error, correct, incorrect
from server.ledger import drawing
from server.ledger.lanes import Lanes
from server.ledger.store import Ledger
from tests.support.ledgers import judged, opened, sha_of


def afternoon(ledger: Ledger) -> None:
    """A person edits, breaks, mends; a tuner and a model branch off; one branch is buried."""
    for text, result in (("a", None), ("b", incorrect("tail")), ("c", None)):
        ledger.append(judged(text, result), text=text)
    for number, time_us in enumerate((25.0, 21.0, 40.0)):
        text = f"tuned {number}"
        row = judged(text, correct(runtime_us=time_us, ref_runtime_us=60.0), author="tuner", parents=(sha_of("c"),))
        ledger.append(row, text=text, intent=f"num_warps {2 ** number}")
    ledger.bury(sha_of("tuned 2"), "spills")
    ledger.append(judged("model", compile_error("no"), author="model", parents=(sha_of("tuned 1"),)), text="model")
    merged = judged("merged", author="model", parents=(sha_of("tuned 0"), sha_of("tuned 1")))
    ledger.append(merged, text="merged", intent="both")


def test_who_made_what_from_what(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        afternoon(ledger)
        drawn = ledger.map("/p/kernel.py", "k")
        pairs = {(edge.parent, edge.child, edge.kind) for edge in drawn.edges}
        assert pairs == {
            (sha_of(a), sha_of(b), kind)
            for a, b, kind in (
                ("a", "b", "edit"), ("b", "c", "edit"), ("c", "tuned 0", "tune"), ("c", "tuned 1", "tune"),
                ("c", "tuned 2", "tune"), ("tuned 1", "model", "rewrite"), ("tuned 0", "merged", "merge"),
                ("tuned 1", "merged", "merge"),
            )
        }  # fmt: skip
        grave = drawn.node(sha_of("tuned 2"))
        assert grave is not None and grave.buried == "spills"
        assert [node.sha for node in drawn.nodes if node.best] == [sha_of("tuned 1")]
        assert [node.row for node in drawn.nodes] == list(range(8))
        lanes = {sha_of(text): node.lane for text in ("a", "b", "c", "tuned 0", "tuned 1", "tuned 2", "model", "merged")
                 if (node := drawn.node(sha_of(text))) is not None}  # fmt: skip
        assert [lanes[sha_of(text)] for text in ("a", "b", "c", "tuned 0")] == [0, 0, 0, 0]
        assert lanes[sha_of("tuned 1")] == 1 and lanes[sha_of("tuned 2")] == 2
        assert lanes[sha_of("merged")] == 0, "a merge stands in its first parent's lane"


def test_judging_again_keeps_the_place_and_shows_the_newest_verdict(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        afternoon(ledger)
        before = {node.sha: (node.lane, node.row, node.first_seq) for node in ledger.map().nodes}
        ledger.append(judged("b"), text="b")
        node = ledger.map().node(sha_of("b"))
        assert node is not None and node.status == "correct" and node.seq == 9
        assert {node.sha: (node.lane, node.row, node.first_seq) for node in ledger.map().nodes} == before


def test_a_map_read_on_is_the_map_read_afresh(tmp_path: Path) -> None:
    rng = random.Random(3)
    with opened(tmp_path) as ledger, opened(tmp_path) as other:
        places: dict[str, tuple[int, int]] = {}
        texts: list[str] = ["root"]
        ledger.append(judged("root"), text="root")
        for number in range(120):
            text = f"t{number}"
            author = rng.choice(["person", "tuner", "model", "agent"])
            parents = tuple(sha_of(parent) for parent in rng.sample(texts, min(len(texts), rng.choice([1, 1, 1, 2]))))
            result = rng.choice([None, incorrect("x"), compile_error("y")])
            ledger.append(judged(text, result, author=author, parents=parents), text=text)
            texts.append(text)
            if rng.random() < 0.2:
                ledger.bury(sha_of(rng.choice(texts)), "dead")
            for node in ledger.map("/p/kernel.py", "k").nodes:
                assert places.setdefault(node.sha, (node.lane, node.row)) == (node.lane, node.row), "a node never moves"
        assert other.map("/p/kernel.py", "k") == ledger.map("/p/kernel.py", "k")


def test_two_kernels_of_one_file_have_maps_of_their_own(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        for kernel in ("k", "other"):
            for text in ("a", "b"):
                ledger.append(judged(text, kernel=kernel), text=text)
        assert len(ledger.map("/p/kernel.py", "k").nodes) == 2
        assert len(ledger.map(kernel="other").edges) == 1
        assert len(ledger.map().nodes) == 4


def test_a_lane_is_used_again_only_when_its_branch_has_ended() -> None:
    lanes = Lanes()
    assert lanes.place("a", []) == (0, 0)
    assert lanes.place("b", ["a"]) == (0, 1)
    assert lanes.place("c", ["a"]) == (1, 2)
    assert lanes.place("d", ["unknown"]) == (2, 3)
    lanes.end("a")
    assert lanes.place("e", ["a"]) == (3, 4), "a is no tip: nothing was freed"
    lanes.end("c")
    lanes.end("c")
    assert lanes.place("f", ["a"])[0] == 1
    assert lanes.place("g", ["c"])[0] == 4, "c's lane belongs to f now"


def test_the_layout_is_linear() -> None:
    def seconds(count: int) -> float:
        lanes, started = Lanes(), time.perf_counter()
        for number in range(count):
            lanes.place(number, [number // 2])
            if number % 3:
                lanes.end(number)
        return time.perf_counter() - started

    small, large = min(seconds(5_000) for _ in range(3)), min(seconds(50_000) for _ in range(3))
    assert large < small * 30


def test_the_text_drawing(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        afternoon(ledger)
        drawn = drawing.as_text(ledger.map(), frozenset({"GPU-test"}))
    sha = {text: sha_of(text)[:10] for text in ("a", "b", "c", "tuned 0", "tuned 1", "tuned 2", "model", "merged")}
    assert drawn.splitlines() == [
        f"*      #8 {sha['merged']} right 30.0 us 2.00x model: both <- {sha['tuned 1']}",
        "|\\",
        f"| c    #7 {sha['model']} does not compile model",
        f"| | *  #6 {sha['tuned 2']} right 40.0 us 1.50x tuner: num_warps 4 [buried: spills] <- {sha['c']}",
        "|_|/",
        f"| *    #5 {sha['tuned 1']} right 21.0 us 2.86x best tuner: num_warps 2 <- {sha['c']}",
        "|/",
        f"*      #4 {sha['tuned 0']} right 25.0 us 2.40x tuner: num_warps 1",
        f"*      #3 {sha['c']} right 30.0 us 2.00x person",
        f"x      #2 {sha['b']} wrong person",
        f"*      #1 {sha['a']} right 30.0 us 2.00x person",
    ]


def test_figures_of_another_card_are_struck_out(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("a"), text="a", intent="<script>alert(1)</script> & \"quotes\"")
        drawn = ledger.map()
    assert "~30.0 us 2.00x~ on Test Card" in drawing.as_text(drawn, frozenset({"GPU-here"}))
    assert "~" not in drawing.as_text(drawn, frozenset({"GPU-test"}))
    svg = drawing.as_svg(drawn, frozenset())
    xml.etree.ElementTree.fromstring(svg)
    assert "line-through" in svg and "<script>" not in svg
    assert drawing.as_dot(drawn).count('\\"quotes\\"') == 1


def test_an_empty_map(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        drawn = ledger.map()
    assert "empty" in drawing.as_text(drawn)
    xml.etree.ElementTree.fromstring(drawing.as_svg(drawn))
    assert drawing.as_plain(drawn)["nodes"] == []
