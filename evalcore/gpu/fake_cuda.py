"""Owns harmless answers to `torch.cuda.*` and to Triton's driver where no GPU is used: for the interpreter and the
front end. Installed once per process, before user code runs. Never in a process that measures on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch

from evalcore.gpu.redirect import GPU, as_cpu

CAPABILITY = (9, 0)
"""The card that user code sees when it asks: Hopper, the smallest that has every feature the tutorials branch on."""
_PROPERTIES = {
    "max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32,
    "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120,
}


class CannotInterpret(RuntimeError):
    """User code asked for something that only a GPU can do. The message names it."""


class FakeDriver:
    """Triton's active driver where there is no GPU."""

    launcher_cls = None

    def __init__(self, arch: int) -> None:
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget("cuda", arch, 32)
        self.utils = SimpleNamespace(get_device_properties=lambda index=0: dict(_PROPERTIES))
        self.binary_ext = "cubin"

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return None

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return GPU

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return CAPABILITY

    def get_benchmarker(self) -> Callable[..., Any]:
        def bench(call: Callable[[], Any], quantiles: Any = None, **options: Any) -> Any:
            call()
            return [1.0] * len(quantiles) if quantiles else 1.0

        return bench

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(256, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        return None


class FakeStream:
    """A CUDA stream on which everything has already happened."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = GPU
        self.priority = priority
        self.cuda_stream = 0
        self.stream_id = 0
        self.device_index = 0

    def synchronize(self) -> None:
        return None

    def wait_stream(self, stream: Any) -> None:
        return None

    def wait_event(self, event: Any) -> None:
        return None

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or FakeEvent()

    def __enter__(self) -> FakeStream:
        return self

    def __exit__(self, *details: Any) -> None:
        return None


class FakeEvent:
    """A CUDA event. It has no time to tell."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.cuda_event = 0

    def record(self, stream: Any = None) -> None:
        return None

    def wait(self, stream: Any = None) -> None:
        return None

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def elapsed_time(self, end: Any) -> float:
        raise CannotInterpret("elapsed_time of a CUDA event: nothing is timed without a GPU")


class FakeGraph:
    """A CUDA graph. It cannot be captured."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise CannotInterpret("CUDA graphs cannot be interpreted on the CPU")


@contextlib.contextmanager
def _context(*args: Any, **kwargs: Any) -> Iterator[Any]:
    yield args[0] if args else None


def _yield_nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


def _graph_refusal() -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise CannotInterpret("CUDA graphs cannot be interpreted on the CPU")

    return refuse


def _properties(*args: Any, **kwargs: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name="interpreted", major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=80 << 30, multi_processor_count=132,
        warp_size=32, regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
        shared_memory_per_block=49152, shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472,
        L2_cache_size=50 << 20, is_integrated=False, is_multi_gpu_board=False, gcnArchName="",
    )


class _Device(contextlib.AbstractContextManager["_Device"]):
    """torch.cuda.device(...) and device_of(...)."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __exit__(self, *details: Any) -> None:
        return None


_VALUES: dict[str, Any] = {
    "is_available": True, "device_count": 1, "current_device": 0, "is_initialized": True, "init": None,
    "synchronize": None, "empty_cache": None, "ipc_collect": None, "set_device": None, "get_device_name": "interpreted",
    "get_device_capability": CAPABILITY, "get_arch_list": ["sm_90"], "set_stream": None,
    "is_current_stream_capturing": False, "manual_seed": None, "manual_seed_all": None, "seed": None, "seed_all": None,
    "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
    "reset_peak_memory_stats": None, "reset_max_memory_allocated": None, "memory_stats": {},
    "mem_get_info": (80 << 30, 80 << 30), "is_bf16_supported": True, "can_device_access_peer": False,
    "set_per_process_memory_fraction": None,
}
"""Functions of torch.cuda that answer with a value."""


def _answers() -> dict[str, Any]:
    """Functions and classes of torch.cuda that need more than a value."""
    return {
        "get_device_properties": _properties, "current_stream": lambda *a, **k: FakeStream(),
        "default_stream": lambda *a, **k: FakeStream(), "stream": _context, "Stream": FakeStream,
        "ExternalStream": type("ExternalStream", (FakeStream,), {}), "Event": FakeEvent, "device": _Device,
        "device_of": type("device_of", (_Device,), {}), "CUDAGraph": FakeGraph, "graph": _graph_refusal(),
        "make_graphed_callables": _graph_refusal(),
    }


def _answering(value: Any) -> Callable[..., Any]:
    """A function of its own for each name: torch._dynamo refuses one object under two names."""
    return lambda *args, **kwargs: value


_installed = False


def install(arch: int = 90) -> None:
    """Puts the answers in place for torch and Triton. Safe to call again."""
    from triton.runtime import driver

    driver.set_active(FakeDriver(arch))
    install_torch()


def install_torch() -> None:
    """Puts the answers of `torch.cuda` in place; Triton need not be there. Safe to call again."""
    global _installed
    if _installed:
        return
    _installed = True
    for name, value in _VALUES.items():
        setattr(torch.cuda, name, _answering(value))
    for name, answer in _answers().items():
        setattr(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, _answering(None))
    torch.cuda.nvtx.range = contextlib.contextmanager(_yield_nothing)  # type: ignore[assignment]
    _redirect_defaults()
    _redirect_autocast()
    _redirect_generators()


def _redirect_defaults() -> None:
    set_default_device = torch.set_default_device
    load = torch.load

    def set_device(device: Any) -> None:
        set_default_device(as_cpu(device))

    def load_on_cpu(*args: Any, **kwargs: Any) -> Any:
        kwargs["map_location"] = "cpu"
        return load(*args, **kwargs)

    torch.set_default_device = set_device  # type: ignore[assignment]
    torch.set_default_tensor_type = _answering(None)  # type: ignore[assignment]
    torch.load = load_on_cpu
    torch.compile = _run_eagerly  # type: ignore[assignment]


def _run_eagerly(model: Any = None, **options: Any) -> Any:
    """torch.compile without the compiling: the same values, in a second instead of a minute."""
    if model is None:
        return lambda inner: inner
    return model


def _redirect_autocast() -> None:
    autocast: Any = torch.amp.autocast_mode.autocast
    start = autocast.__init__

    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if str(device_type).startswith("cuda"):
            device_type, dtype = "cpu", dtype or torch.float16
        start(self, device_type, dtype, *args, **kwargs)

    autocast.__init__ = init


def _redirect_generators() -> None:
    real: Any = torch.Generator

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

    class Generator(metaclass=Kind):
        def __new__(cls, device: Any = "cpu") -> Any:
            return real(device=as_cpu(device))

    torch.Generator = Generator  # type: ignore[assignment,misc]
