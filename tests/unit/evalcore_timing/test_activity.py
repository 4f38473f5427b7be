"""How a stream of device records is cut into calls."""

from __future__ import annotations

import pytest

from evalcore.gpu.activity import MAX_STRAY, Launch, RecorderError, check, cut, device_us
from evalcore.gpu.flush import FLUSH_KERNEL, MARK_KERNEL


def at(start_us: int, name: str, device: float = 1.0) -> Launch:
    return Launch(name=name, device_us=device, start_ns=start_us * 1000)


def test_what_lies_between_flush_and_marker_is_the_call() -> None:
    records = [
        at(0, "refill"),
        at(5, FLUSH_KERNEL, 40.0),
        at(50, "kernel", 31.0),
        at(90, "second", 2.0),
        at(100, MARK_KERNEL, 0.56),
        at(110, "refill"),
        at(115, FLUSH_KERNEL, 40.0),
        at(160, "kernel", 30.0),
        at(200, MARK_KERNEL, 0.54),
    ]
    got = cut(records)
    assert [device_us(call) for call in got.calls] == [33.0, 30.0]
    assert got.empty_us == (0.56, 0.54)
    assert [each.name for each in got.stray] == ["refill", "refill"]


def test_records_may_arrive_in_any_order() -> None:
    records = [at(100, MARK_KERNEL), at(50, "side stream", 7.0), at(5, FLUSH_KERNEL), at(49, "kernel", 3.0)]
    got = cut(records)
    assert [each.name for each in got.calls[0]] == ["kernel", "side stream"]


def test_a_call_without_work_is_an_empty_call() -> None:
    got = cut([at(0, FLUSH_KERNEL), at(9, MARK_KERNEL)])
    assert got.calls == ((),)


def test_work_after_the_marker_is_stray_and_in_no_call() -> None:
    """A candidate that hides work until the clock has stopped."""
    got = cut([at(0, FLUSH_KERNEL), at(5, "kernel"), at(9, MARK_KERNEL), at(12, "late", 500.0)])
    assert [each.name for each in got.calls[0]] == ["kernel"]
    assert [each.name for each in got.stray] == ["late"]


def test_a_call_that_was_cut_off_is_not_counted() -> None:
    got = cut([at(0, FLUSH_KERNEL), at(5, "kernel")])
    assert got.calls == ()


def test_strays_are_bounded() -> None:
    got = cut([at(index, "refill") for index in range(500)])
    assert len(got.stray) == MAX_STRAY


def test_a_forged_flush_drops_nothing() -> None:
    got = cut([at(0, FLUSH_KERNEL), at(5, "kernel", 30.0), at(40, FLUSH_KERNEL, 1.0), at(50, MARK_KERNEL)])
    assert device_us(got.calls[0]) == 31.0


def test_a_forged_marker_is_noticed() -> None:
    """A candidate that ends its own call early and works on."""
    got = cut([at(0, FLUSH_KERNEL), at(5, "k"), at(9, MARK_KERNEL), at(12, "rest", 500.0), at(600, MARK_KERNEL)])
    assert len(got.calls) == 1
    with pytest.raises(RecorderError, match="2 markers for 1"):
        check(got, 1)


def test_lost_calls_are_noticed() -> None:
    with pytest.raises(RecorderError, match="0 of 3"):
        check(cut([]), 3)
