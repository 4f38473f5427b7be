"""Owns the few CUDA driver calls that timing needs, by ctypes. Never creates a context and never calls cuInit.

The candidate lives in the same Python: it can replace `torch.cuda.synchronize` or `time.perf_counter`. What is here
holds the C functions themselves, taken before the candidate is loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass


class DriverError(RuntimeError):
    """A CUDA driver call failed. The message names the call and the driver's own word for the fault."""


_SUCCESS = 0


def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as problem:
        raise DriverError(f"the CUDA driver library cannot be loaded: {problem}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A loaded function and how it is launched."""

    function: ctypes.c_void_p
    grid: int
    block: int


class Driver:
    """The driver of the current context. Make it only where a context is already open on this thread."""

    def __init__(self) -> None:
        self._cuda = _library()
        self._modules: list[ctypes.c_void_p] = []

    def _check(self, result: int, call: str) -> None:
        if result != _SUCCESS:
            word = ctypes.c_char_p()
            self._cuda.cuGetErrorName(result, ctypes.byref(word))
            raise DriverError(f"{call} failed: {(word.value or b'unknown').decode()} ({result})")

    def synchronize(self) -> None:
        """Wait for all streams of the context; raises DriverError where a kernel faulted."""
        self._check(self._cuda.cuCtxSynchronize(), "cuCtxSynchronize")

    def reset_persisting_l2(self) -> bool:
        """Turn persisting L2 lines back into normal ones, so that a flush can evict them. False where not supported."""
        return bool(self._cuda.cuCtxResetPersistingL2Cache() == _SUCCESS)

    def load(self, ptx: str) -> ctypes.c_void_p:
        """Load PTX text into the current context; the module lives as long as this object."""
        module = ctypes.c_void_p()
        image = ctypes.create_string_buffer(ptx.encode() + b"\0")
        self._check(self._cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
        self._modules.append(module)
        return module

    def function(self, module: ctypes.c_void_p, name: str, *, grid: int, block: int) -> Kernel:
        """One entry of a loaded module."""
        found = ctypes.c_void_p()
        self._check(self._cuda.cuModuleGetFunction(ctypes.byref(found), module, name.encode()), "cuModuleGetFunction")
        return Kernel(function=found, grid=grid, block=block)

    def launch(self, kernel: Kernel, stream: int, args: Sequence[ctypes.c_uint64] = ()) -> None:
        """Launch on `stream` (a raw handle); every argument is a 64-bit value."""
        pointers = (ctypes.c_void_p * max(1, len(args)))(*(ctypes.addressof(each) for each in args))
        self._check(
            self._cuda.cuLaunchKernel(
                kernel.function, kernel.grid, 1, 1, kernel.block, 1, 1, 0, ctypes.c_void_p(stream), pointers, None
            ),
            "cuLaunchKernel",
        )
