"""Owns what stands in which column: Measurement -> values, and the Row that queries give back. Never runs SQL."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalcore import wire
from evalcore.jobs import Measurement
from server.ledger.chain import Value

ROW_COLUMNS_1 = (
    "seq", "at", "file", "kernel", "kernel_sha", "problem_id", "problem_sha", "format", "mode", "cause", "author",
    "intent", "parents", "status", "reason", "error", "speedup", "runtime_us", "ref_runtime_us", "regime", "floor_us",
    "card", "uuid", "driver", "torch", "triton", "python", "interpreted", "evaluator_sha", "evaluator_md5",
    "isolation", "flags", "git_sha", "git_dirty", "seed", "body",
)  # fmt: skip
"""The columns of `rows` in the first form, in hashing order. Never changed: old entries are hashed by it."""

ROW_COLUMNS_2 = (*ROW_COLUMNS_1, "judge", "host", "seeds", "sm_clock_min_mhz", "sm_clock_max_mhz", "warnings")

FORMS: dict[int, dict[str, tuple[str, ...]]] = {
    1: {
        "texts": ("id", "sha", "text"),
        "rows": ROW_COLUMNS_1,
        "burials": ("id", "at", "sha", "reason"),
        "pins": ("id", "at", "row_seq"),
    },
    2: {
        "texts": ("id", "sha", "text"),
        "rows": ROW_COLUMNS_2,
        "burials": ("id", "at", "sha", "reason"),
        "pins": ("id", "at", "row_seq"),
        "problems": ("id", "sha", "body"),
        "foreign_rows": (
            "id", "at", "source", "source_format", "source_sha", "file", "kernel", "kernel_sha", "status", "speedup",
            "runtime_us", "ref_runtime_us", "card", "body",
        ),
    },
}  # fmt: skip
"""form -> table -> columns in hashing order. A migration that adds a column adds a form; old forms stay."""

FORM = 2
"""The form that new entries are written in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One judged text: the plain columns, and the whole Measurement behind `.measurement`."""

    seq: int
    at: str
    file: str
    kernel: str
    kernel_sha: str
    problem_id: str
    problem_sha: str
    format: str
    mode: str
    cause: str
    author: str
    intent: str
    parents: tuple[str, ...]
    status: str
    reason: str | None
    error: str | None
    speedup: float | None
    runtime_us: float | None
    ref_runtime_us: float | None
    regime: str | None
    floor_us: float | None
    card: str | None
    uuid: str | None
    driver: str | None
    torch: str | None
    triton: str | None
    python: str
    interpreted: bool
    evaluator_sha: str
    evaluator_md5: str
    git_sha: str | None
    git_dirty: bool | None
    judge: str
    """'odyssey', or the task's own evaluator: 'evaluator/script', 'evaluator/gpumode', ..."""
    body: str
    """The Measurement as JSON."""
    foreign: bool
    """True where the row was not written with this user's key: evidence to read, never a verdict."""

    @property
    def measurement(self) -> Measurement:
        """The whole record, decoded now. Raises evalcore.wire.WireError where a stranger's program wrote it."""
        return wire.decode(Measurement, json.loads(self.body))

    @property
    def plain(self) -> dict[str, Any]:
        """The body as plain JSON values, also where it does not decode."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}  # a stranger's row: verify says what is wrong with it
        return value if isinstance(value, dict) else {}


MAY_LACK = frozenset(("reason", "error", "regime", "card", "uuid", "driver", "torch", "triton", "git_sha", "judge"))

READ_COLUMNS = (
    "seq", "at", "file", "kernel", "kernel_sha", "problem_id", "problem_sha", "format", "mode", "cause", "author",
    "intent", "parents", "status", "reason", "error", "speedup", "runtime_us", "ref_runtime_us", "regime", "floor_us",
    "card", "uuid", "driver", "torch", "triton", "python", "interpreted", "evaluator_sha", "evaluator_md5", "git_sha",
    "git_dirty", "judge", "body",
)  # fmt: skip


def read_row(values: tuple[Any, ...], *, foreign: bool) -> Row:
    """A Row from values in the order of READ_COLUMNS. A stranger's file may hold anything: types are made to fit."""
    given = {name: fitting(name, value) for name, value in zip(READ_COLUMNS, values, strict=True)}
    given["parents"] = parents_in(given["parents"])
    given["judge"] = given["judge"] or "odyssey"
    return Row(**given, foreign=foreign)


def fitting(name: str, value: Any) -> Any:
    """A stored value as a column of that name may be: a stranger's file may hold anything in it."""
    if name in REAL:
        return float(value) if isinstance(value, (int, float)) else None
    if name == "seq":
        return int(value)
    if name in ("interpreted", "git_dirty"):
        return None if value is None and name == "git_dirty" else bool(value)
    if isinstance(value, str):
        return value
    if value is None:
        return None if name in MAY_LACK else ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def parents_in(text: Any) -> tuple[str, ...]:
    """The shas in a JSON list, () for anything else."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, TypeError):
        return ()
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def judge_of(measurement: Measurement) -> str:
    """Whose verdict it is: the task's own evaluator says so in its format name."""
    return measurement.format if measurement.format.startswith("evaluator/") else "odyssey"


def row_values(measurement: Measurement, *, intent: str) -> dict[str, Value]:
    """Column name -> stored value of one row, in the newest form; the writer sets `seq` and `parents` last."""
    result, where = measurement.result, measurement.environment
    clocks = [mhz for samples in measurement.samples for mhz in samples.sm_clock_mhz]
    seeds = sorted({measurement.seed, *(seed for case in measurement.cases for seed in case.seeds)})
    values: dict[str, Any] = {
        "seq": 0,
        "at": measurement.measured_at,
        "intent": intent,
        "parents": "[]",
        "status": result.status.value,
        "reason": measurement.reason.value if measurement.reason else None,
        "error": result.error,
        "speedup": result.speedup,
        "runtime_us": result.runtime_us,
        "ref_runtime_us": result.ref_runtime_us,
        "mode": measurement.mode.value,
        "cause": measurement.cause.value,
        "interpreted": int(where.interpreted),
        "isolation": dump(where.isolation),
        "flags": dump(where.flags),
        "git_dirty": None if measurement.git_dirty is None else int(measurement.git_dirty),
        "body": dump(measurement),
        "judge": judge_of(measurement),
        "seeds": dump(seeds),
        "sm_clock_min_mhz": min(clocks, default=None),
        "sm_clock_max_mhz": max(clocks, default=None),
        "warnings": dump([flag.code for flag in measurement.flags]),
    }
    for name in ("file", "kernel", "kernel_sha", "problem_id", "problem_sha", "format", "author", "regime", "floor_us",
                 "git_sha", "seed"):  # fmt: skip
        values[name] = getattr(measurement, name)
    for name in ("card", "uuid", "driver", "torch", "triton", "python", "evaluator_sha", "evaluator_md5", "host"):
        values[name] = getattr(where, name)
    return {name: storable(name, values[name]) for name in ROW_COLUMNS_2}


REAL = frozenset(("speedup", "runtime_us", "ref_runtime_us", "floor_us"))


def storable(name: str, value: Any) -> Value:
    """The value as SQLite will give it back, so that the hash is over what is really stored."""
    if value is None:
        return None
    if name in REAL:
        number = float(value)
        return None if number != number else number
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def dump(value: Any) -> str:
    """Compact JSON of plain values and our dataclasses, as wire.encode makes it, several times as fast.

    ASCII, so that no byte of it is ever in doubt. NaN and infinities (which JSON does not have) take wire's slow way.
    """
    try:
        return _JSON.encode(value)
    except ValueError:
        return json.dumps(wire.encode(value), separators=(",", ":"))


_FIELDS: dict[type, tuple[str, ...]] = {}


def _shallow(value: Any) -> dict[str, Any]:
    kind = type(value)
    names = _FIELDS.get(kind)
    if names is None:
        if not dataclasses.is_dataclass(kind):
            raise TypeError(f"a {kind.__name__} cannot be stored")
        names = _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind))
    return {name: getattr(value, name) for name in names}


_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=_shallow)


def ordered(form: int, table: str, values: Mapping[str, Value]) -> list[Value]:
    """Values in hashing order."""
    return [values[name] for name in FORMS[form][table]]
