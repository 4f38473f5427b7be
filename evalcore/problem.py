"""Owns Problem: what a candidate is to be compared with, and on which inputs. Never reads a file.

A Problem is made by `evalcore.bindings` from syntax alone. It carries source text, so that the worker never depends on
what lies on disk at another moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class ProgramKind(str, Enum):
    """How a program's entry is called."""

    MODULE = "module"
    """`entry` is a class like torch.nn.Module: built with init inputs, called with inputs (KernelBench)."""
    FUNCTION = "function"
    """`entry` is a callable, called with the inputs in order."""
    EXPRESSION = "expression"
    """`call` is a Python expression over the input names (tutorial style)."""
    CUDA_KERNEL = "cuda_kernel"
    """`entry` is a __global__ function in CUDA text, launched as `launch` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaLaunch:
    """How a bare __global__ function is launched. Expressions are Python over input names and size constants."""

    grid: str
    block: str
    args: tuple[str, ...]
    """Argument expressions in order; a name in `outputs` is a buffer that we allocate."""
    outputs: tuple[str, ...]
    """Names of output buffers; each has the shape and dtype of the reference's output of the same place."""
    shared_bytes: str = "0"
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One side's code: the whole text of its file and what of it to call."""

    path: str
    """Absolute path of the file; fixes package, relative imports and data files. For messages and import context."""
    text: str
    """The file's text at judging (an unsaved buffer wins over the disk)."""
    entry: str
    """Name of class, function or __global__ kernel; '' for a pure expression."""
    kind: ProgramKind
    call: str = ""
    """EXPRESSION: the expression, e.g. 'softmax(x)' or 'torch.softmax(x, axis=1)'."""
    launch: CudaLaunch | None = None


class InputsKind(str, Enum):
    """Where the inputs come from."""

    GET_INPUTS = "get_inputs"
    """The reference's module has get_inputs() and perhaps get_init_inputs()."""
    STATEMENTS = "statements"
    """`statements` is Python that assigns `names` when run in the reference's module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """A recipe for inputs, run in the reference's module, in the referee."""

    kind: InputsKind
    function: str = "get_inputs"
    init_function: str | None = None
    statements: str = ""
    names: tuple[str, ...] = ()
    """STATEMENTS: the names the statements leave, in the order of the parameters. GET_INPUTS: ()."""
    constants: tuple[tuple[str, int], ...] = ()
    """Integer size constants that inputs depend on (name, given value): module constants that get_inputs uses and
    get_init_inputs does not, or names assigned by `statements` or swept by a perf_report. A Case may override them."""
    batch_like: tuple[str, ...] = ()
    """Those of `constants` that look like a batch or row count, to be reduced first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One size setting at which a candidate is judged."""

    name: str
    """Short and readable, e.g. '4096x4096' or 'as given'."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Overrides of Inputs.constants; () is the problem as given."""
    origin: str = "given"
    """'given' (listed by the format), 'reduced' (made small enough for here), 'neighbour' (n-1, n+1, a prime, ...)."""
    timed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """|got - want| <= atol + rtol * |want|, and whose rule that is."""

    atol: float
    rtol: float
    origin: str
    """'format' (the task format's own), 'person' (written in a comment or odyssey.toml), 'measured' (ours)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the operator must do at least, for one case."""

    flops: int | None
    bytes_read: int | None
    bytes_written: int | None
    dtype: str
    origin: str
    """'counted' (by an op counter on meta tensors), 'estimated' (by a formula), 'declared' (by the format)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A reference, a candidate's place, inputs and cases."""

    id: str
    """Stable and readable, e.g. 'softmax.py::softmax'."""
    format: str
    """Which binding made it: 'kernelbench', 'tutorial', 'comment', 'toml', ..."""
    reference: Program
    candidate: Program
    inputs: Inputs
    cases: tuple[Case, ...]
    """Largest given case first: that one stands on the line."""
    tolerance: Tolerance | None = None
    """The format's or the person's; None lets the judge derive one before the candidate runs."""
    kernels: tuple[str, ...] = ()
    """Names of the @triton.jit or __global__ kernels that the candidate is expected to launch."""
    project_root: str = ""
    """Folder put on sys.path as the user's Python would see it."""
    overlays: tuple[tuple[str, str], ...] = ()
    """(absolute path, text) of unsaved buffers of helper modules, laid over the disk."""
    backward: bool = False
    """True where gradients are part of the task."""
    reference_line: int = 0
    """1-based line of the reference, for messages; 0 unknown."""
    notes: tuple[str, ...] = ()
    """Remarks of the binding that a person should see, e.g. which comparison in the file was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape, dtype and strides of one tensor that crosses between referee and case."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """torch's name without the prefix, e.g. 'float32'."""
    stride: tuple[int, ...]
    requires_grad: bool = False
    scalar: Any = field(default=None)
    """For an input that is not a tensor: its plain value (int, float, bool, str, None, or a list of those)."""
    is_tensor: bool = True
    path: tuple[int | str, ...] = ()
    """Where it sits in the argument list: (1,) is the second argument, (1, 'k') a value in a dict there; () means its
    place in the list of specs."""
