"""Owns the sampling of stalls: where the warps of a call waited, by Proton's PC sampling. Never times and never judges.

Sampling and activity recording exclude each other in one process: this runs in a case of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from evalcore.facts import RawProfile
from evalcore.gpu.activity import RecorderError
from evalcore.gpu.figures import Call
from evalcore.gpu.proton import import_proton, read_tree
from evalcore.gpu.ring import Ring

STALL_PREFIX = "stalled_"
ISSUED = "selected"
"""The one reason that is no stall: the warp issued."""
MOST_LINES = 20
SAMPLED_CALLS = 50

_SCOPE = "odyssey.sampled"
_LINE = re.compile(r"^(?P<path>.+):(?P<line>\d+)@(?P<function>.*)$")


class Sampling:
    """A PC-sampling session: all calls in one scope, data by file."""

    def __init__(self, proton: Any, session: int, path: str) -> None:
        self._proton = proton
        self._session = session
        self._path = path

    def scope(self) -> contextlib.AbstractContextManager[object]:
        """Around one sampled call."""
        return self._proton.scope(_SCOPE)  # type: ignore[no-any-return]

    def finish(self) -> list[dict[str, Any]]:
        """End the session and read its tree."""
        try:
            self._proton.finalize(self._session)
            return read_tree(self._path + ".hatchet")
        except RuntimeError as problem:
            raise RecorderError(f"PC sampling gave no data: {problem}") from None


def start_sampling(scratch: str = "") -> Sampling:
    """Start PC sampling in this process. Raises RecorderError where Triton or the driver does not allow it."""
    proton, version = import_proton()
    path = os.path.join(tempfile.mkdtemp(prefix="odyssey-stalls-", dir=scratch or None), "stalls")
    old = tuple(version.split(".")[:2]) in (("3", "2"), ("3", "3"))
    how = {"backend": "cupti_pcsampling"} if old else {"backend": "cupti", "mode": "pcsampling"}
    try:
        session = proton.start(path, context="shadow", data="tree", **how)
    except (RuntimeError, ValueError, OSError) as problem:
        raise RecorderError(f"PC sampling did not start: {problem}") from None
    if session is None:
        raise RecorderError("Proton is switched off in this process")
    return Sampling(proton, int(session), path)


def sample_stalls(call: Call, ring: Ring, *, n: int = SAMPLED_CALLS, scratch: str = "") -> RawProfile:
    """Where the warps of `call` waited, by PC sampling over `n` calls. Only in a process whose clock, if any, retired.

    Lines are known for kernels that were loaded after this began, so call it before the candidate's first launch.
    Raises RecorderError where the driver does not allow sampling or this Triton cannot do it.
    """
    import torch

    sampling = start_sampling(scratch)
    try:
        for index in range(n):
            inputs = ring.next(index)
            with sampling.scope():
                call(inputs)
        torch.cuda.synchronize()
    finally:
        database = sampling.finish()
    return parse_stalls(database, _SCOPE)


def parse_stalls(database: Iterable[dict[str, Any]], prefix: str) -> RawProfile:
    """Proton's tree of samples into shares per stall reason and the lines where most samples lie."""
    reasons: dict[str, float] = {}
    lines: dict[tuple[str, int], dict[str, float]] = {}
    samples = 0.0
    for node, place in _sampled(database, prefix):
        samples += float(node.get("num_samples", 0))
        for metric, value in node.items():
            if not metric.startswith(STALL_PREFIX) or not value:
                continue
            reason = metric.removeprefix(STALL_PREFIX).lower()
            if reason == ISSUED:
                continue
            reasons[reason] = reasons.get(reason, 0.0) + float(value)
            if place is not None:
                at = lines.setdefault(place, {})
                at[reason] = at.get(reason, 0.0) + float(value)
    total = sum(reasons.values())
    if not total:
        raise RecorderError("the card took no samples of this call; it may be too short")
    shares = sorted(((reason, value / total) for reason, value in reasons.items()), key=lambda row: -row[1])
    worst = sorted(lines.items(), key=lambda row: -sum(row[1].values()))[:MOST_LINES]
    table = [
        {"path": path, "line": line, "share": sum(at.values()) / total, "reason": max(at, key=lambda each: at[each])}
        for (path, line), at in worst
    ]
    return RawProfile(
        profiler="proton pc sampling",
        stalls=tuple(shares),
        metrics={"stall_samples": samples, "stall_lines": table, "stall_origin": "measured by CUPTI PC sampling"},
    )


def _sampled(
    database: Iterable[dict[str, Any]], prefix: str
) -> Iterator[tuple[dict[str, Any], tuple[str, int] | None]]:
    """(metrics, place) of every node with samples below the scopes named by `prefix`."""
    stack = [(root, False) for root in database if "frame" in root]
    while stack:
        node, inside = stack.pop()
        name = str((node.get("frame") or {}).get("name", ""))
        inside = inside or name.startswith(prefix)
        metrics = node.get("metrics") or {}
        if inside and any(key.startswith(STALL_PREFIX) for key in metrics):
            found = _LINE.match(name)
            yield metrics, (found["path"], int(found["line"])) if found else None
        stack += [(child, inside) for child in node.get("children") or []]
