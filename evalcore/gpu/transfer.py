"""Owns how tensors cross between case and referee: CUDA IPC where it works, sealed memory files else. Never pickles.

The case exports and the referee only opens: an exported allocation maps its whole segment into whoever opens it. A
handle is plain data; whoever opens one checks that the extent it claims lies inside what the kernel or the driver says is
there. A memory file is sealed against shrinking before it is handed on, so that mapping it can never fault.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import torch

_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1
_ALIGNMENT_BYTES = 512


class TransferError(RuntimeError):
    """A buffer that cannot be exported, or a handle that does not hold what it claims."""


def seal(size_bytes: int, name: str = "odyssey") -> int:
    """A memory file of fixed size; where the system has none, an unlinked temporary file. Returns its descriptor."""
    size = max(size_bytes, 1)
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            os.ftruncate(file.fileno(), size)
            return os.dup(file.fileno())
    place = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(place, size)
    fcntl.fcntl(place, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return place


def is_sealed(descriptor: int, size_bytes: int) -> bool:
    """Whether a received descriptor is a memory file that holds `size_bytes` and can never shrink."""
    try:
        if os.fstat(descriptor).st_size < size_bytes:
            return False
        if not hasattr(fcntl, "F_GET_SEALS"):
            return True
        return bool(fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK)
    except OSError:
        return False


def map_bytes(descriptor: int, size_bytes: int) -> torch.Tensor:
    """A uint8 [size_bytes] CPU tensor over a memory file, shared with everybody who maps it."""
    if size_bytes == 0:
        return torch.empty(0, dtype=torch.uint8)
    memory = mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return torch.frombuffer(memory, dtype=torch.uint8)


class _IpcHandle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


class _DevicePointer:
    """What torch needs to lay a tensor over device memory that it did not allocate."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 2,
        }


class CudaIpc:
    """The driver's IPC calls of this process's current context. Make it only after a context is open."""

    def __init__(self, device: str) -> None:
        self._device = device
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as problem:
            raise TransferError(f"no CUDA driver library: {problem}") from None
        self._opened: dict[tuple[str, str], tuple[int, int]] = {}
        """(owner, handle) -> (address, bytes of the allocation)."""

    def _extent(self, address: int) -> tuple[int, int]:
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        if self._cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address)) != 0:
            raise TransferError("an address that belongs to no allocation")
        return base.value, size.value

    def export(self, raw: torch.Tensor) -> dict[str, Any]:
        """A handle for a contiguous uint8 CUDA tensor. Raises TransferError where its memory cannot be exported."""
        address = raw.data_ptr()
        base, _size = self._extent(address)
        handle = _IpcHandle()
        result = self._cuda.cuIpcGetMemHandle(ctypes.byref(handle), ctypes.c_uint64(base))
        if result != 0:
            raise TransferError(f"cuIpcGetMemHandle refuses ({result})")
        whole = ctypes.string_at(ctypes.byref(handle), _HANDLE_BYTES)
        return {"ipc": whole.hex(), "offset": address - base, "bytes": raw.numel()}

    def open(self, owner: str, handle: dict[str, Any]) -> torch.Tensor:
        """A uint8 [bytes] tensor over the exporter's memory. `owner` groups handles for `close`."""
        key = (owner, handle["ipc"])
        if key not in self._opened:
            whole = _IpcHandle()
            ctypes.memmove(ctypes.byref(whole), bytes.fromhex(handle["ipc"]), _HANDLE_BYTES)
            address = ctypes.c_uint64()
            call = self._cuda.cuIpcOpenMemHandle_v2
            result = call(ctypes.byref(address), whole, ctypes.c_uint(_LAZY_PEER_ACCESS))
            if result != 0:
                raise TransferError(f"cuIpcOpenMemHandle refuses ({result})")
            _base, size = self._extent(address.value)
            self._opened[key] = (address.value, size)
        base, size = self._opened[key]
        if handle["offset"] + handle["bytes"] > size:
            raise TransferError("a handle that claims more than its allocation holds")
        if handle["bytes"] == 0:
            return torch.empty(0, dtype=torch.uint8, device=self._device)
        pointer = _DevicePointer(base + handle["offset"], handle["bytes"])
        return torch.as_tensor(pointer, device=self._device)

    def close(self, owner: str) -> None:
        """Close everything that was opened for `owner`. Its tensors must not be used any more."""
        for key in [key for key in self._opened if key[0] == owner]:
            address, _size = self._opened.pop(key)
            self._cuda.cuIpcCloseMemHandle(ctypes.c_uint64(address))


@dataclass(slots=True, kw_only=True)
class Exported:
    """Handles ready for a message, with the descriptors that travel beside it and the storage that must stay alive."""

    handles: list[dict[str, Any]]
    descriptors: list[int]
    kept: list[torch.Tensor]

    def close(self) -> None:
        """Close our copies of the descriptors, once the message has gone."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()


class Exporter:
    """The case's side: makes storage that the referee can open."""

    def __init__(self, device: str, *, ipc: bool = True) -> None:
        self.device = device
        self._ipc = CudaIpc(device) if ipc and device.startswith("cuda") else None

    @property
    def shares_device_memory(self) -> bool:
        """True where the referee reads and writes our device memory itself."""
        return self._ipc is not None

    def storage(self, sizes_bytes: list[int]) -> tuple[list[torch.Tensor], Exported]:
        """Fresh uint8 storage of these sizes that the referee can write, and its handles.

        On a card without IPC the storage is a memory file on the host: the caller copies between it and the card.
        """
        found: list[torch.Tensor] = []
        exported = Exported(handles=[], descriptors=[], kept=found)
        if self._ipc is None:
            found += self._file(sizes_bytes, exported)
            return found, exported
        for size in sizes_bytes:
            raw = torch.empty(max(size, 1), dtype=torch.uint8, device=self.device)
            found.append(raw)
            exported.handles.append({**self._ipc.export(raw), "bytes": size})
        return found, exported

    @staticmethod
    def _file(sizes_bytes: list[int], exported: Exported) -> list[torch.Tensor]:
        """One memory file for all, each part aligned: a message can carry only so many descriptors."""
        offsets: list[int] = []
        total = 0
        for size in sizes_bytes:
            offsets.append(total)
            total += -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        descriptor = seal(total)
        exported.descriptors.append(descriptor)
        whole = map_bytes(descriptor, total)
        for offset, size in zip(offsets, sizes_bytes, strict=True):
            exported.handles.append({"fd": 0, "offset": offset, "bytes": size})
        return [whole[offset : offset + size] for offset, size in zip(offsets, sizes_bytes, strict=True)]

    def publish(self, tensors: list[torch.Tensor]) -> Exported:
        """Handles for tensors that exist already: their own memory on a card with IPC, a copy on the host else.

        Each is handed over as its dense bytes; a tensor that is not dense is made so by a copy first.
        """
        flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in tensors]
        exported = Exported(handles=[], descriptors=[], kept=[])
        if self._ipc is None:
            exported.kept = self._file([each.numel() for each in flat], exported)
            for target, source in zip(exported.kept, flat, strict=True):
                target.copy_(source)
            return exported
        for each in flat:
            raw = each if each.is_cuda and each.numel() else self._on_card(each)
            exported.kept.append(raw)
            exported.handles.append({**self._ipc.export(raw), "bytes": each.numel()})
        return exported

    def _on_card(self, flat: torch.Tensor) -> torch.Tensor:
        if flat.numel():
            return flat.to(self.device)
        return torch.empty(1, dtype=torch.uint8, device=self.device)


class Importer:
    """The referee's side: opens what a case exported, and lets go of it by owner."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._ipc: CudaIpc | None = None

    def open(self, owner: str, handles: list[dict[str, Any]], descriptors: list[int]) -> list[torch.Tensor]:
        """uint8 tensors over the exporter's memory, in order. Raises TransferError where a handle lies."""
        found: list[torch.Tensor] = []
        mapped: dict[int, torch.Tensor] = {}
        for handle in handles:
            if "ipc" in handle:
                if self._ipc is None:
                    self._ipc = CudaIpc(self._device)
                found.append(self._ipc.open(owner, handle))
            else:
                end = handle["offset"] + handle["bytes"]
                descriptor = descriptors[handle["fd"]]
                if not is_sealed(descriptor, end):
                    raise TransferError("a memory file that may shrink or is too small")
                if handle["fd"] not in mapped:
                    mapped[handle["fd"]] = map_bytes(descriptor, os.fstat(descriptor).st_size)
                found.append(mapped[handle["fd"]][handle["offset"] : end])
        return found

    def close(self, owner: str) -> None:
        """Let go of everything that `owner` exported."""
        if self._ipc is not None:
            self._ipc.close(owner)
