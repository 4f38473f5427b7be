"""Every question has an answer where there is no library, and None is not zero."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

from evalcore.gpu import nvml
from evalcore.gpu.nvml import Card, CardState, Nvml, family


def test_an_absent_library_answers_nothing() -> None:
    absent = Nvml("libodyssey-is-not-nvml.so.1")
    assert not absent
    assert absent.count() == 0
    assert absent.driver() is None
    assert absent.card(0) is None
    assert absent.card_by_uuid("GPU-1") is None


def test_a_library_without_nvmls_functions_answers_nothing() -> None:
    assert not Nvml("libc.so.6")


def test_only_faults_of_the_card_disturb_a_sample() -> None:
    assert CardState(throttle=("power cap", "idle")).disturbed is None
    assert CardState(throttle=("power cap", "thermal (software)")).disturbed == "thermal (software)"


def test_family_is_this_process_and_its_children() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        found = family()
        assert os.getpid() in found
        assert child.pid in found
        assert os.getppid() not in found
        assert os.getpid() in family(os.getppid())
    finally:
        child.communicate()


class PlayedNvml:
    """The functions that the driver offers, with fixed answers."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, number: Any, found: Any) -> int:
        number._obj.value = len(self.pids)
        for place, pid in enumerate(self.pids):
            found[place].pid = pid
        return 0

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any, bits: Any) -> int:
        bits._obj.value = 0x44
        return 0

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int, clock: Any) -> int:
        clock._obj.value = 1980
        return 0


def card(pids: list[int]) -> Card:
    return Card(PlayedNvml(pids), ctypes.c_void_p(), 0, None)  # type: ignore[arg-type]


def test_an_empty_process_list_is_not_said_to_be_no_process() -> None:
    assert card([]).foreign_processes() is None


def test_our_own_processes_are_no_strangers() -> None:
    assert card([os.getpid(), 7]).foreign_processes() == 1
    assert card([5, 6, 7]).foreign_processes(frozenset({5, 6})) == 1
    assert card([5, 6]).foreign_processes(frozenset({5, 6})) == 0


def test_state_names_the_reasons() -> None:
    assert card([]).state() == CardState(sm_clock_mhz=1980, throttle=("power cap", "thermal (hardware)"))


def test_a_function_that_an_old_driver_lacks_is_none() -> None:
    assert card([]).busy_ratio() is None


def test_words_are_unique_bits() -> None:
    bits = [bit for bit, _word in nvml.THROTTLE_WORDS]
    assert len(set(bits)) == len(bits)
    assert all(bit & (bit - 1) == 0 for bit in bits)
