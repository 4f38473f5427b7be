"""Owns turning a Program into something callable on a device, and a Problem's recipe into inputs.

Runs in a referee (the reference) or in a single-use case (the candidate), never in a loop. Every failure of the
person's code leaves as a CandidateFault with its place.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch

from evalcore.facts import KernelFacts
from evalcore.gpu import compile_faults, cuda_build, importing, launched
from evalcore.gpu.entries import attribute, entry_of, in_order, on_device, seed_everything, with_globals
from evalcore.gpu.faults import CandidateFault, fault, locate
from evalcore.jobs import Flag
from evalcore.problem import Inputs, InputsKind, Problem, Program, ProgramKind
from evalcore.slicing import bound_names, override_constants, parse, slice_module


@dataclass(slots=True, kw_only=True)
class Loaded:
    """A program that can be called. `state` is empty unless the program is a module with parameters or buffers."""

    program: Program
    module: ModuleType
    function: Callable[..., Any]
    device: str
    inputs: Inputs
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    project: importing.Project | None = None
    grad: bool = False
    """True where gradients are part of the task; else a module runs without recording them."""
    context: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext

    def call(self, inputs: list[Any]) -> Any:
        """Runs the program on `inputs`. Raises CandidateFault with the place in the person's file."""
        try:
            with self.context():
                _guard(self, inputs)
                if self.grad or self.program.kind is not ProgramKind.MODULE:
                    return self.function(*inputs)
                with torch.no_grad():
                    return self.function(*inputs)
        except BaseException as error:  # the fence around user code
            raise CandidateFault(locate(error, self.program)) from error

    def kernel_facts(self) -> tuple[KernelFacts, ...]:
        """What the compilers made of the kernels that have run, or how often each was interpreted."""
        from evalcore.gpu.launched import kernel_facts

        return kernel_facts(self.device)

    def files(self) -> tuple[tuple[str, str], ...]:
        """(path, sha256) of the project files that were loaded besides the program's own."""
        return tuple(sorted(self.project.files.items())) if self.project else ()

    @property
    def notes(self) -> list[Flag]:
        """Remarks that a person should see beside the verdict."""
        return _notes(self.device)


def load(  # noqa: PLR0913  (the seam's signature)
    problem: Problem,
    program: Program,
    *,
    sizes: dict[str, int],
    device: str,
    seed: int,
    init_inputs: list[Any] | None,
    scratch: str,
) -> Loaded:
    """Makes `program` callable on `device` ('cpu' is Triton's interpreter, 'cuda:N' the card).

    sizes: values for the problem's size constants; they replace those in the reference's file. seed: set before a
    module is constructed, the same for both sides. init_inputs: constructor arguments, None where the format has none.
    scratch: a folder of this case alone, for caches. Raises CandidateFault.
    """
    if program.kind is ProgramKind.CUDA_KERNEL:
        return _load_kernel(problem, program, sizes=sizes, device=device, scratch=scratch)
    context = _prepare(device, scratch)
    project = importing.begin(program.path, problem.project_root, problem.overlays)
    try:
        text = program.text
        if program.path == problem.reference.path:
            text = override_constants(text, sizes)
        with context():
            module = _run(project, text, _kept_names(problem, program))
            function, state = entry_of(module, problem, program, device=device, seed=seed, init_inputs=init_inputs)
    except BaseException as error:  # the fence around user code
        raise CandidateFault(locate(error, program)) from error
    return Loaded(
        program=program, module=module, function=function, device=device, inputs=problem.inputs, state=state,
        project=project, grad=problem.backward, context=context,
    )


def _load_kernel(problem: Problem, program: Program, *, sizes: dict[str, int], device: str, scratch: str) -> Loaded:
    """A bare CUDA kernel. The reference is loaded beside it, for the look of the outputs only."""
    from evalcore.gpu.cuda_launch import KernelRequest, load_kernel

    reference = load(
        problem, problem.reference, sizes=sizes, device=device, seed=0, init_inputs=None, scratch=scratch
    )
    constants = {**dict(problem.inputs.constants), **sizes}
    request = KernelRequest(
        program=program, names=problem.inputs.names, sizes=constants, device=device, reference=reference.function,
        overlays=dict(problem.overlays),
    )
    try:
        function = load_kernel(request)
    except (RuntimeError, OSError) as error:
        raise CandidateFault(locate(error, program)) from error
    return Loaded(
        program=program, module=ModuleType(program.entry), function=function, device=device, inputs=problem.inputs,
        project=reference.project, context=reference.context,
    )


def make_inputs(loaded_reference: Loaded, problem: Problem, *, sizes: dict[str, int], seed: int) -> list[Any]:
    """One fresh argument list for both sides, made as the problem says, on the reference's device.

    Raises CandidateFault where the recipe itself fails; its place lies in the reference's file or is None.
    """
    inputs = problem.inputs
    try:
        with loaded_reference.context():
            seed_everything(seed)
            if inputs.kind is InputsKind.GET_INPUTS:
                made = on_device(attribute(loaded_reference.module, inputs.function), loaded_reference.device, seed)
                return in_order(made, inputs.names)
            return _run_statements(loaded_reference, inputs, sizes)
    except BaseException as error:  # the fence around user code
        raise CandidateFault(locate(error, loaded_reference.program)) from error


def init_inputs(loaded_reference: Loaded) -> list[Any]:
    """Constructor arguments of a module problem; [] where it has none. Raises CandidateFault."""
    name = loaded_reference.inputs.init_function
    function = getattr(loaded_reference.module, name, None) if name else None
    if function is None:
        return []
    try:
        with loaded_reference.context():
            seed_everything(0)
            made = function()
    except BaseException as error:  # the fence around user code
        raise CandidateFault(locate(error, loaded_reference.program)) from error
    return list(made) if isinstance(made, (list, tuple)) else [made]


# ------------------------------------------------------------------------------------------------------------- one load


def _prepare(device: str, scratch: str) -> Callable[[], AbstractContextManager[None]]:
    """Readies this process for user code on `device`; returns the state in which it runs."""
    compile_faults.watch_compiler()
    launched.forget()
    cuda_build.install(device, scratch)
    if device != "cpu":
        from evalcore.gpu import autotune

        if scratch:
            os.environ["TRITON_CACHE_DIR"] = os.path.join(scratch, "triton")
        autotune.install(interpreted=False)
        launched.watch()
        return contextlib.nullcontext
    if importing_interpreter():
        from evalcore.gpu import interpreter

        interpreter.install()
        interpreter.forget()
        return interpreter.running
    from evalcore.gpu import fake_cuda, redirect

    fake_cuda.install_torch()
    return redirect.pretend_cuda


def importing_interpreter() -> bool:
    """True where this process can interpret Triton kernels: Triton is there and was imported for it."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def _kept_names(problem: Problem, program: Program) -> list[str]:
    """Names of the module that the slice must keep."""
    names = [program.entry.split(".")[0]] if program.entry else []
    names += _names_in(program.call)
    reference = problem.reference
    if (program.path, program.entry, program.call) == (reference.path, reference.entry, reference.call):
        inputs = problem.inputs
        if inputs.kind is InputsKind.GET_INPUTS:
            names += [inputs.function, *([inputs.init_function] if inputs.init_function else [])]
        else:
            names += _names_in(inputs.statements)
    return names


def _names_in(text: str) -> list[str]:
    if not text.strip():
        return []
    return [node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)]


def _run(project: importing.Project, text: str, keep: Iterable[str]) -> ModuleType:
    """Executes the slice that `keep` needs as the project's file."""
    parse_or_raise(text, project.path)
    project.dropped = bound_names(text)
    if importing.is_member(project.path, text):
        return importing.run_main(project, slice_module(text, gentle=True))
    keep = list(keep)
    try:
        return importing.run_main(project, slice_module(text, keep))
    except ImportError:
        # perhaps an import that only the dropped part of the file needs, such as pytest or a plotting package
        lean = slice_module(text, keep, lean=True)
        if lean == project.main_text:
            raise
        importing.unload(project)
        return importing.run_main(project, lean)


def parse_or_raise(text: str, path: str) -> None:
    """Raises the SyntaxError of `text`, if it has one, with `path` as its file."""
    try:
        parse(text.lstrip("\ufeff"))
    except SyntaxError as error:
        error.filename = path
        raise


def _run_statements(loaded: Loaded, inputs: Inputs, sizes: Mapping[str, int]) -> list[Any]:
    namespace = with_globals(loaded.module.__dict__)
    namespace.update(dict(inputs.constants))
    namespace.update(sizes)
    text = override_constants(inputs.statements, sizes)
    exec(compile(text, "<inputs>", "exec", dont_inherit=True), namespace)
    missing = [name for name in inputs.names if name not in namespace]
    if missing:
        raise fault("exception", f"the statements that make the inputs leave no {', '.join(missing)}")
    return [namespace[name] for name in inputs.names]


def _notes(device: str) -> list[Flag]:
    interpreter = sys.modules.get("evalcore.gpu.interpreter")
    interpreted: list[Flag] = interpreter.notes() if device == "cpu" and interpreter is not None else []
    return [*interpreted, *launched.notes()]


def _guard(loaded: Loaded, inputs: list[Any]) -> None:
    """Tells the sanitizer where each input ends: they lie between canaries in larger buffers."""
    sanitizer = sys.modules.get("evalcore.gpu.sanitizer")
    if loaded.device == "cpu" and sanitizer is not None:
        sanitizer.guard([*_tensors(inputs), *loaded.state.values()])


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
