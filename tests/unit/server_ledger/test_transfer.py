"""Other forms: those who own a form can read what is written; what cannot be said there is left out."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from evalcore.jobs import CaseReport, Reason
from evalcore.results import compile_error, correct, error, incorrect
from server.ledger import foreign, transfer
from server.ledger.transfer import Selection
from tests.support import measurements
from tests.support.ledgers import filled, judged, opened, sha_of


def case(name: str, status: str = "right", **changes: Any) -> CaseReport:
    given: dict[str, Any] = {
        "name": name, "sizes": {"N": 64}, "origin": "given", "status": status, "trials": 5, "trials_right": 5,
        "seeds": (1, 2), "max_abs_error": 1e-6, "max_rel_error": 1e-5, "runtime_us": 30.0, "ref_runtime_us": 60.0,
    }  # fmt: skip
    return CaseReport(**{**given, **changes})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_jsonl_holds_every_stored_value_and_hash(tmp_path: Path) -> None:
    with filled(tmp_path, 4) as ledger:
        done = transfer.export(ledger, "jsonl", tmp_path / "out.jsonl")
        top, *entries = lines(tmp_path / "out.jsonl")
        head = ledger.head()
        assert head is not None and top["head"] == head.hash == entries[-1]["hash"] and top["whole"]
        assert done.rows == 4 and [entry["position"] for entry in entries] == list(range(1, 11))
        stored = ledger.db.execute("select body from rows where seq = 2").fetchone()[0]
        assert next(e for e in entries if e["kind"] == "rows" and e["values"]["seq"] == 2)["values"]["body"] == stored


def test_a_selection_takes_texts_and_problems_along(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        ledger.append(judged("p"), text="p", problem=measurements.problem("p"))
        done = transfer.export(ledger, "jsonl", tmp_path / "out.jsonl", Selection(seqs=(4,)))
        _, *entries = lines(tmp_path / "out.jsonl")
        assert done.rows == 1 and [entry["kind"] for entry in entries] == ["texts", "problems", "rows"]
        with pytest.raises(KeyError):
            transfer.export(ledger, "jsonl", tmp_path / "out.jsonl", Selection(seqs=(99,)))
        assert len(lines(tmp_path / "out.jsonl")) == 4, "a failed export leaves the old file"
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_csv_is_the_benchmark_file(tmp_path: Path) -> None:
    with filled(tmp_path, 4) as ledger:
        transfer.export(ledger, "csv", tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_bytes() == (ledger.place.folder / "benchmark.csv").read_bytes()
        transfer.export(ledger, "csv", tmp_path / "one.csv", Selection(seqs=(3,)))
    with (tmp_path / "one.csv").open() as file:
        assert [row["seq"] for row in csv.DictReader(file)] == ["3"]


def test_parquet(tmp_path: Path) -> None:
    with filled(tmp_path, 4) as ledger:
        ledger.append(judged("c", compile_error("no"), samples=()), text="c")
        transfer.export(ledger, "parquet", tmp_path / "out.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["seq"] for row in table] == [1, 2, 3, 4, 5]
    assert table[1]["text"] == "def k():\n    return 1\n"
    assert table[1]["parents"] == [sha_of("def k():\n    return 0\n")]
    assert table[0]["samples_us"][:2] == [30.0, 30.125] and table[4]["samples_us"] is None
    assert table[4]["runtime_us"] is None and table[4]["git_dirty"] is True


def trace_rules(trace: dict[str, Any]) -> None:
    """What FlashInfer-Bench's own model requires of a trace."""
    evaluation = trace["evaluation"]
    assert trace["definition"] and trace["solution"] and trace["workload"]["uuid"]
    assert all(isinstance(value, int) and value >= 0 for value in trace["workload"]["axes"].values())
    assert evaluation["environment"]["hardware"] and evaluation["timestamp"]
    assert all(isinstance(value, str) for value in evaluation["environment"]["libs"].values())
    assert (evaluation["correctness"] is not None) == (evaluation["status"] in ("PASSED", "INCORRECT_NUMERICAL"))
    assert (evaluation["performance"] is not None) == (evaluation["status"] == "PASSED")


def test_flashinfer_traces(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("a", cases=(case("as given"), case("65"))), text="a", problem=measurements.problem("a"))
        wrong = case("64", "wrong", max_abs_error=float("inf"), message="all wrong")
        ledger.append(judged("b", incorrect("all wrong"), cases=(wrong,)), text="b")
        ledger.append(judged("c", compile_error("no")), text="c")
        ledger.append(judged("d", error("slow"), reason=Reason.TIMEOUT), text="d")
        ledger.append(judged("e", correct(), cases=(case("64", runtime_us=None),)), text="e")
        done = transfer.export(ledger, "flashinfer", tmp_path / "t.jsonl")
    traces = lines(tmp_path / "t.jsonl")
    for trace in traces:
        trace_rules(trace)
    states = [trace["evaluation"]["status"] for trace in traces]
    assert states == ["PASSED", "PASSED", "INCORRECT_NUMERICAL", "COMPILE_ERROR", "TIMEOUT"]
    assert traces[0]["evaluation"]["performance"] == {
        "latency_ms": 0.03, "reference_latency_ms": 0.06, "speedup_factor": 2.0,
    }  # fmt: skip
    assert traces[2]["evaluation"]["correctness"]["max_absolute_error"] == "Infinity"
    assert traces[0]["evaluation"]["correctness"]["extra"]["samples"][0]["values_us"][0] == 30.0
    assert (done.rows, done.left_out) == (4, 1) and "not timed" in (done.note or "")
    assert traces[0]["workload"]["uuid"] != traces[1]["workload"]["uuid"]
    again = foreign.recognise((tmp_path / "t.jsonl").read_text())
    assert again[0] == "flashinfer" and again[1][0]["runtime_us"] == pytest.approx(30.0)


def test_nvbench_json(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as ledger:
        ledger.append(judged("x", incorrect("wrong"), samples=()), text="x")
        done = transfer.export(ledger, "nvbench", tmp_path / "out.json")
    root = json.loads((tmp_path / "out.json").read_text())
    assert done.rows == 1 and done.left_out == 1
    assert root["devices"] == [{"id": 0, "name": "Test Card", "uuid": "GPU-test"}]
    state = root["benchmarks"][0]["states"][0]
    tags = {summary["tag"]: summary["data"] for summary in state["summaries"]}
    assert float(tags["nv/cold/time/gpu/mean"][0]["value"]) == pytest.approx(30.5625e-6)
    assert float(tags["nv/cold/sm_clock_rate/mean"][0]["value"]) == pytest.approx(1.9725e9)
    binary = {item["name"]: item["value"] for item in tags["nv/json/bin:nv/cold/sample_times"]}
    raw = (tmp_path / binary["filename"]).read_bytes()
    assert struct.unpack("<10f", raw)[0] == pytest.approx(30e-6) and binary["size"] == "10"
    assert foreign.recognise((tmp_path / "out.json").read_text())[0] == "nvbench"


def test_nothing_timed_gives_an_empty_nvbench_file(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.append(judged("x", correct(), samples=()), text="x")
        transfer.export(ledger, "nvbench", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["benchmarks"] == []


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ('{"1": {"compiled": true, "correctness": true, "runtime": 0.5, "ref_runtime": 1.0, "metadata":'
         ' {"hardware": "L40S"}}, "2": [{"compiled": false, "correctness": false, "runtime": -1.0}]}', "kernelbench",
         [("correct", 500.0, "L40S"), ("compile_error", None, None)]),
        ('{"kernel": "k", "status": "correct", "runtime_us": 2.5, "card": "H100"}\n', "jsonl",
         [("correct", 2.5, "H100")]),
        ("file,kernel,status,runtime_us,card\na.py,k,correct,3.5,A100\n", "csv", [("correct", 3.5, "A100")]),
        ("kernel\truntime_us\tstatus\nk\t4.5\tcorrect\n", "csv", [("correct", 4.5, None)]),
        ('{"definition": "d", "solution": "s", "workload": {}, "evaluation": {"status": "REWARD_HACK", "environment":'
         ' {"hardware": "B200"}}}', "flashinfer", [("incorrect", None, "B200")]),
    ],
)  # fmt: skip
def test_foreign_results_are_recognised(text: str, form: str, expected: list[Any]) -> None:
    found, records = foreign.recognise(text)
    assert found == form
    assert [(record["status"], record.get("runtime_us"), record.get("card")) for record in records] == expected


@pytest.mark.parametrize("text", ["", "hello", "[1, 2]", "{}", '{"a": 1}', "a,b\n1,2\n", "\x00\xff" * 50])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(foreign.CannotImport):
        foreign.recognise(text)


def test_an_imported_row_is_chained_and_never_a_verdict(tmp_path: Path) -> None:
    source = tmp_path / "results.jsonl"
    source.write_text('{"kernel": "k", "file": "/p/kernel.py", "status": "correct", "runtime_us": 0.001}\n')
    with filled(tmp_path, 3) as ledger:
        foreign.import_file(ledger, source)
        assert ledger.last_seq() == 3 and ledger.verify().state == "intact"
        assert all(row.runtime_us == 30.0 for row in ledger.rows(kernel="k"))
        assert len(ledger.map().nodes) == 3


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with filled(tmp_path, 1) as ledger, pytest.raises(transfer.CannotExport, match="jsonl, csv, parquet"):
        transfer.export(ledger, "xml", tmp_path / "out")
