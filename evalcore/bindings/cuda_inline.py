"""Owns CUDA text in a Python file (load_inline, RawKernel, _compile_kernel) compared with torch in the same file.

The comparison is read as in the tutorial style; the wrapper is a function of the compiled module. Never builds it.
"""

from __future__ import annotations

from evalcore.bindings.binding import Binding, Reader, Source
from evalcore.bindings.calls import HostMap
from evalcore.bindings.tutorial import bind_tutorial

FORMAT = "cuda_inline"


def bind_cuda_inline(source: Source, read: Reader, hosts: HostMap) -> list[Binding]:
    """Bindings whose kernels are CUDA text of this file."""
    if not any(kernel.language == "cuda" for kernel in hosts.kernels.values()):
        return []
    found = bind_tutorial(source, read, hosts, format=FORMAT)
    return [each for each in found if any(hosts.kernels[name].language == "cuda" for name in each.kernels)]
