"""The given types keep exactly their given fields."""

from __future__ import annotations

from dataclasses import fields

from evalcore.results import BottleneckType, EvalResult, ProfileData, Status


def test_eval_result_has_exactly_the_given_fields() -> None:
    assert [f.name for f in fields(EvalResult)] == [
        "status", "correct", "speedup", "runtime_us", "ref_runtime_us", "profile", "error",
    ]  # fmt: skip
    assert {s.value for s in Status} == {"correct", "compile_error", "incorrect", "error"}


def test_profile_data_has_exactly_the_given_fields() -> None:
    assert [f.name for f in fields(ProfileData)] == [
        "bottleneck_type", "roofline_position", "cache_efficiency", "occupancy", "bandwidth_utilization",
        "compute_utilization", "top_stalls", "raw_metrics",
    ]  # fmt: skip
    assert {b.value for b in BottleneckType} == {"compute_bound", "memory_bound", "latency_bound"}
    empty = ProfileData()
    assert all(getattr(empty, f.name) is None for f in fields(ProfileData)[:6]), "not measured is None, never zero"
