"""Owns what is known about kernels that were launched in this process: resources as compiled, launches as counted."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

from evalcore.facts import KernelFacts
from evalcore.jobs import Flag


@dataclass(slots=True)
class _Variant:
    """One compiled Triton kernel, kept alive so that its id stays its own."""

    kernel: Any
    function: Any
    launches: int = 0


_variants: dict[int, _Variant] = {}
_cuda: dict[str, KernelFacts] = {}
_cuda_launches: dict[str, int] = {}
_notes: list[Flag] = []


def watch() -> None:
    """From now on every compiled Triton kernel that is launched is remembered and counted."""
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None or getattr(jit, "odyssey_counted", False):
        return
    jit.odyssey_counted = True  # type: ignore[attr-defined]
    run = jit.JITFunction.run

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = run(self, *args, **kwargs)
        if kernel is not None and not kwargs.get("warmup"):
            variant = _variants.get(id(kernel))
            if variant is None:
                variant = _variants[id(kernel)] = _Variant(kernel, self)
            variant.launches += 1
        return kernel

    jit.JITFunction.run = counted


def forget() -> None:
    """Starts anew for a new load."""
    _variants.clear()
    _cuda.clear()
    _cuda_launches.clear()
    _notes.clear()


def note(flag: Flag) -> None:
    """A remark for the verdict; each once."""
    if flag not in _notes:
        _notes.append(flag)


def notes() -> list[Flag]:
    """Remarks since `forget`."""
    return list(_notes)


def record_cuda(facts: KernelFacts) -> None:
    """A CUDA kernel was compiled."""
    _cuda[facts.name] = facts


def count_cuda(name: str) -> None:
    """A CUDA kernel was launched by us."""
    _cuda_launches[name] = _cuda_launches.get(name, 0) + 1


def kernel_facts(device: str) -> tuple[KernelFacts, ...]:
    """One entry per compiled variant that ran on the card, or per interpreted kernel on the CPU."""
    cuda = tuple(replace(one, launches=_cuda_launches.get(name)) for name, one in _cuda.items())
    if device == "cpu":
        interpreter = sys.modules.get("evalcore.gpu.interpreter")
        counts: dict[tuple[str, str], int] = interpreter.launches() if interpreter is not None else {}
        interpreted = (
            KernelFacts(name=name, launches=n, origin="interpreted", signature=signature, config=_words(signature))
            for (name, signature), n in counts.items()
        )
        return (*interpreted, *cuda)
    return (*map(_triton_facts, _variants.values()), *cuda)


def _words(signature: str) -> str:
    from evalcore.gpu.signatures import words

    return words(signature) if signature else ""


def _triton_facts(variant: _Variant) -> KernelFacts:
    from evalcore.static.occupancy import theoretical_occupancy

    kernel, metadata = variant.kernel, variant.kernel.metadata
    registers = getattr(kernel, "n_regs", None)
    spills = getattr(kernel, "n_spills", None)
    shared, warps = getattr(metadata, "shared", None), getattr(metadata, "num_warps", None)
    target = getattr(metadata, "target", None)
    arch = getattr(target, "arch", None)
    return KernelFacts(
        name=variant.function.fn.__name__,
        registers=registers,
        spill_bytes=None if spills is None else 4 * int(spills),  # Triton's loader divides local bytes by four
        shared_bytes=shared,
        warps=warps,
        stages=getattr(metadata, "num_stages", None),
        theoretical_occupancy=theoretical_occupancy(arch, registers, shared, warps) if isinstance(arch, int) else None,
        config=_config_words(variant),
        launches=variant.launches,
    )


def _config_words(variant: _Variant) -> str:
    """The constexprs of a variant, such as 'BLOCK_M=64, BLOCK_N=32'."""
    source = getattr(variant.kernel, "src", None)
    constants = getattr(source, "constants", None) or {}
    names = list(variant.function.arg_names)
    words = []
    for key, value in constants.items():
        index = key[0] if isinstance(key, tuple) else key
        name = names[index] if isinstance(index, int) and index < len(names) else str(index)
        parameter = variant.function.params[names.index(name)] if name in names else None
        if parameter is None or parameter.is_constexpr:
            words.append(f"{name}={getattr(value, '__name__', value)}")
    return ", ".join(words)
