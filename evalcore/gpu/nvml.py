"""Owns what NVML says about a card: names, limits, clocks, throttle reasons, other processes. Never calls cuInit.

By ctypes on libnvidia-ml.so.1, so that no Python package is needed. Every question has the answer None where the
library, the card or the driver does not give one; nothing here raises because of that.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

_SUCCESS = 0
_CLOCK_SM = 1
_CLOCK_MEMORY = 2

THROTTLE_WORDS: tuple[tuple[int, str], ...] = (
    (0x0000000000000001, "idle"),
    (0x0000000000000002, "application clocks"),
    (0x0000000000000004, "power cap"),
    (0x0000000000000008, "hardware slowdown"),
    (0x0000000000000010, "sync boost"),
    (0x0000000000000020, "thermal (software)"),
    (0x0000000000000040, "thermal (hardware)"),
    (0x0000000000000080, "power brake"),
    (0x0000000000000100, "display clocks"),
)
"""Bits of nvmlDeviceGetCurrentClocksEventReasons."""

DISTURBING = frozenset({"hardware slowdown", "thermal (software)", "thermal (hardware)", "power brake"})
"""Reasons for which a sample is discarded. A power cap is how a card normally runs under load; it is only noted."""


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardState:
    """One look at a card."""

    sm_clock_mhz: int | None = None
    throttle: tuple[str, ...] = ()

    @property
    def disturbed(self) -> str | None:
        """The reason why a sample taken now is not to be used, or None."""
        found = [word for word in self.throttle if word in DISTURBING]
        return ", ".join(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What does not change while a process runs."""

    index: int
    name: str | None = None
    uuid: str | None = None
    driver: str | None = None
    arch: str | None = None
    """'sm_90'."""
    memory_bytes: int | None = None
    memory_bus_bits: int | None = None
    max_sm_clock_mhz: int | None = None
    max_memory_clock_mhz: int | None = None
    power_limit_w: float | None = None


def family(root: int | None = None) -> frozenset[int]:
    """`root` (None: this process) and all its descendants, from /proc; only `root` where there is no /proc."""
    top = root if root is not None else os.getpid()
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    stat = Path("/proc", entry, "stat").read_text()
                    # the name may hold spaces and brackets: fields are counted from the last ')'
                    parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    found = {top}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return frozenset(found)


def _throttle_words(bits: int) -> tuple[str, ...]:
    return tuple(word for bit, word in THROTTLE_WORDS if bits & bit)


class Nvml:
    """The library, opened once. Falsy where it is absent."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        self._nvml: ctypes.CDLL | None = None
        try:
            nvml = ctypes.CDLL(library)
            if nvml.nvmlInit_v2() == _SUCCESS:
                self._nvml = nvml
        except (OSError, AttributeError):
            self._nvml = None

    def __bool__(self) -> bool:
        return self._nvml is not None

    def count(self) -> int:
        """How many cards; 0 where the library is absent."""
        number = ctypes.c_uint()
        if self._nvml is None or self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) != _SUCCESS:
            return 0
        return number.value

    def driver(self) -> str | None:
        """The driver's version."""
        text = ctypes.create_string_buffer(96)
        if self._nvml is None or self._nvml.nvmlSystemGetDriverVersion(text, 96) != _SUCCESS:
            return None
        return text.value.decode(errors="replace")

    def card(self, index: int) -> Card | None:
        """The card of NVML's index (the order of the bus, not of CUDA_VISIBLE_DEVICES)."""
        handle = ctypes.c_void_p()
        if self._nvml is None or self._nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != _SUCCESS:
            return None
        return Card(self._nvml, handle, index, self.driver())

    def card_by_uuid(self, uuid: str) -> Card | None:
        """The card with this UUID ('GPU-...'), as torch names it with or without the prefix."""
        wanted = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        for index in range(self.count()):
            card = self.card(index)
            if card is not None and card.facts().uuid == wanted:
                return card
        return None


class Card:
    """One card's questions. Each answers None where the driver does not say."""

    def __init__(self, nvml: ctypes.CDLL, handle: ctypes.c_void_p, index: int, driver: str | None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._index = index
        self._driver = driver

    def _uint(self, call: str, *args: int) -> int | None:
        function = getattr(self._nvml, call, None)
        value = ctypes.c_uint()
        if function is None or function(self._handle, *args, ctypes.byref(value)) != _SUCCESS:
            return None
        return value.value

    def _text(self, call: str) -> str | None:
        text = ctypes.create_string_buffer(96)
        function = getattr(self._nvml, call, None)
        if function is None or function(self._handle, text, 96) != _SUCCESS:
            return None
        return text.value.decode(errors="replace")

    def facts(self) -> CardFacts:
        """Name, UUID, architecture and limits."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        capability = getattr(self._nvml, "nvmlDeviceGetCudaComputeCapability", None)
        known = capability and capability(self._handle, ctypes.byref(major), ctypes.byref(minor)) == _SUCCESS
        memory = _Memory()
        has_memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(memory)) == _SUCCESS
        power = self._uint("nvmlDeviceGetEnforcedPowerLimit")
        return CardFacts(
            index=self._index,
            name=self._text("nvmlDeviceGetName"),
            uuid=self._text("nvmlDeviceGetUUID"),
            driver=self._driver,
            arch=f"sm_{major.value}{minor.value}" if known else None,
            memory_bytes=int(memory.total) if has_memory else None,
            memory_bus_bits=self._uint("nvmlDeviceGetMemoryBusWidth"),
            max_sm_clock_mhz=self._uint("nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
            max_memory_clock_mhz=self._uint("nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY),
            power_limit_w=power / 1e3 if power is not None else None,
        )

    def state(self) -> CardState:
        """Clock and throttle reasons now. Asked between samples, so nothing dearer belongs here."""
        bits = ctypes.c_ulonglong()
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        throttle: tuple[str, ...] = ()
        for name in names:
            function = getattr(self._nvml, name, None)
            if function is not None and function(self._handle, ctypes.byref(bits)) == _SUCCESS:
                throttle = _throttle_words(bits.value)
                break
        return CardState(sm_clock_mhz=self.sm_clock_mhz(), throttle=throttle)

    def sm_clock_mhz(self) -> int | None:
        """The SM clock now."""
        return self._uint("nvmlDeviceGetClockInfo", _CLOCK_SM)

    def foreign_processes(self, own: frozenset[int] | None = None) -> int | None:
        """Compute processes on the card that are not in `own` (default: this process).

        None where the driver lists none at all, not even us: in a virtual machine or a container it may see nobody, and
        "none visible" must not be said as "none".
        """
        function = getattr(self._nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        if function is None:
            return None
        room = 256
        number = ctypes.c_uint(room)
        found = (_Process * room)()
        if function(self._handle, ctypes.byref(number), found) != _SUCCESS or number.value == 0:
            return None
        mine = own if own is not None else frozenset({os.getpid()})
        return sum(1 for process in found[: number.value] if process.pid not in mine)

    def cpus(self) -> frozenset[int]:
        """CPUs near the card; empty where the driver does not say."""
        words = 64
        mask = (ctypes.c_ulong * words)()
        function = getattr(self._nvml, "nvmlDeviceGetCpuAffinity", None)
        if function is None or function(self._handle, words, mask) != _SUCCESS:
            return frozenset()
        bits = 8 * ctypes.sizeof(ctypes.c_ulong)
        return frozenset(
            word * bits + bit for word, value in enumerate(mask) if value for bit in range(bits) if value >> bit & 1
        )

    def busy_ratio(self) -> float | None:
        """Share of the last sample period in which a kernel ran, 0..1."""
        use = _Utilization()
        function = getattr(self._nvml, "nvmlDeviceGetUtilizationRates", None)
        if function is None or function(self._handle, ctypes.byref(use)) != _SUCCESS:
            return None
        return use.gpu / 100.0
