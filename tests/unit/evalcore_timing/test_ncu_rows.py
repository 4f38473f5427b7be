"""Reading ncu's CSV, as `ncu --csv --page raw --print-units base` prints it."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from benchmarks.timing import parse_ncu

TEXT = """==PROF== Connected to process 1
==PROF== Profiling "empty_kernel" - 0: 0%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Device","CC","gpu__time_duration.sum"
"","","","","","","","","","ns"
"0","1","python","h","empty_kernel","1","7","0","9.0","1,504.00"
"1","1","python","h","void at::native::vectorized_elementwise_kernel<4, F>(int, F)","1","7","0","9.0","31008"
==PROF== Disconnected
"""


def test_rows_in_order_in_microseconds() -> None:
    assert parse_ncu(TEXT) == [
        ("empty_kernel", 1.504),
        ("void at::native::vectorized_elementwise_kernel<4, F>(int, F)", 31.008),
    ]


def test_no_rows() -> None:
    assert parse_ncu("==ERROR== ERR_NVGPUCTRPERM") == []
