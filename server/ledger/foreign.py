"""Owns reading other people's results into foreign rows: each line of theirs becomes evidence, never a verdict of ours.

Understands our own JSONL, FlashInfer-Bench and SOL-ExecBench traces, KernelBench's eval_results.json, nvbench JSON, any
benchmark.csv of ours, and a plain CSV, TSV or JSONL with recognisable columns. Never runs anything that it reads.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.ledger.chain import Value
from server.ledger.store import Ledger

MOST_BYTES = 512 << 20
"""A larger file is refused: results are small, and this is read into memory."""


class CannotImport(Exception):
    """The file cannot be understood; the message says which forms are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did."""

    format: str
    rows: int
    skipped: int
    """Rows that are in the ledger already, from the same source."""


def import_file(ledger: Ledger, path: Path) -> Imported:
    """Read `path` into foreign rows. Raises CannotImport, OSError."""
    if path.stat().st_size > MOST_BYTES:
        raise CannotImport(f"{path.name} is larger than {MOST_BYTES >> 20} MiB")
    raw = path.read_bytes()
    form, records = recognise(raw.decode("utf-8-sig", "replace"))
    rows = skipped = 0
    for record in records:
        values = _values(record, source=path.name, form=form)
        if _known(ledger, values):
            skipped += 1
        else:
            ledger.add_foreign(values)
            rows += 1
    return Imported(format=form, rows=rows, skipped=skipped)


def recognise(text: str) -> tuple[str, list[dict[str, Any]]]:
    """(format, records with our column names where they are known and 'body' with the whole line)."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict) and "benchmarks" in whole and "devices" in whole:
        return "nvbench", list(_nvbench(whole))
    if isinstance(whole, dict) and _is_kernelbench(whole):
        return "kernelbench", list(_kernelbench(whole))
    lines = [whole] if isinstance(whole, dict) else whole if isinstance(whole, list) else list(_lines(text))
    if lines and all(isinstance(line, dict) for line in lines):
        return _recognise_lines(lines)
    try:
        tabs = "\t" in text.split("\n", 1)[0]
        table = list(csv.DictReader(io.StringIO(text), delimiter="\t" if tabs else ","))
    except csv.Error:
        table = []
    if table and "runtime_us" in table[0] and "kernel" in table[0]:
        return "csv", [_plain(row) for row in table]
    raise CannotImport(
        "not a form that is known: our JSONL or CSV, FlashInfer traces, KernelBench results, nvbench JSON"
    )


def _recognise_lines(lines: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    if "odyssey_ledger" in lines[0]:
        rows = [
            line["values"] for line in lines[1:] if line.get("kind") == "rows" and isinstance(line.get("values"), dict)
        ]
        return "odyssey", [_odyssey(row) for row in rows]
    if any("evaluation" in line and "definition" in line for line in lines):
        return "flashinfer", [_flashinfer(line) for line in lines if isinstance(line.get("evaluation"), dict)]
    if all("kernel" in line and ("runtime_us" in line or "status" in line) for line in lines):
        return "jsonl", [_plain(line) for line in lines]
    raise CannotImport("JSON, but of no form that is known")


def _lines(text: str) -> Iterator[Any]:
    for line in text.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                return


def _odyssey(row: dict[str, Any]) -> dict[str, Any]:
    names = ("file", "kernel", "kernel_sha", "status", "speedup", "runtime_us", "ref_runtime_us", "card")
    return {**{name: row.get(name) for name in names}, "body": row}


def _flashinfer(trace: dict[str, Any]) -> dict[str, Any]:
    evaluation = trace["evaluation"]
    performance = evaluation.get("performance") or {}
    words = {"PASSED": "correct", "COMPILE_ERROR": "compile_error", "INCORRECT_NUMERICAL": "incorrect",
             "INCORRECT_SHAPE": "incorrect", "INCORRECT_DTYPE": "incorrect", "REWARD_HACK": "incorrect"}  # fmt: skip
    latency, reference = performance.get("latency_ms"), performance.get("reference_latency_ms")
    return {
        "file": str(trace.get("definition")), "kernel": str(trace.get("solution")),
        "status": words.get(str(evaluation.get("status")), "error"), "speedup": performance.get("speedup_factor"),
        "runtime_us": latency * 1000 if latency else None, "ref_runtime_us": reference * 1000 if reference else None,
        "card": (evaluation.get("environment") or {}).get("hardware"), "body": trace,
    }  # fmt: skip


def _is_kernelbench(whole: dict[str, Any]) -> bool:
    """{"1": {"correctness": bool, "compiled": bool, "runtime": float, ...} or a list of such, ...}"""
    samples = [sample for value in whole.values() for sample in (value if isinstance(value, list) else [value])]
    return bool(samples) and all(isinstance(sample, dict) and "compiled" in sample for sample in samples)


def _kernelbench(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for problem, value in whole.items():
        for sample in value if isinstance(value, list) else [value]:
            status = (
                "correct" if sample.get("correctness") else "incorrect" if sample.get("compiled") else "compile_error"
            )
            metadata = sample.get("metadata")
            yield {
                "file": f"problem {problem}", "kernel": f"sample {sample.get('sample_id', 0)}", "status": status,
                "runtime_us": _milliseconds(sample.get("runtime")),
                "ref_runtime_us": _milliseconds(sample.get("ref_runtime")),
                "card": metadata.get("hardware") if isinstance(metadata, dict) else None, "body": sample,
            }  # fmt: skip


def _milliseconds(value: Any) -> float | None:
    """KernelBench writes milliseconds, and -1.0 for 'not measured'."""
    return value * 1000 if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None


def _nvbench(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cards = {device.get("id"): device.get("name") for device in root["devices"] if isinstance(device, dict)}
    for bench in root["benchmarks"]:
        for state in bench.get("states", ()):
            found = {s.get("tag"): s.get("data", ()) for s in state.get("summaries") or ()}
            data = found.get("nv/cold/time/gpu/median") or found.get("nv/cold/time/gpu/mean") or ()
            seconds = next((float(item["value"]) for item in data if item.get("name") == "value"), None)
            yield {
                "file": str(bench.get("name")), "kernel": str(state.get("name")),
                "status": "error" if state.get("is_skipped") else "correct",
                "runtime_us": seconds * 1e6 if seconds is not None else None, "card": cards.get(state.get("device")),
                "body": state,
            }  # fmt: skip


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A line that uses our names already."""
    record: dict[str, Any] = {
        name: row.get(name) or None for name in ("file", "kernel", "kernel_sha", "status", "card")
    }
    for name in ("speedup", "runtime_us", "ref_runtime_us"):
        try:
            record[name] = float(row[name])
        except (KeyError, TypeError, ValueError):
            record[name] = None
    return {**record, "body": row}


def _values(record: dict[str, Any], *, source: str, form: str) -> dict[str, Value]:
    body = json.dumps(record["body"], sort_keys=True, default=str)
    return {
        "source": source, "source_format": form, "source_sha": hashlib.sha256(body.encode()).hexdigest(),
        "file": str(record.get("file") or ""), "kernel": str(record.get("kernel") or ""),
        "kernel_sha": record.get("kernel_sha"), "status": str(record.get("status") or "unknown"),
        "speedup": record.get("speedup"), "runtime_us": record.get("runtime_us"),
        "ref_runtime_us": record.get("ref_runtime_us"), "card": record.get("card"), "body": body,
    }  # fmt: skip


def _known(ledger: Ledger, values: dict[str, Value]) -> bool:
    query = "select 1 from foreign_rows where source_sha = ? and source_format = ? limit 1"
    return ledger.db.execute(query, (values["source_sha"], values["source_format"])).fetchone() is not None
