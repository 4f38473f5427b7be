"""Owns timed rows as an nvbench JSON document (form 1.0) with raw samples, for nvbench-compare-robust. Pure.

Seconds there, microseconds here; the conversion stands on the lines that need it.
"""

from __future__ import annotations

import statistics
import struct
from typing import Any

from server.ledger.columns import Row


def is_timed(row: Row) -> bool:
    """True where the candidate's device time was measured."""
    return bool(_candidate_samples(row.plain))


def document(rows: list[Row], folder: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(root object, file name -> bytes). `folder` is the name of the folder that the files will lie in."""
    cards = sorted({(row.card or "unknown", row.uuid or "") for row in rows})
    files: dict[str, bytes] = {}
    benchmarks = [_benchmark(index, row, cards, folder, files) for index, row in enumerate(rows)]
    version = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
    root = {
        "meta": {"argv": ["odyssey", "ledger", "export"], "version": {"json": version, "nvbench": version}},
        "devices": [{"id": index, "name": name, "uuid": uuid} for index, (name, uuid) in enumerate(cards)],
        "benchmarks": benchmarks,
    }
    return root, files


def _candidate_samples(body: dict[str, Any]) -> list[dict[str, Any]]:
    found = [s for s in body.get("samples", ()) if s.get("subject") == "candidate" and s.get("values_us")]
    on_device = [s for s in found if s.get("figure") == "device"]
    return on_device or [s for s in found if s.get("figure") == "graph"]


def _benchmark(
    index: int, row: Row, cards: list[tuple[str, str]], folder: str, files: dict[str, bytes]
) -> dict[str, Any]:
    device = cards.index((row.card or "unknown", row.uuid or ""))
    samples = _candidate_samples(row.plain)
    cases = [s.get("case") or "as given" for s in samples]
    values = [{"description": "", "input_string": case, "is_active": True, "value": case} for case in cases]
    return {
        "name": f"{row.file}::{row.kernel}",
        "index": index,
        "min_samples": 10,
        "devices": [device],
        "axes": [{"name": "Case", "type": "string", "flags": "", "values": values}],
        "states": [
            _state(device, case, s, f"{index}-{number}.bin", folder, files)
            for number, (case, s) in enumerate(zip(cases, samples, strict=True))
        ],
    }


def _state(
    device: int, case: str, samples: dict[str, Any], name: str, folder: str, files: dict[str, bytes]
) -> dict[str, Any]:
    seconds = [value / 1e6 for value in samples["values_us"]]
    files[name] = struct.pack(f"<{len(seconds)}f", *seconds)
    return {
        "name": f"Device={device} Case={case}",
        "device": device,
        "type_config_index": 0,
        "axis_values": [{"name": "Case", "type": "string", "value": case}],
        "is_skipped": False,
        "summaries": [_number(tag, value) for tag, value in _figures(seconds, samples).items()]
        + [_binary(f"{folder}/{name}", len(seconds))],
    }


def _figures(seconds: list[float], samples: dict[str, Any]) -> dict[str, float]:
    mean, median = statistics.fmean(seconds), statistics.median(seconds)
    figures = {"nv/cold/time/gpu/min": min(seconds), "nv/cold/time/gpu/max": max(seconds),
               "nv/cold/time/gpu/mean": mean, "nv/cold/time/gpu/median": median}  # fmt: skip
    if len(seconds) > 1:
        spread = statistics.stdev(seconds)
        low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
        figures |= {
            "nv/cold/time/gpu/stdev/absolute": spread, "nv/cold/time/gpu/stdev/relative": spread / mean,
            "nv/cold/time/gpu/q1": low, "nv/cold/time/gpu/q3": high, "nv/cold/time/gpu/iqr/absolute": high - low,
            "nv/cold/time/gpu/iqr/relative": (high - low) / median,
        }  # fmt: skip
    clocks = samples.get("sm_clock_mhz") or ()
    if clocks:
        figures["nv/cold/sm_clock_rate/mean"] = statistics.fmean(clocks) * 1e6
    return figures


def _number(tag: str, value: float) -> dict[str, Any]:
    return {
        "tag": tag,
        "name": tag.rsplit("/", 1)[-1],
        "data": [{"name": "value", "type": "float64", "value": repr(value)}],
    }


def _binary(path: str, count: int) -> dict[str, Any]:
    data = [
        {"name": "filename", "type": "string", "value": path},
        {"name": "size", "type": "int64", "value": str(count)},
    ]
    return {
        "tag": "nv/json/bin:nv/cold/sample_times",
        "name": "Samples Times File",
        "hint": "file/sample_times",
        "data": data,
    }
