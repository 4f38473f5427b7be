"""Owns the shapes of what is seen in a text: kernels, launches, wrappers. Never touches a tree or LSP.

All spans are UTF-8 byte offsets into the whole text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from server.analysis.finding import Span


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a kernel."""

    name: str
    span: Span
    constexpr: bool
    annotation: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class Decorator:
    """One decorator of a kernel."""

    name: str
    """As written, without arguments: 'triton.autotune'."""
    kind: str
    """'jit', 'autotune', 'heuristics' or 'other'."""
    span: Span


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel: `kernel[grid](args)`, `kernel<<<grid, block>>>(args)`, `kernel.warmup(args)`."""

    kernel: str
    span: Span
    grid: str
    """Source of what stands between the brackets."""
    args: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]
    owner: str
    """Function or method that launches, '' at module level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StringOrigin:
    """The Python string that CUDA text stands in."""

    span: Span
    """The whole literal, prefix and quotes included."""
    content: Span
    prefix: str
    """'', 'r', 'f', ... in lower case."""
    terminated: bool
    variable: str
    """The name it is assigned to, '' where it is passed directly."""
    maker: str
    """'load_inline', 'RawKernel', '_compile_kernel', ... where the use is in sight, else ''."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSite:
    """One kernel, or a jitted helper of one."""

    path: str
    name: str
    language: str
    """'triton' or 'cuda'."""
    qualname: str
    """With enclosing classes and functions, 'Model.forward.kernel'."""
    span: Span
    """Decorators or `template` included, to the end of the body."""
    name_span: Span
    signature_span: Span
    launches: tuple[Launch, ...] = ()
    text_sha: str = ""
    """sha256 of the whole text that this site was found in."""
    origin: StringOrigin | None = None
    complete: bool = True
    """False where the definition is half-typed."""
    details: Callable[[], tuple[tuple[Param, ...], tuple[Decorator, ...]]] = field(
        default=lambda: ((), ()), repr=False, compare=False
    )
    """Makes parameters and decorators when somebody asks: a file of a hundred kernels has thousands of them."""

    @property
    def params(self) -> tuple[Param, ...]:
        """Parameters in order."""
        return self.details()[0]

    @property
    def decorators(self) -> tuple[Decorator, ...]:
        """Decorators in order."""
        return self.details()[1]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A host function that launches kernels."""

    name: str
    qualname: str
    span: Span
    name_span: Span
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What is seen in one text."""

    path: str
    language: str
    """'python', 'cuda', 'notebook' or 'other'."""
    text_sha: str
    kernels: tuple[KernelSite, ...] = ()
    launches: tuple[Launch, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    imports: tuple[str, ...] = ()
    """Imported module names, as written."""
    parses: bool = True
    """False while a part of the text is half-typed."""
