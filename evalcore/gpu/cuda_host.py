"""Owns running a CUDA extension without building it: plain host functions become Python, their kernels come from NVRTC.

A minute of C++ build becomes tens of milliseconds. Only host code that is understood whole is taken; for anything else
`interpret` returns None and the real builder runs. Device time is the same either way, call time is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from evalcore.gpu import host_runtime, importing, launched
from evalcore.gpu.cuda_driver import CudaFunction, CudaModule, LaunchFault, LaunchShape, parameter_kind
from evalcore.gpu.cuda_text import KernelText, kernels
from evalcore.gpu.host_expressions import Expressions, Scope
from evalcore.gpu.host_statements import Translator
from evalcore.gpu.host_tokens import Unsupported, constants, expand, host_functions, macros
from evalcore.gpu.nvrtc import Built, build
from evalcore.jobs import Flag

_BINDING = re.compile(r'\bm\s*\.\s*def\s*\(\s*"([^"]+)"\s*,\s*(?:&|torch::wrap_pybind_function\()?\s*&?\s*(\w+)')
NOTE = Flag(
    code="host-interpreted",
    message="the C++ host code was interpreted and its kernels compiled by NVRTC: device time is that of the kernels, "
    "call time is not that of a built extension",
)


@dataclass(slots=True, kw_only=True)
class Extension:
    """The kernels of one extension, compiled as they are needed."""

    text: str
    path: str
    """Where the text belongs, for headers beside it."""
    arch: int
    options: tuple[str, ...]
    kernels: dict[str, KernelText]
    built: Built
    functions: dict[str, CudaFunction] = field(default_factory=dict)
    modules: list[CudaModule] = field(default_factory=list)

    def launch(
        self, name: str, templates: Sequence[str], grid: Any, block: Any, shared: Any, args: Sequence[Any]
    ) -> None:
        """What a `<<<...>>>` in the host code does."""
        expression = f"{name}<{', '.join(templates)}>" if templates else name
        function = self.functions.get(expression)
        if function is None:
            function = self.functions[expression] = self._function(name, expression, templates)
        shape = LaunchShape(
            grid=host_runtime.dims(grid), block=host_runtime.dims(block), shared_bytes=int(shared)
        )
        function.launch(shape, args)
        launched.count_cuda(name)

    def _function(self, name: str, expression: str, templates: Sequence[str]) -> CudaFunction:
        built = self.built
        if templates and expression not in built.compiled.lowered:
            project = importing.current()
            built = build(
                self.text, path=self.path, arch=self.arch, expressions=[expression], options=self.options, named=False,
                overlays=project.overlays if project is not None else {},
            )
            if expression not in built.compiled.lowered:
                first = next(iter(built.compiled.errors), None)
                told = f": {first.text}" if first is not None else ""
                raise LaunchFault(f"{expression} does not compile{told}", "compile")
        lowered = next((one.lowered for one in built.kernels if one.name == expression), expression)
        assert built.compiled.cubin is not None
        module = CudaModule(built.compiled.cubin)
        self.modules.append(module)
        return module.function(lowered, _parameters(self.kernels[name], templates))


def _parameters(kernel: KernelText, templates: Sequence[str]) -> tuple[str, ...]:
    """Parameter declarations with the template's type names replaced."""
    declarations = kernel.parameters
    for parameter, value in zip(kernel.template, templates, strict=False):
        name = parameter.split("=")[0].split()[-1]
        declarations = tuple(re.sub(rf"\b{name}\b", value, one) for one in declarations)
    return declarations


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One load_inline."""

    name: str
    cuda: str
    cpp: str
    functions: tuple[str, ...]
    path: str
    arch: int
    options: tuple[str, ...]
    built: Built


def interpret(request: Request) -> ModuleType | None:
    """A module with the extension's functions, or None where the host code is not plain enough."""
    try:
        source, exported = translate(request.cuda, request.cpp, request.functions)
    except Unsupported:
        return None
    found = {one.name: one for one in kernels(request.cuda)}
    plain = [one for one in found.values() if not one.template]
    if any(parameter_kind(parameter) is None for kernel in plain for parameter in kernel.parameters):
        return None
    extension = Extension(
        text=request.cuda, path=request.path, arch=request.arch, options=request.options, kernels=found,
        built=request.built,
    )
    namespace: dict[str, Any] = {"rt": host_runtime, "torch": torch, "launch": extension.launch}
    exec(compile(source, f"<host code of {request.name}>", "exec", dont_inherit=True), namespace)
    module = ModuleType(request.name)
    for python_name, function in exported.items():
        setattr(module, python_name, namespace[f"f_{function}"])
    launched.note(NOTE)
    return module


def translate(cuda: str, cpp: str, functions: Sequence[str]) -> tuple[str, dict[str, str]]:
    """(Python source, exported name -> function) of an extension's host code. Raises Unsupported."""
    texts = (cuda, cpp)
    known = {one.name: one for text in texts for one in host_functions(text)}
    defined = {name: macro for text in texts for name, macro in macros(text).items()}
    exported = {name: name for name in functions}
    for text in texts:
        exported.update({match[1]: match[2] for match in _BINDING.finditer(text)})
    missing = [name for name in exported.values() if name not in known]
    if missing or not exported:
        raise Unsupported(f"a function that is not defined here: {', '.join(missing)}")
    translator = Translator(known, {one.name: one for one in kernels(cuda)}, defined)
    lines = []
    for name, tokens in [pair for text in texts for pair in constants(text)]:
        try:
            value = Expressions(expand(list(tokens), defined), Scope()).text()
        except Unsupported:
            continue  # an error only where host code uses it
        translator.constants[name] = f"c_{name}"
        lines.append(f"c_{name} = {value}")
    done: set[str] = set()
    queue = list(exported.values())
    while queue:
        name = queue.pop()
        if name in done or name not in known:
            continue
        done.add(name)
        lines.append(translator.function(name))
        queue += [token.text for token in known[name].body if token.text in known]
    return "\n\n".join(lines) + "\n", exported


class Counted:
    """A kernel of torch.cuda._compile_kernel whose launches are counted."""

    def __init__(self, kernel: Callable[..., Any], name: str) -> None:
        self.kernel = kernel
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        launched.count_cuda(self.name)
        return self.kernel(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)
