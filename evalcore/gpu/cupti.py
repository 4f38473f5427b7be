"""Owns the recorder that reads CUPTI's activity records by ctypes. Never decides what a time means.

It sees what Proton does not: copies and sets, kernels that other threads launch (autograd's backward), and each launch
alone. It needs only libcupti, which torch's and Triton's wheels bring along. Record layouts: kind at 0, start at 16 and
end at 24 for kernels, copies and sets alike, unchanged from CUDA 11 to 13.5 (CUpti_ActivityKernel4..13).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import struct
from collections.abc import Iterator
from pathlib import Path

from evalcore.gpu.activity import Launch, Recorder, RecorderError, Recording, cut

_KIND_MEMCPY = 1
_KIND_MEMSET = 2
_KIND_KERNEL = 3
_KIND_CONCURRENT_KERNEL = 10
_KIND_MEMCPY_PEER = 22
_RECORDED = (_KIND_CONCURRENT_KERNEL, _KIND_MEMCPY, _KIND_MEMSET, _KIND_MEMCPY_PEER)
_NAMES = {_KIND_MEMCPY: "[memcpy]", _KIND_MEMSET: "[memset]", _KIND_MEMCPY_PEER: "[memcpy peer]"}

_SUCCESS = 0
_FLUSH_FORCED = 1
_BUFFER_BYTES = 8 << 20
"""About 40,000 records: one measurement never fills it, so CUPTI's own thread has no reason to call back."""

_KERNEL = struct.Struct("<IBBHIIQQQIIIiiiiiiiiIIIqQ")
"""kind, cache, shared config, registers, 2 x partitioned cache, start, end, completed, device, context, stream,
grid x 3, block x 3, static shared, dynamic shared, 2 x local memory, correlation, grid id, name."""
_SPAN = struct.Struct("<QQ")


def parse_record(data: bytes, name: str = "") -> Launch | None:
    """One activity record's first 112 bytes into a Launch; None for a kind we do not count or a broken span."""
    (kind,) = struct.unpack_from("<I", data)
    if kind in _NAMES:
        start, end = _SPAN.unpack_from(data, 16)
        return Launch(name=_NAMES[kind], device_us=(end - start) / 1e3, start_ns=start) if end > start else None
    if kind not in (_KIND_KERNEL, _KIND_CONCURRENT_KERNEL):
        return None
    f = _KERNEL.unpack_from(data)
    registers, start, end = f[3], f[6], f[7]
    if end <= start:
        return None
    return Launch(
        name=name,
        device_us=(end - start) / 1e3,
        start_ns=start,
        registers=registers,
        grid=(f[12], f[13], f[14]),
        block=(f[15], f[16], f[17]),
        shared_bytes=f[18] + f[19],
    )


@functools.lru_cache(maxsize=1)
def _demangler() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (OSError, AttributeError):
        return None
    return library


def readable(name: bytes) -> str:
    """A C++ kernel's name as written in its source, with template arguments; other names as they are."""
    library = _demangler() if name.startswith(b"_Z") else None
    if library is not None:
        status = ctypes.c_int()
        found = library.__cxa_demangle(name, None, None, ctypes.byref(status))
        if found:
            # a few hundred bytes for each distinct kernel of a short-lived process: not worth a call of free()
            name = ctypes.string_at(found)
    return name.decode(errors="replace")


def library_paths() -> Iterator[str]:
    """Where a libcupti may lie: first the one that is already in this process, then the wheels', then the system's."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if "/libcupti.so" in path:
                yield path
    folders: list[Path] = []
    spec = importlib.util.find_spec("nvidia")
    if spec is not None:
        for root in spec.submodule_search_locations or []:
            folders += [Path(root) / "cu13" / "lib", Path(root) / "cuda_cupti" / "lib"]
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin:
        folders.append(Path(spec.origin).parent / "backends" / "nvidia" / "lib" / "cupti")
    for folder in folders:
        yield from (str(path) for path in sorted(folder.glob("libcupti.so.*"), reverse=True))
    yield "libcupti.so"


class CuptiRecorder(Recorder):
    """CUPTI's activity interface. Only one client of it may be active in a process: never beside a Proton session."""

    timer = "cupti"
    chunk = 10

    def __init__(self) -> None:
        self._cupti: ctypes.CDLL | None = None
        self._buffers: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._records: list[Launch] = []
        self._names: dict[int, str] = {}
        self._fault = ""
        self.path = ""

    def _check(self, result: int, call: str) -> None:
        if result != _SUCCESS:
            word = ctypes.c_char_p()
            if self._cupti is not None:
                self._cupti.cuptiGetResultString(result, ctypes.byref(word))
            raise RecorderError(f"{call} failed: {(word.value or b'unknown').decode()} ({result})")

    def warm(self) -> None:
        """Load libcupti, register our buffers, enable and disable once: CUPTI's first start is the dear one."""
        if self._cupti is not None:
            return
        for path in library_paths():
            with contextlib.suppress(OSError):
                self._cupti = ctypes.CDLL(path)
                self.path = path
                break
        else:
            raise RecorderError("no libcupti was found in the process, in the wheels or on the system")
        pointers = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
        size = ctypes.c_size_t
        request = ctypes.CFUNCTYPE(None, *pointers)
        complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, size, size)
        self._request, self._complete = request(self._on_request), complete(self._on_complete)
        self._spare = [self._new_buffer() for _ in range(2)]
        self._check(
            self._cupti.cuptiActivityRegisterCallbacks(self._request, self._complete), "cuptiActivityRegisterCallbacks"
        )
        self.open()
        self.close()

    def _new_buffer(self) -> ctypes.Array[ctypes.c_char]:
        buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
        self._buffers[ctypes.addressof(buffer)] = buffer
        return buffer

    def _on_request(self, buffer: object, size: object, records: object) -> None:
        """CUPTI asks for a buffer, on a launching thread or its own."""
        block = self._spare.pop() if self._spare else self._new_buffer()
        buffer[0] = ctypes.addressof(block)  # type: ignore[index]
        size[0] = _BUFFER_BYTES  # type: ignore[index]
        records[0] = 0  # type: ignore[index]

    def _on_complete(self, _context: int, _stream: int, buffer: int, _size: int, valid: int) -> None:
        """CUPTI hands a buffer back; its names are only good until now, so records are read here."""
        if valid and self._cupti is not None:
            self._read(buffer, valid)
        block = self._buffers.get(buffer)
        if block is not None:
            self._spare.append(block)

    def _read(self, buffer: int, valid: int) -> None:
        assert self._cupti is not None
        record = ctypes.c_void_p()
        get_next = self._cupti.cuptiActivityGetNextRecord
        at, room = ctypes.c_void_p(buffer), ctypes.c_size_t(valid)
        while get_next(at, room, ctypes.byref(record)) == _SUCCESS and record.value:
            address = record.value
            # a record near the end may be shorter than a kernel's: never read past what is valid
            data = ctypes.string_at(address, min(_KERNEL.size, buffer + valid - address))
            kind = int.from_bytes(data[:4], "little")
            name = ""
            if kind in (_KIND_KERNEL, _KIND_CONCURRENT_KERNEL) and len(data) == _KERNEL.size:
                name = self._name(int.from_bytes(data[104:112], "little"))
            launch = parse_record(data, name) if len(data) >= 32 else None
            if launch is not None:
                self._records.append(launch)

    def _name(self, pointer: int) -> str:
        if not pointer:
            return "?"
        found = self._names.get(pointer)
        if found is None:
            found = self._names[pointer] = readable(ctypes.string_at(pointer))
        return found

    def open(self) -> None:
        """Enable the four kinds of record."""
        if self._cupti is None:
            raise RecorderError("the recorder was not warmed")
        self._names.clear()
        for kind in _RECORDED:
            self._check(self._cupti.cuptiActivityEnable(kind), f"cuptiActivityEnable({kind})")

    def call(self) -> contextlib.AbstractContextManager[object]:
        """Nothing to do: calls are told apart by the flush and the marker."""
        return contextlib.nullcontext()

    def mark(self) -> contextlib.AbstractContextManager[object]:
        """Nothing to do."""
        return contextlib.nullcontext()

    def take(self) -> Recording:
        """Flush CUPTI's buffers and cut what came."""
        assert self._cupti is not None
        self._check(self._cupti.cuptiActivityFlushAll(_FLUSH_FORCED), "cuptiActivityFlushAll")
        records, self._records = self._records, []
        return cut(records)

    def close(self) -> None:
        """Disable the kinds and drop what nobody took."""
        if self._cupti is None:
            return
        for kind in _RECORDED:
            self._cupti.cuptiActivityDisable(kind)
        self._cupti.cuptiActivityFlushAll(_FLUSH_FORCED)
        self._records.clear()

    def end(self) -> None:
        """Detach CUPTI from this process."""
        if self._cupti is not None:
            self.close()
            self._cupti.cuptiFinalize()
            self._cupti = None
