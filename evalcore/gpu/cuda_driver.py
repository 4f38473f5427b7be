"""Owns launching a cubin through the CUDA driver by ctypes, on torch's context and current stream. Never compiles."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

_MAX_DYNAMIC_SHARED = 8
_SHARED_WITHOUT_ASKING = 48 * 1024
_SHARED_STATIC = 1
_REGISTERS = 4
_OUT_OF_MEMORY, _TOO_MANY_RESOURCES, _INVALID_VALUE = 2, 701, 1
_INTEGERS: dict[str, Any] = {
    "bool": ctypes.c_bool, "char": ctypes.c_int8, "signed char": ctypes.c_int8, "unsigned char": ctypes.c_uint8,
    "short": ctypes.c_int16, "unsigned short": ctypes.c_uint16, "int": ctypes.c_int32, "unsigned": ctypes.c_uint32,
    "unsigned int": ctypes.c_uint32, "long": ctypes.c_int64, "unsigned long": ctypes.c_uint64,
    "long long": ctypes.c_int64, "unsigned long long": ctypes.c_uint64, "long int": ctypes.c_int64,
    "long long int": ctypes.c_int64, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "int16_t": ctypes.c_int16,
    "uint16_t": ctypes.c_uint16, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_uint64, "ptrdiff_t": ctypes.c_int64, "float": ctypes.c_float,
    "double": ctypes.c_double,
}
_HALVES = {
    "half": torch.float16, "__half": torch.float16, "at::Half": torch.float16, "c10::Half": torch.float16,
    "__nv_bfloat16": torch.bfloat16, "nv_bfloat16": torch.bfloat16, "at::BFloat16": torch.bfloat16,
    "c10::BFloat16": torch.bfloat16,
}


class LaunchFault(RuntimeError):
    """The driver refused a launch. `kind` is a Crash kind."""

    def __init__(self, message: str, kind: str = "exception") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """Where and how big."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0


class Driver:
    """libcuda, loaded once per process."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")

    def check(self, status: int, what: str) -> None:
        """Raises LaunchFault for any status but success."""
        if status == 0:
            return
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self.lib.cuGetErrorName(status, ctypes.byref(name))
        self.lib.cuGetErrorString(status, ctypes.byref(text))
        kind = {_OUT_OF_MEMORY: "out_of_memory", _TOO_MANY_RESOURCES: "out_of_resources"}.get(status, "exception")
        words = (text.value or b"unknown error").decode()
        raise LaunchFault(f"{what}: {words} ({(name.value or b'?').decode()})", kind)


@functools.cache
def driver() -> Driver:
    """The process's driver."""
    return Driver()


class CudaModule:
    """A loaded cubin."""

    def __init__(self, cubin: bytes) -> None:
        torch.zeros(1, device="cuda")  # opens torch's context and makes it current: the module must lie in it
        self.handle = ctypes.c_void_p()
        self._cubin = cubin
        lib = driver()
        lib.check(lib.lib.cuModuleLoadData(ctypes.byref(self.handle), cubin), "loading the kernel")

    def function(self, lowered: str, parameters: Sequence[str]) -> CudaFunction:
        """The kernel named `lowered` in the cubin; `parameters` are its declarations, to marshal by."""
        handle = ctypes.c_void_p()
        lib = driver()
        status = lib.lib.cuModuleGetFunction(ctypes.byref(handle), self.handle, lowered.encode())
        lib.check(status, f"finding {lowered}")
        return CudaFunction(self, handle, lowered, tuple(parameters))


class CudaFunction:
    """One kernel, ready to launch."""

    def __init__(self, module: CudaModule, handle: ctypes.c_void_p, name: str, parameters: tuple[str, ...]) -> None:
        self.module = module
        self.handle = handle
        self.name = name
        self.kinds = tuple(parameter_kind(one) for one in parameters)
        self.parameters = parameters
        self.shared_allowed = _SHARED_WITHOUT_ASKING

    def attribute(self, which: int) -> int:
        """A CUfunction_attribute's value."""
        value = ctypes.c_int()
        lib = driver()
        lib.check(lib.lib.cuFuncGetAttribute(ctypes.byref(value), which, self.handle), self.name)
        return value.value

    def registers(self) -> int:
        """Registers per thread, as loaded."""
        return self.attribute(_REGISTERS)

    def launch(self, shape: LaunchShape, args: Sequence[Any]) -> None:
        """Launches on torch's current stream. Raises LaunchFault, with needed and limit where resources are short."""
        if len(args) != len(self.kinds):
            raise LaunchFault(f"{self.name} takes {len(self.kinds)} arguments, {len(args)} were given")
        values = [_marshal(arg, kind, text) for arg, kind, text in zip(args, self.kinds, self.parameters, strict=True)]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*[ctypes.addressof(value) for value in values])
        self._allow_shared(shape.shared_bytes)
        lib = driver()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = lib.lib.cuLaunchKernel(
            self.handle, *map(ctypes.c_uint, (*shape.grid, *shape.block, shape.shared_bytes)), stream, pointers, None
        )
        if status in (_TOO_MANY_RESOURCES, _INVALID_VALUE):
            self._explain(shape, status)
        lib.check(status, f"launching {self.name}")

    def _allow_shared(self, wanted: int) -> None:
        if wanted <= self.shared_allowed:
            return
        limit = torch.cuda.get_device_properties(torch.cuda.current_device()).shared_memory_per_block_optin
        static = self.attribute(_SHARED_STATIC)
        if wanted + static > limit:
            raise LaunchFault(
                f"out of shared memory: the kernel needs {wanted + static} bytes, this card has {limit} bytes",
                "out_of_resources",
            )
        lib = driver()
        lib.check(lib.lib.cuFuncSetAttribute(self.handle, _MAX_DYNAMIC_SHARED, wanted), self.name)
        self.shared_allowed = wanted

    def _explain(self, shape: LaunchShape, status: int) -> None:
        """Raises with the figure that is out of range, where one is."""
        threads = shape.block[0] * shape.block[1] * shape.block[2]
        registers = self.registers()
        if threads > 1024:
            raise LaunchFault(f"a block of {threads} threads: the most is 1024", "out_of_resources")
        if 0 in shape.block or 0 in shape.grid:
            raise LaunchFault(f"an empty launch: grid {shape.grid}, block {shape.block}")
        if shape.grid[1] > 65535 or shape.grid[2] > 65535:
            raise LaunchFault(f"grid {shape.grid}: the most is 65535 in y and z", "out_of_resources")
        if status == _TOO_MANY_RESOURCES and threads * registers > 65536:
            raise LaunchFault(
                f"out of registers: {threads} threads of {registers} need {threads * registers}, this card has 65536",
                "out_of_resources",
            )


def parameter_kind(declaration: str) -> Any:
    """How one parameter is passed: 'pointer', a ctypes type, a torch half type, or None where it is not known."""
    text = re.sub(r"=.*$", "", declaration).strip()
    if "*" in text or text.endswith("]"):
        return "pointer"
    text = re.sub(r"\b(?:const|volatile|__restrict__|__grid_constant__|register)\b", " ", text)
    words = text.split()
    for count in (len(words), len(words) - 1):  # with and without the parameter's name
        name = " ".join(words[:count]).replace("std::", "")
        if name in _INTEGERS:
            return _INTEGERS[name]
        if name in _HALVES:
            return _HALVES[name]
    return None


def _marshal(value: Any, kind: Any, declaration: str) -> Any:
    if kind == "pointer":
        if isinstance(value, torch.Tensor):
            if not value.is_cuda:
                raise LaunchFault(f"`{declaration}` got a tensor on the {value.device.type}, not on the card")
            return ctypes.c_void_p(value.data_ptr())
        return ctypes.c_void_p(int(value) if value is not None else 0)
    if isinstance(kind, torch.dtype):
        bits = torch.tensor([float(value)], dtype=kind).view(torch.int16).item()
        return ctypes.c_int16(int(bits))
    if kind is None:
        raise LaunchFault(f"cannot pass `{declaration}`: only pointers, integers and floats are passed by value")
    if isinstance(value, torch.Tensor):
        raise LaunchFault(f"`{declaration}` got a tensor, where a number is wanted")
    return kind(float(value)) if kind in (ctypes.c_float, ctypes.c_double) else kind(int(value))
