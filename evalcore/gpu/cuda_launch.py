"""Owns a bare __global__ function as a program: compiled by NVRTC, launched as the person's comment says.

Grid, block and arguments are Python expressions over the input names; outputs are allocated with the shape and type of
the reference's. Never builds host code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from evalcore.facts import Place
from evalcore.gpu import cuda_text, importing, launched
from evalcore.gpu.cuda_driver import CudaFunction, CudaModule, LaunchFault, LaunchShape
from evalcore.gpu.faults import fault
from evalcore.gpu.nvrtc import Built, build, kernel_facts
from evalcore.gpu.nvrtc_library import NvrtcMissing
from evalcore.problem import CudaLaunch, Program, ProgramKind


@dataclass(slots=True, kw_only=True)
class KernelProgram:
    """A kernel with its launch, callable with the inputs in order."""

    function: CudaFunction | None
    """None without a GPU."""
    entry: str
    launch: CudaLaunch
    place: Place
    names: tuple[str, ...]
    sizes: dict[str, int]
    reference: Callable[..., Any]
    """The reference, run on meta tensors once per input shape, to learn what the outputs look like."""
    facts: str = ""
    compiled: dict[str, CodeType] = field(default_factory=dict)
    shapes: dict[Any, list[torch.Tensor]] = field(default_factory=dict)

    def __call__(self, *inputs: Any) -> Any:
        if self.function is None:
            raise fault("cannot_interpret", f"CUDA kernels do not run without a GPU; {self.facts}", self.place)
        outputs = self._outputs(inputs)
        scope: dict[str, Any] = {**self.sizes, **dict(zip(self.names, inputs, strict=False)), "torch": torch}
        scope.update(zip(map(_bare, self.launch.outputs), outputs, strict=True))
        shape = LaunchShape(
            grid=self._extent(self.launch.grid, scope),
            block=self._extent(self.launch.block, scope),
            shared_bytes=int(self._value(self.launch.shared_bytes, scope)),
        )
        args = [self._value(one, scope) for one in self.launch.args]
        try:
            self.function.launch(shape, args)
        except LaunchFault as error:
            raise fault(error.kind, str(error), self.place) from error
        launched.count_cuda(self.entry)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _outputs(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        key = tuple((tuple(one.shape), one.dtype) if isinstance(one, torch.Tensor) else repr(one) for one in inputs)
        if key not in self.shapes:
            self.shapes[key] = _like_reference(self.reference, inputs, len(self.launch.outputs))
        made = []
        for name, like in zip(self.launch.outputs, self.shapes[key], strict=True):
            make = torch.zeros if name.replace(" ", "").endswith("=0") else torch.empty
            made.append(make(like.shape, dtype=like.dtype, device="cuda"))
        return made

    def _value(self, expression: str, scope: dict[str, Any]) -> Any:
        code = self.compiled.get(expression)
        if code is None:
            code = self.compiled[expression] = compile(expression.strip(), "<launch>", "eval", dont_inherit=True)
        try:
            return eval(code, dict(scope))
        except (NameError, AttributeError, TypeError, ValueError, IndexError, ArithmeticError) as error:
            raise fault(
                "exception", f"`{expression}` of the launch: {type(error).__name__}: {error}", self.place
            ) from error

    def _extent(self, expression: str, scope: dict[str, Any]) -> tuple[int, int, int]:
        value = self._value(expression, scope)
        parts = list(value) if isinstance(value, (list, tuple)) else [value]
        whole = [int(part) for part in parts] + [1] * (3 - len(parts))
        return whole[0], whole[1], whole[2]


def _bare(name: str) -> str:
    return name.split("=", 1)[0].strip()


def _like_reference(reference: Callable[..., Any], inputs: Sequence[Any], count: int) -> list[torch.Tensor]:
    """Tensors on the meta device that look like the reference's outputs for these inputs."""
    metas = [one.to("meta") if isinstance(one, torch.Tensor) else one for one in inputs]
    try:
        made = reference(*metas)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        made = reference(*[one.clone() if isinstance(one, torch.Tensor) else one for one in inputs])
    found = [one for one in (made if isinstance(made, (list, tuple)) else [made]) if isinstance(one, torch.Tensor)]
    if len(found) != count:
        raise fault("exception", f"the launch names {count} outputs, the reference returns {len(found)}")
    return [one.to("meta") for one in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """What is needed to load a kernel."""

    program: Program
    names: tuple[str, ...]
    sizes: dict[str, int]
    device: str
    reference: Callable[..., Any]
    overlays: dict[str, str]


def load_kernel(request: KernelRequest) -> KernelProgram:
    """Compiles the program's text and finds its kernel. Raises CandidateFault with the place of the first error."""
    program = request.program
    if program.launch is None or program.kind is not ProgramKind.CUDA_KERNEL:
        raise fault("exception", f"{program.entry} has no launch: add grid, block, args and outputs to its comment")
    text = program.text.lstrip("\ufeff").replace("\r\n", "\n")
    kernel, place = _kernel(program, text)
    try:
        built = build(
            text, path=program.path, arch=_arch(request.device), overlays=request.overlays,
            options=program.launch.options, expressions=[program.entry] if "<" in program.entry else [],
        )
    except NvrtcMissing as error:
        raise fault("cannot_interpret", str(error), place) from error
    _raise_first_error(built, program)
    for facts in kernel_facts(built):
        launched.record_cuda(facts)
    if request.device == "cpu":
        return _program(request, None, place, _words(built, program.entry))
    lowered = next((one.lowered for one in built.kernels if one.name == program.entry), program.entry)
    assert built.compiled.cubin is not None
    try:
        function = CudaModule(built.compiled.cubin).function(lowered, kernel.parameters)
    except LaunchFault as error:
        raise fault(error.kind, str(error), place) from error
    return _program(request, function, place, "")


def _program(request: KernelRequest, function: CudaFunction | None, place: Place, facts: str) -> KernelProgram:
    launch = request.program.launch
    assert launch is not None
    names = request.names or _parameter_names(request.reference)
    return KernelProgram(
        function=function, entry=request.program.entry, launch=launch, place=place, names=names, sizes=request.sizes,
        reference=request.reference,
        facts=facts,
    )


def _parameter_names(reference: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(reference).parameters)
    except (TypeError, ValueError):
        return ()


def _kernel(program: Program, text: str) -> tuple[cuda_text.KernelText, Place]:
    wanted = program.entry.split("<")[0]
    for kernel in cuda_text.kernels(text):
        if kernel.name == wanted:
            line = text.count("\n", 0, kernel.offset) + 1
            column = kernel.offset - (text.rfind("\n", 0, kernel.offset) + 1) + 1
            end = column + len(kernel.name)
            return kernel, Place(path=program.path, line=line, column=column, end_line=line, end_column=end)
    raise fault("compile", f"no __global__ function {wanted!r}", Place(path=program.path, line=1))


def _raise_first_error(built: Built, program: Program) -> None:
    errors = built.compiled.errors
    if not errors:
        return
    first = errors[0]
    if built.compiled.missing_header:
        place = Place(path=program.path, line=first.line)
        raise fault("cannot_interpret", f"NVRTC cannot compile this text: {first.text}", place)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    path = program.path if not first.file else importing.beside(program.path, first.file)
    raise fault(
        "compile", f"{first.text}{more}", Place(path=path, line=first.line, column=first.column), built.compiled.log
    )


def _words(built: Built, entry: str) -> str:
    for kernel in built.kernels:
        if kernel.name == entry and kernel.resources is not None:
            return f"{entry} compiles ({kernel.resources.registers} registers)"
    return f"{entry} compiles"


def _arch(device: str) -> int:
    if device == "cpu":
        from evalcore.gpu.nvrtc import DEFAULT_ARCH

        return DEFAULT_ARCH
    major, minor = torch.cuda.get_device_capability(device)
    return major * 10 + minor

