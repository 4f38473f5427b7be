"""Owns compiling kernels ahead of time for a card that is not here, with signatures of launches that were interpreted.

What the compiler refuses is certain then, and what it makes is real: registers, spills, shared memory, occupancy. Runs
the text's imports and assignments, never its kernels; belongs into a fork that is thrown away.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from evalcore.facts import KernelFacts
from evalcore.gpu import compile_faults, frontend, signatures
from evalcore.gpu.nvrtc import arch_of
from evalcore.jobs import Diagnostic
from evalcore.static.compile import Product, Signature, compile_all, front_end
from evalcore.static.elf import kernel_resources
from evalcore.static.occupancy import limits, theoretical_occupancy

_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_RESERVED_SHARED_BYTES = 1024


def compile_captured(
    path: str,
    text: str,
    overlays: Sequence[tuple[str, str]],
    captured: Sequence[tuple[str, str]],
    target: str | None,
) -> tuple[list[Diagnostic], list[KernelFacts]]:
    """(errors on their lines, resources) of the kernels in `text` for `target`, one per (kernel, signature)."""
    module = frontend.load(path, text, overlays, "", sorted({name for name, _ in captured}))
    if module is None:
        return [], []
    diagnostics: list[Diagnostic] = []
    facts: list[KernelFacts] = []
    for name, told in captured:
        function = frontend.jit_function(module, name)
        if function is None or not told:
            continue
        try:
            signature = Signature(**signatures.read(told))
        except (ValueError, KeyError, TypeError):
            continue
        found = _one(function, signature, arch_of(target), told)
        if isinstance(found, Diagnostic):
            diagnostics.append(found)
        elif found is not None:
            facts.append(found)
            diagnostics += _too_large(function, found, arch_of(target))
    return list(dict.fromkeys(diagnostics)), facts


def _one(function: Any, signature: Signature, arch: int, told: str) -> KernelFacts | Diagnostic | None:
    try:
        front_end(function, signature, arch)
        product = compile_all(function, signature, arch)
    except Exception as error:  # noqa: BLE001  (the compiler's verdict; what is none of its errors is dropped)
        error_told = compile_faults.describe(error)
        if error_told is None or error_told.kind != "compile" or error_told.place is None:
            return None
        place = error_told.place
        return Diagnostic(
            path=place.path, line=place.line, column=place.column, severity="error", code="triton",
            message=error_told.message, end_line=place.end_line, end_column=place.end_column,
        )
    return _facts(function, product, arch, told)


def _facts(function: Any, product: Product, arch: int, told: str) -> KernelFacts:
    (found, *_) = kernel_resources(product.module) or (None,)
    registers = found.registers if found is not None else None
    static = found.shared_bytes if found is not None else 0
    shared = int(product.metadata.get("shared") or 0) + static
    warps = product.metadata.get("num_warps")
    stack = found.stack_bytes if found is not None else None
    return KernelFacts(
        name=function.fn.__name__, registers=registers,
        spill_bytes=0 if stack == 0 else _spills(product.ptx, arch), shared_bytes=shared, warps=warps,
        stages=product.metadata.get("num_stages"),
        theoretical_occupancy=theoretical_occupancy(arch, registers, shared, warps),
        config=signatures.words(told), origin=f"compiled for sm_{arch}", signature=told,
    )


def _spills(ptx: str, arch: int) -> int | None:
    """Spill stores plus loads, as ptxas tells them; None where it is not at hand."""
    import triton

    tool = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "ptxas")
    if not ptx or not os.path.exists(tool):
        return None
    suffix = "a" if arch >= 90 else ""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as source:
        source.write(ptx)
        source.flush()
        command = [tool, "-v", f"--gpu-name=sm_{arch}{suffix}", source.name, "-o", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = _SPILLS.search(done.stderr)
    return int(match[1]) + int(match[2]) if match else None


def _too_large(function: Any, facts: KernelFacts, arch: int) -> list[Diagnostic]:
    """A kernel that compiles but cannot be launched on the target."""
    limit = limits(arch)
    shared = facts.shared_bytes or 0
    if limit is None or shared <= limit.shared_per_block_bytes:
        return []
    line, column, end = compile_faults.name_place(function)
    return [
        Diagnostic(
            path=function.fn.__code__.co_filename, line=line, column=column, severity="error", code="triton-resources",
            message=f"out of shared memory: with {facts.config} the kernel needs {shared} bytes, sm_{arch} has "
            f"{limit.shared_per_block_bytes} bytes; smaller blocks or fewer stages need less",
            end_line=line, end_column=end,
        )
    ]
