"""Owns a row as FlashInfer-Bench traces, one for each case. Pure. Never invents a figure: a case that the format
cannot hold without one is left out.
"""

from __future__ import annotations

import uuid
from typing import Any

from server.ledger.columns import Row

NAMESPACE = uuid.UUID("6f647973-7365-5f6c-8564-676572000000")
"""Workload ids are made from problem and case, so that the same workload has the same id in every export."""


def traces(row: Row, input_names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Traces of one row, [] where nothing of it fits. Units there are milliseconds."""
    body = row.plain
    cases = body.get("cases") or [_whole(row)]
    return [trace for case in cases if (trace := _trace(row, body, case, input_names)) is not None]


def _whole(row: Row) -> dict[str, Any]:
    """A row without cases, as one case."""
    status = {"correct": "right", "incorrect": "wrong"}.get(row.status, "error")
    return {"name": "as given", "sizes": {}, "status": status, "runtime_us": row.runtime_us,
            "ref_runtime_us": row.ref_runtime_us}  # fmt: skip


def _trace(row: Row, body: dict[str, Any], case: dict[str, Any], input_names: tuple[str, ...]) -> dict[str, Any] | None:
    if case.get("status") == "skipped":
        return None
    evaluation = _evaluation(row, body, case)
    if evaluation is None:
        return None
    return {
        "definition": "".join(c if c.isalnum() or c in "-_." else "_" for c in row.problem_id).strip("_") or "problem",
        "workload": {
            "axes": case.get("sizes") or {},
            "inputs": {name: {"type": "random"} for name in input_names},
            "uuid": str(uuid.uuid5(NAMESPACE, f"{row.problem_sha}/{case.get('name')}")),
        },
        "solution": f"{row.kernel}-{row.kernel_sha[:12]}",
        "evaluation": evaluation,
    }


def _evaluation(row: Row, body: dict[str, Any], case: dict[str, Any]) -> dict[str, Any] | None:
    status = _status(row, case)
    latency: Any = case.get("runtime_us")
    reference: Any = case.get("ref_runtime_us")
    if status == "PASSED" and not (latency and reference):
        return None
    libraries = {name: value for name in ("torch", "triton", "python", "driver") if (value := getattr(row, name))}
    made: dict[str, Any] = {
        "status": status,
        "environment": {"hardware": row.card or "CPU (interpreted)", "libs": libraries},
        "timestamp": row.at or "unknown",
        "log": case.get("message") or row.error or "",
        "correctness": None,
        "performance": None,
    }
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        made["correctness"] = {
            "max_relative_error": _number(case.get("max_rel_error")),
            "max_absolute_error": _number(case.get("max_abs_error")),
            "extra": _extra(row, body, case),
        }
    if status == "PASSED":
        made["performance"] = {
            "latency_ms": latency / 1000,
            "reference_latency_ms": reference / 1000,
            "speedup_factor": reference / latency,
        }
    return made


def _status(row: Row, case: dict[str, Any]) -> str:
    if case.get("status") == "right":
        return "PASSED"
    if row.status == "compile_error":
        return "COMPILE_ERROR"
    if case.get("status") == "wrong" and case.get("max_abs_error") is not None:
        return "INCORRECT_NUMERICAL"
    return "TIMEOUT" if row.reason == "timeout" else "RUNTIME_ERROR"


def _number(value: Any) -> Any:
    """The format's numbers; what was not measured is NaN there, infinities are words."""
    if value is None:
        return "NaN"
    word = value.get("$float") if isinstance(value, dict) else None
    if word is not None:
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[word]
    return value


def _extra(row: Row, body: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """What the format has no field for and a reader needs to believe a number."""
    return {
        "odyssey_seq": row.seq, "kernel_sha256": row.kernel_sha, "problem_sha256": row.problem_sha,
        "evaluator_sha256": row.evaluator_sha, "evaluator_md5": row.evaluator_md5, "card_uuid": row.uuid,
        "seeds": case.get("seeds") or [],
        "tolerance": {name: case.get(name) for name in ("atol", "rtol", "tolerance_origin")},
        "isolation": body.get("environment", {}).get("isolation"), "timing": body.get("timing"),
        "samples": [s for s in body.get("samples", ()) if s.get("case") in ("", case.get("name"))],
        "parents": list(row.parents), "author": row.author, "ab": body.get("ab"),
    }  # fmt: skip
