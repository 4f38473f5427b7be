"""Owns compiling a Triton kernel for a named target without a GPU and without a launch: the front end alone, or all.

One shim over Triton 3.2 to 3.9. The cache is never asked, so a text is always compiled as it stands.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import triton
import triton.compiler.code_generator
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How a kernel is called: types by parameter name, constants, and which are divisible by 16."""

    types: Mapping[str, str]
    """Parameter -> Triton type such as '*fp32' or 'i32'; constants are left out."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    divisible: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)
    """num_warps, num_stages and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a compilation left behind."""

    module: Any
    """The last stage: an MLIR module, text, or the cubin's bytes."""
    metadata: Mapping[str, Any]
    ptx: str = ""


def cuda_target(arch: int) -> Any:
    """Triton's target for an NVIDIA architecture such as 90."""
    return GPUTarget("cuda", arch, 32)


def source(function: Any, signature: Signature) -> Any:
    """Triton's ASTSource for a kernel and a signature."""
    names = function.arg_names
    constants = dict(signature.constants)
    types = {name: "constexpr" if name in constants else signature.types[name] for name in names}
    if VERSION < (3, 3):
        from triton.backends.compiler import AttrsDescriptor

        places = {"tt.divisibility": [names.index(name) for name in signature.divisible], "tt.equal_to": []}
        attributes = AttrsDescriptor.from_dict({"arg_properties": places, "cls": "AttrsDescriptor"})
        return ASTSource(function, types, constants, attributes)
    return ASTSource(
        function,
        types,
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in signature.divisible},
    )


def front_end(function: Any, signature: Signature, arch: int) -> Any:
    """The kernel as unoptimised TTIR. Raises Triton's CompilationError; costs milliseconds."""
    return _Compiler(function, signature, cuda_target(arch)).front()


def compile_all(function: Any, signature: Signature, arch: int) -> Product:
    """The kernel's cubin and metadata. Raises whatever Triton's stages raise."""
    return _Compiler(function, signature, cuda_target(arch)).all()


class _Compiler:
    def __init__(self, function: Any, signature: Signature, target: Any) -> None:
        self.target = target
        self.source = source(function, signature)
        self.backend = make_backend(target)
        self.options = self.backend.parse_options({**signature.options, **self.source.parse_options()})
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.backend.load_dialects(self.context)

    def front(self) -> Any:
        """ast -> ttir."""
        implementation = self.backend.get_codegen_implementation
        functions = implementation(self.options) if inspect.signature(implementation).parameters else implementation()
        arguments = [self.options, functions, self.backend.get_module_map(), self.context]
        if "target" in inspect.signature(self.source.make_ir).parameters:
            arguments.insert(0, self.target)
        return self.source.make_ir(*arguments)

    def all(self) -> Product:
        """Every stage up to the binary."""
        stages: dict[str, Any] = {}
        if len(inspect.signature(self.backend.add_stages).parameters) == 3:
            self.backend.add_stages(stages, self.options, self.source.language)
        else:
            self.backend.add_stages(stages, self.options)
        module = self.front()
        metadata: dict[str, Any] = {"target": self.target, **vars(self.options)}
        ptx = ""
        for name, stage in stages.items():
            module = stage(module, metadata)
            ptx = str(module) if name == "ptx" else ptx
        return Product(module=module, metadata=metadata, ptx=ptx)
