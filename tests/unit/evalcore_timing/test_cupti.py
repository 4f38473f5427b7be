"""CUPTI records by their bytes, and the recorder against a library that plays records back."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest

from evalcore.gpu import cupti
from evalcore.gpu.activity import RecorderError
from evalcore.gpu.cupti import CuptiRecorder, parse_record
from evalcore.gpu.flush import FLUSH_KERNEL, MARK_KERNEL

KERNEL_BYTES = 200
COPY_BYTES = 120


def kernel(start: int, end: int, name: int = 0, registers: int = 40) -> bytes:
    """Laid out by hand after CUpti_ActivityKernel9, apart from the reader's own struct."""
    data = bytearray(KERNEL_BYTES)
    struct.pack_into("<I", data, 0, 10)
    struct.pack_into("<H", data, 6, registers)
    struct.pack_into("<QQ", data, 16, start, end)
    struct.pack_into("<iii", data, 52, 128, 2, 1)
    struct.pack_into("<iii", data, 64, 256, 1, 1)
    struct.pack_into("<ii", data, 76, 1024, 2048)
    struct.pack_into("<Q", data, 104, name)
    return bytes(data)


def copy(start: int, end: int) -> bytes:
    data = bytearray(COPY_BYTES)
    struct.pack_into("<I", data, 0, 1)
    struct.pack_into("<QQ", data, 16, start, end)
    return bytes(data)


def test_a_kernel_record() -> None:
    launch = parse_record(kernel(1000, 32_500), "softmax")
    assert launch is not None
    assert (launch.name, launch.device_us, launch.start_ns) == ("softmax", 31.5, 1000)
    assert (launch.registers, launch.grid, launch.block) == (40, (128, 2, 1), (256, 1, 1))
    assert launch.shared_bytes == 3072


def test_a_copy_record() -> None:
    launch = parse_record(copy(10, 2010))
    assert launch is not None
    assert (launch.name, launch.device_us, launch.registers) == ("[memcpy]", 2.0, None)


@pytest.mark.parametrize("data", [kernel(5, 5), kernel(9, 5), copy(7, 7), struct.pack("<I", 99) + bytes(200)])
def test_a_broken_span_or_another_kind_is_no_launch(data: bytes) -> None:
    assert parse_record(data, "x") is None


class PlayedCupti:
    """A libcupti that asks for a buffer, fills it with `records` on flush and hands it back, as the real one does."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.enabled: list[int] = []
        self.sizes: dict[int, int] = {}
        self.fail_enable = False

    def cuptiActivityRegisterCallbacks(self, request: Any, complete: Any) -> int:
        self.request, self.complete = request, complete
        return 0

    def cuptiActivityEnable(self, kind: int) -> int:
        self.enabled.append(kind)
        return 15 if self.fail_enable else 0

    def cuptiActivityDisable(self, kind: int) -> int:
        self.enabled.remove(kind)
        return 0

    def cuptiGetResultString(self, result: int, word: Any) -> int:
        word._obj.value = b"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
        return 0

    def cuptiActivityFlushAll(self, flag: int) -> int:
        if not self.records:
            return 0
        buffer, size, count = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self.request(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(count))
        assert buffer.value is not None
        whole = b"".join(self.records)
        assert size.value >= len(whole)
        ctypes.memmove(buffer.value, whole, len(whole))
        self.ends = {}
        address = buffer.value
        self.chain = []
        for record in self.records:
            self.chain.append(address)
            address += len(record)
        self.records = []
        self.complete(None, 0, buffer.value, size.value, len(whole))
        return 0

    def cuptiActivityGetNextRecord(self, buffer: Any, valid: Any, record: Any) -> int:
        current = record._obj.value
        place = 0 if current is None else self.chain.index(current) + 1
        if place == len(self.chain):
            return 12
        record._obj.value = self.chain[place]
        return 0


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedCupti:
    library = PlayedCupti()
    monkeypatch.setattr(cupti.ctypes, "CDLL", lambda path: library)
    return library


def test_the_recorder_cuts_what_the_library_hands_back(played: PlayedCupti) -> None:
    names = {name: ctypes.create_string_buffer(name.encode()) for name in (FLUSH_KERNEL, MARK_KERNEL, "softmax")}

    def record(start: int, end: int, name: str) -> bytes:
        return kernel(start, end, ctypes.addressof(names[name]))

    recorder = CuptiRecorder()
    recorder.warm()
    assert played.enabled == []
    recorder.open()
    assert sorted(played.enabled) == [1, 2, 10, 22]
    for turn in range(3):
        base = turn * 1_000_000
        played.records = [
            record(base + 100, base + 40_100, FLUSH_KERNEL),
            record(base + 41_000, base + 72_000, "softmax"),
            copy(base + 73_000, base + 75_000),
            record(base + 90_000, base + 90_560, MARK_KERNEL),
        ]
        got = recorder.take()
        assert [[launch.name for launch in call] for call in got.calls] == [["softmax", "[memcpy]"]]
        assert sum(launch.device_us for launch in got.calls[0]) == pytest.approx(33.0)
        assert got.empty_us == (0.56,)
    recorder.close()
    assert played.enabled == []
    assert recorder.take().calls == ()


def test_a_short_last_record_is_not_read_past_its_end(played: PlayedCupti) -> None:
    recorder = CuptiRecorder()
    recorder.warm()
    recorder.open()
    played.records = [copy(0, 5000), copy(6000, 9000)[:64]]
    recorder.take()
    played.records = [copy(0, 5000)[:20]]
    assert recorder.take().calls == ()


def test_a_refusal_names_cuptis_word(played: PlayedCupti) -> None:
    played.fail_enable = True
    with pytest.raises(RecorderError, match="INSUFFICIENT_PRIVILEGES"):
        CuptiRecorder().warm()


def test_no_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: str) -> Any:
        raise OSError("nothing here")

    monkeypatch.setattr(cupti.ctypes, "CDLL", missing)
    with pytest.raises(RecorderError, match="no libcupti"):
        CuptiRecorder().warm()


def test_names_are_readable() -> None:
    assert cupti.readable(b"softmax_kernel") == "softmax_kernel"
    assert cupti.readable(b"_Z10row_reducePKfPfi") in ("row_reduce(float const*, float*, int)", "_Z10row_reducePKfPfi")
    assert cupti.readable(b"_Znonsense!") == "_Znonsense!"
