"""Occupancy against values worked out by hand after NVIDIA's calculator, and the reported peaks."""

from __future__ import annotations

import pytest

from evalcore.facts import KernelFacts
from evalcore.gpu.activity import Launch
from evalcore.gpu.arch_limits import ARCH_LIMITS, peak_tflops, theoretical_occupancy
from evalcore.gpu.kernel_profile import from_launches, launched_kernels, with_occupancy


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "want"),
    [
        ("sm_90", 256, 32, 0, 1.0),  # 8 warps, 2048 threads: 8 blocks
        ("sm_90", 256, 64, 0, 0.5),  # 64 * 32 = 2048 a warp: 32 warps
        ("sm_90", 256, 255, 0, 0.125),  # 8192 a warp: 8 warps
        ("sm_90", 128, 168, 0, 12 / 64),  # 5376 -> 12 warps (a multiple of 4)
        ("sm_90", 128, 32, 100 * 1024, 2 * 4 / 64),  # 101 KiB a block of 228
        ("sm_90", 128, 32, 227 * 1024, 4 / 64),  # one block of 228 KiB
        ("sm_90", 32, 16, 0, 0.5),  # 32 blocks of one warp
        ("sm_90", 1024, 64, 0, 0.5),
        ("sm_80", 128, 32, 40 * 1024, 16 / 64),  # 41 KiB: 4 blocks of 164
        ("sm_89", 256, 40, 0, 1.0),  # 1536 threads: 6 blocks of 8 warps = 48
        ("sm_75", 1024, 64, 0, 1.0),
        ("sm_90", 1024, 128, 0, 0.0),  # 16 warps of registers for a block of 32: it cannot launch
    ],
)
def test_occupancy(arch: str, threads: int, registers: int, shared: int, want: float) -> None:
    assert theoretical_occupancy(arch, threads=threads, registers=registers, shared_bytes=shared) == pytest.approx(want)


def test_unknown_architectures_have_no_occupancy() -> None:
    assert theoretical_occupancy("sm_42", threads=128, registers=32, shared_bytes=0) is None
    assert peak_tflops("sm_42", sm_count=1, clock_mhz=1) == ()


def test_unknown_parts_are_left_out() -> None:
    assert theoretical_occupancy("sm_90", threads=256, registers=None, shared_bytes=None) == 1.0


def test_peaks_follow_sms_and_clock() -> None:
    peaks = dict(peak_tflops("sm_90", sm_count=132, clock_mhz=1000))
    assert peaks["float32"] == pytest.approx(132 * 256 * 1e9 / 1e12)
    assert peaks["float16"] == 16 * peaks["float32"]
    assert peaks["tf32"] == peaks["float16"] / 2


def test_every_architecture_has_the_common_dtypes() -> None:
    for arch, limits in ARCH_LIMITS.items():
        assert {"float32", "float64", "float16", "bfloat16"} <= {dtype for dtype, _ops in limits.ops_per_clock}, arch


def launch(name: str, device: float, start_us: int, registers: int = 32) -> Launch:
    return Launch(
        name=name,
        device_us=device,
        start_ns=start_us * 1000,
        registers=registers,
        grid=(64, 1, 1),
        block=(256, 1, 1),
        shared_bytes=0,
    )


def test_a_profile_sums_by_kernel_and_keeps_the_span() -> None:
    calls = [
        (launch("a", 3.0, 10), launch("b", 1.0, 20), launch("a", 3.0, 30)),
        (launch("a", 5.0, 110), launch("b", 1.0, 120), launch("a", 3.0, 130)),
    ]
    profile = from_launches(calls, "cupti")
    assert profile.kernels == (("a", 4, 14.0), ("b", 2, 2.0))
    assert profile.metrics["span_us"] == 23.0
    assert profile.metrics["calls"] == 2


def test_launched_kernels_carry_what_the_driver_recorded() -> None:
    calls = [(launch("a", 3.0, 10), Launch(name="[memcpy]", device_us=1.0)), (launch("a", 3.0, 20),)]
    (facts,) = launched_kernels(calls, "sm_90")
    assert (facts.name, facts.registers, facts.warps, facts.launches) == ("a", 32, 8, 2)
    assert facts.theoretical_occupancy == 1.0
    assert facts.origin == "recorded launch"


def test_occupancy_is_added_only_where_it_is_missing() -> None:
    given = KernelFacts(name="k", registers=64, warps=8, shared_bytes=0)
    known = KernelFacts(name="k", registers=64, warps=8, theoretical_occupancy=0.25)
    bare = KernelFacts(name="k")
    shares = [each.theoretical_occupancy for each in with_occupancy([given, known, bare], "sm_90")]
    assert shares == [0.5, 0.25, None]
