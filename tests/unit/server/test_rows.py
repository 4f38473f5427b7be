"""Ledger rows as a panel shows them: finished words, from the plain values, quickly."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from evalcore import results
from evalcore.facts import Samples
from evalcore.jobs import Flag
from evalcore.wire import encode
from server import rows
from server.ledger.store import Ledger
from tests.unit.server.measured import PATH, case, environment, measurement


def ledger(tmp_path: Path) -> Ledger:
    (tmp_path / "w").mkdir()
    return Ledger.open(tmp_path / "w", state_dir=tmp_path / "s")


def samples(count: int) -> tuple[Samples, ...]:
    return (
        Samples(subject="candidate", figure="device", timer="t", values_us=tuple(range(count)), case='],"kernels":['),
    )


def test_a_body_is_read_without_its_samples():
    made = measurement(samples=samples(50), flags=(Flag(code="x", message=',"samples":[ and ],"kernels":['),))
    body = json.dumps(encode(made), separators=(",", ":"))
    found = rows.light(body)
    assert "samples" not in found
    assert {key: value for key, value in json.loads(body).items() if key != "samples"} == found
    assert rows.light("[1]") == {} and rows.light("{broken") == {}
    assert rows.light('{"a":1}') == {"a": 1}


def test_a_row_has_finished_words(tmp_path):
    store = ledger(tmp_path)
    opponents = ({"name": "torch.compile", "admissible": True, "runtime_us": 40.0},)
    timing = {"case": "x", "device_us": 34.4, "n": 10, "interval_us": [34.1, 34.9], "timer": "t"}
    made = measurement(opponents=opponents, timing=timing, samples=samples(3), measured_at="2026-11-29T15:36:29.460Z")
    store.append(made, text="text")
    (row,) = store.rows()
    shown = rows.row_plain(row, uri_of=lambda path: f"file://{path}", buried="slower")
    assert shown["speedup_words"] == "1.16x" and shown["opponent"] == "torch.compile"
    assert shown["device_words"] == "34.4 us" and shown["interval_words"] == "34.1 us to 34.9 us"
    assert (
        shown["at_words"] == "2026-11-29 15:36:29" and shown["uri"] == f"file://{PATH}" and shown["buried"] == "slower"
    )
    assert shown["verdict_words"] == "correct" and shown["sha_short"] == "a" * 8
    assert "| 4096x4096 | 5/5 |" in shown["detail_markdown"] and "device 34.4 us" in shown["detail_markdown"]


def test_what_was_not_measured_has_no_words(tmp_path):
    store = ledger(tmp_path)
    store.append(measurement(result=results.correct(), environment=environment(interpreted=True)), text="t")
    (row,) = store.rows()
    shown = rows.row_plain(row, uri_of=str)
    assert (shown["speedup"], shown["speedup_words"], shown["device_us"], shown["device_words"]) == (None, "", None, "")
    assert shown["verdict_words"] == "correct (interpreted, no GPU)" and " us" not in shown["detail_markdown"]


def test_a_strangers_words_are_escaped(tmp_path):
    store = ledger(tmp_path)
    evil = "![x](http://evil) <img>"
    store.append(measurement(kernel=evil, result=results.incorrect(evil), cases=(case(name=evil),)), text="t")
    (row,) = store.rows()
    detail = rows.row_plain(row, uri_of=str)["detail_markdown"]
    assert "](http" not in detail.replace("```text\n" + evil, "").replace("\\](", "")
    assert "\\<img\\>" in detail
    assert "\\<img\\>" in rows.history_markdown(evil, [row])


def test_a_map_and_a_comparison_are_worded(tmp_path):
    store = ledger(tmp_path)
    first = measurement(measured_at="2026-11-29T15:36:29.460Z")
    store.append(first, text="one")
    faster = results.correct(runtime_us=30.0, ref_runtime_us=79.5)
    store.append(dataclasses.replace(first, kernel_sha="e" * 64, result=faster, parents=("a" * 64,)), text="two")
    graph = rows.map_plain(store.map())
    assert [node["label"] for node in graph["nodes"]] == ["#1 correct 34.4 us 2.31x", "#2 correct 30.0 us 2.65x"]
    assert graph["edges"] == [{"from": "a" * 64, "to": "e" * 64, "kind": "edit"}]
    from server.ledger.compare import compare, find

    both = compare(store, find(store, "1"), find(store, "2"))
    shown = rows.comparison_plain(both, "one", "two")
    assert "| runtime\\_us | 34.4 us | 30.0 us | 1.15x |" in shown["table_markdown"]
