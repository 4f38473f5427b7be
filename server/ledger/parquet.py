"""Owns writing rows as Parquet; the only module that imports pyarrow (extra `parquet`). Never holds a whole ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import IO, Any

from server.ledger.columns import Row

BATCH_ROWS = 1000

PLAIN = (
    "seq", "at", "file", "kernel", "kernel_sha", "problem_id", "problem_sha", "format", "mode", "cause", "author",
    "intent", "status", "reason", "error", "speedup", "runtime_us", "ref_runtime_us", "regime", "floor_us", "card",
    "uuid", "driver", "torch", "triton", "python", "interpreted", "evaluator_sha", "evaluator_md5", "git_sha",
    "git_dirty", "judge", "foreign", "body",
)  # fmt: skip


def write(out: IO[bytes], rows: Iterable[Row], text_of: Callable[[str], str | None]) -> int:
    """Write rows, their texts and the candidate's device samples (list of microseconds). Returns the number of rows."""
    import pyarrow
    import pyarrow.parquet

    kinds = {"seq": pyarrow.int64(), "speedup": pyarrow.float64(), "runtime_us": pyarrow.float64(),
             "ref_runtime_us": pyarrow.float64(), "floor_us": pyarrow.float64(), "interpreted": pyarrow.bool_(),
             "git_dirty": pyarrow.bool_(), "foreign": pyarrow.bool_()}  # fmt: skip
    fields = [(name, kinds.get(name, pyarrow.string())) for name in PLAIN]
    fields += [("parents", pyarrow.list_(pyarrow.string())), ("samples_us", pyarrow.list_(pyarrow.float64()))]
    schema = pyarrow.schema([*fields, ("text", pyarrow.string())])
    count = 0
    with pyarrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            records = [_record(row, text_of) for row in batch]
            writer.write_table(pyarrow.Table.from_pylist(records, schema=schema))
            count += len(batch)
    return count


def _batches(rows: Iterable[Row]) -> Iterable[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _record(row: Row, text_of: Callable[[str], str | None]) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(row, name) for name in PLAIN}
    samples = json.loads(row.body).get("samples", ())
    timed = [s["values_us"] for s in samples if s.get("subject") == "candidate" and s.get("figure") == "device"]
    text = text_of(row.kernel_sha)
    record["parents"] = list(row.parents)
    record["samples_us"] = timed[0] if timed else None
    record["text"] = text.encode("utf-8", "replace").decode() if text is not None else None
    return record
