"""Which CPUs a timed process is pinned to."""

from __future__ import annotations

from evalcore.gpu.cpus import pick_cpus


def test_near_cpus_first() -> None:
    assert pick_cpus(frozenset(range(192)), frozenset(range(96, 192)), 4, 0) == [96, 97, 98, 99]


def test_neighbouring_processes_take_other_cpus() -> None:
    allowed = frozenset(range(16))
    picked = [pick_cpus(allowed, frozenset(), 4, pid) for pid in (100, 101, 102, 103)]
    assert sorted(cpu for each in picked for cpu in each) == list(range(16))


def test_no_more_than_there_are() -> None:
    assert pick_cpus(frozenset({3, 5}), frozenset({9}), 8, 7) == [3, 5]
    assert pick_cpus(frozenset(), frozenset(), 8, 7) == []
