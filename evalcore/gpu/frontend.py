"""Owns the check while typing: Triton's front end over text that nobody runs, with guessed types.

A guess must never make an error. What no guess can change (an undefined name, an unknown `tl` function, a construct
that kernels do not have) is reported at once; anything else only where every guess fails in the same place for the
same reason, and where no size stands in the kernel that the text does not fix.
"""

from __future__ import annotations

import ast
import builtins
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from evalcore.facts import KernelFacts
from evalcore.gpu import compile_faults, fake_cuda, importing, kernel_launches, kernel_names, kernel_syntax, redirect
from evalcore.gpu.kernel_launches import Launch
from evalcore.gpu.kernel_syntax import KernelSyntax, Parameter
from evalcore.gpu.nvrtc import arch_of
from evalcore.jobs import Diagnostic
from evalcore.slicing import bound_names, parse, slice_module
from evalcore.source_lines import Lines
from evalcore.static.compile import Signature, front_end

_KERNEL_S = 1.0
"""Seconds that guessing at one kernel may take; past it nothing is said about it."""
_POINTERS = ("*fp32", "*fp16", "*i32", "*fp32", "*i8", "*bf16", "*i64")
_SIZES = ((64,), (32,), (128,), (16, 32, 64, 128), (16,), (1024,), (64,))
_TELLING = re.compile(
    r"invalid axis|axis must be|convert .* of type <class 'str'>|[Mm]ask (?:must|argument|cannot|should)|"
    r"arange's (?:arguments|end|start)|Did you forget to add @triton.jit|cannot be called|"
    r"return (?:inside|statement)|Unsupported (?:return|conditional)|is not callable"
)
"""Errors that no other type or size of an argument could take away, once the same guess fails alike everywhere."""
_SHAPES = re.compile(r"shape|dimension|broadcast|power of|static_assert|elements|reduction", re.IGNORECASE)
"""Errors that hang on sizes alone: to be trusted where the text fixes every size."""
_NOT_DEFINED = re.compile(r"name '(\w+)' is not defined|(\w+) is not defined")
_ALWAYS_WRONG = re.compile(
    r"module 'triton[\w.]*' has no attribute|Cannot access global variable|comprehensions are not supported|"
    r"unsupported AST node"
)
_CALL_SHAPE = re.compile(
    r"missing \d+ required (?:positional|keyword)|unexpected keyword argument|got multiple values|"
    r"takes (?:from )?\d+ (?:to \d+ )?positional|takes fewer positional|missing a required argument|too many positional"
)


@dataclass(frozen=True, slots=True)
class _Failure:
    """What one guess came to."""

    told: compile_faults.Told
    kind: str
    """Name of the exception's class."""

    def key(self) -> tuple[Any, ...]:
        place = self.told.place
        spot = (place.path, place.line, place.column) if place is not None else None
        return spot, re.sub(r"\d+|<[^>]*>|'[^']*'|fp\d+|bf16|u?int\d+|i\d+", "_", self.told.message)


def check_triton(
    path: str,
    text: str,
    overlays: Sequence[tuple[str, str]] = (),
    kernels: Sequence[str] = (),
    target: str | None = None,
    root: str = "",
) -> tuple[list[Diagnostic], list[KernelFacts]]:
    """Errors of Triton's front end in `text`, on their lines. Resources need real launches, so there are none.

    Runs the text's imports and the assignments that its kernels need, so it belongs into a fork that is thrown away.
    kernels: names to check; () is every kernel. A text that does not parse or does not load gives nothing.
    """
    try:
        tree = parse(text.lstrip("\ufeff"))
    except SyntaxError:
        return [], []
    found = _jit_definitions(tree)
    if not found:
        return [], []
    module = load(path, text, overlays, root, list(found))
    if module is None:
        return [], []
    functions = {name: function for name in found if (function := jit_function(module, name)) is not None}
    syntax = {name: kernel_syntax.read(found[name]) for name in functions}
    parameters = {name: [one.name for one in each.parameters] for name, each in syntax.items()}
    launches = kernel_launches.launches(tree, parameters, vars(module))
    called = {name for each in syntax.values() for name in each.called if name != each.name}
    launched = {one.kernel for one in launches}
    arch = arch_of(target)
    diagnostics: list[Diagnostic] = []
    for name in functions:
        if not kernels or name in kernels or name in called:
            diagnostics += _plain_errors(path, text, found[name], functions[name].fn.__globals__)
    told = {(one.path, one.line) for one in diagnostics}
    for name, function in functions.items():
        if (kernels and name not in kernels) or (name in called and name not in launched):
            continue
        evidence = [one for one in launches if one.kernel == name]
        subject = _Subject(function, syntax[name], _configs(module, name), evidence, arch)
        failure = _check(subject)
        if failure is not None:
            diagnostics += [one for one in _diagnostic(failure) if (one.path, one.line) not in told]
    return list(dict.fromkeys(diagnostics)), []


def _jit_definitions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Kernels at module level: functions with a decorator that ends in `jit`."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(_is_jit(one) for one in node.decorator_list):
            found[node.name] = node
    return found


def _is_jit(decorator: ast.expr) -> bool:
    """True for triton.jit, however it is imported; gluon's kernels are another language."""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    return ast.unparse(decorator) in {"jit", "triton.jit", "tl.jit", "triton.runtime.jit"}


def load(
    path: str, text: str, overlays: Sequence[tuple[str, str]], root: str, keep: Iterable[str]
) -> ModuleType | None:
    """The module with nothing but its kernels and what they need; None where it cannot be made."""
    compile_faults.watch_compiler()
    fake_cuda.install()
    project = importing.begin(path, root, overlays)
    try:
        with redirect.pretend_cuda():
            project.dropped = bound_names(text)
            member = importing.is_member(project.path, text)
            sliced = slice_module(text, gentle=True) if member else slice_module(text, keep, lean=True)
            return importing.run_main(project, sliced)
    except (Exception, SystemExit):  # noqa: BLE001  (the fence around user code: running the file will tell)
        return None


def jit_function(module: ModuleType, name: str) -> Any:
    """The JITFunction under autotune and heuristics, or None."""
    function = getattr(module, name, None)
    for _ in range(8):
        if hasattr(function, "arg_names") and hasattr(function, "src"):
            return function
        function = getattr(function, "fn", None)
    return None


def _configs(module: ModuleType, name: str) -> list[dict[str, Any]]:
    """What the autotuner's configs fix, first config first."""
    function = getattr(module, name, None)
    for _ in range(8):
        configs = getattr(function, "configs", None)
        if configs:
            return [dict(one.kwargs) for one in configs]
        function = getattr(function, "fn", None)
    return []


# ---------------------------------------------------------------------------------------------------------- one kernel


@dataclass(frozen=True, slots=True)
class _Subject:
    """One kernel and what the text says about its use."""

    function: Any
    syntax: KernelSyntax
    configs: list[dict[str, Any]]
    launches: list[Launch]
    arch: int


def _check(subject: _Subject) -> _Failure | None:
    """The error to report, or None."""
    first: _Failure | None = None
    syntax = subject.syntax
    fixed = _fixed(syntax, subject.configs, subject.launches)
    deadline = time.monotonic() + _KERNEL_S
    for signature in _guesses(syntax, fixed):
        if time.monotonic() > deadline:
            return None
        failure = _try(subject.function, signature, subject.arch)
        if failure is None:
            return None
        if _certain(failure, subject.function, syntax):
            return failure
        if not subject.launches:
            return None  # perhaps a helper of another file, called with values that nothing here shows
        if first is not None and failure.key() != first.key():
            return None
        first = first or failure
    return first if first is not None and _trustworthy(first, syntax, fixed) else None


def _try(function: Any, signature: Signature, arch: int) -> _Failure | None:
    try:
        front_end(function, signature, arch)
    except Exception as error:  # noqa: BLE001  (the compiler's verdict; anything that is none of its errors is dropped)
        told = compile_faults.describe(error)
        if told is None or told.kind != "compile" or told.place is None:
            return None
        return _Failure(told, _class_of(error))
    return None


def _class_of(error: BaseException) -> str:
    while error.__cause__ is not None and any(k.__name__ == "CompilationError" for k in type(error.__cause__).__mro__):
        error = error.__cause__
    return type(error).__name__


def _certain(failure: _Failure, function: Any, syntax: KernelSyntax) -> bool:
    """True for errors that no other guess could take away."""
    message = failure.told.message
    if failure.kind == "UnsupportedLanguageConstruct" or _ALWAYS_WRONG.search(message):
        return True
    undefined = _NOT_DEFINED.search(message)
    if undefined:
        name = undefined[1] or undefined[2]
        known = name in syntax.stored or name in function.fn.__globals__ or hasattr(builtins, name)
        return not known and not any(one.name == name for one in syntax.parameters)
    return bool(_CALL_SHAPE.search(message))


def _trustworthy(failure: _Failure, syntax: KernelSyntax, fixed: Mapping[str, list[Any]]) -> bool:
    """True where the guesses that failed alike cover what the text leaves open."""
    open_ = [one for one in syntax.parameters if one.constexpr and one.name not in fixed]
    if any(one.role == "unknown" for one in syntax.parameters) or any(one.role in {"word", "dtype"} for one in open_):
        return False
    message = failure.told.message
    if "pointer" in message or "ptr" in message:
        return False
    return bool(_TELLING.search(message)) or (not open_ and bool(_SHAPES.search(message)))


def _fixed(syntax: KernelSyntax, configs: list[dict[str, Any]], launches: list[Launch]) -> dict[str, list[Any]]:
    """Values that the text fixes, per parameter, in the order of trust."""
    fixed: dict[str, list[Any]] = {}
    for source in [*[one.values for one in launches], *configs]:
        for name, value in source.items():
            fixed.setdefault(name, []).append(value)
    for parameter in syntax.parameters:
        if parameter.has_default:
            fixed.setdefault(parameter.name, []).append(parameter.default)
    constexprs = {one.name for one in syntax.parameters if one.constexpr}
    return {name: values for name, values in fixed.items() if name in constexprs or None in values}


def _guesses(syntax: KernelSyntax, fixed: Mapping[str, list[Any]]) -> Iterator[Signature]:
    """Signatures to try, the likeliest first."""
    for turn, (pointer, sizes) in enumerate(zip(_POINTERS, _SIZES, strict=True)):
        types: dict[str, str] = {}
        constants: dict[str, Any] = {}
        for place, parameter in enumerate(syntax.parameters):
            values = fixed.get(parameter.name)
            if values:
                value = values[min(turn, len(values) - 1)]
                if parameter.constexpr or value is None:
                    constants[parameter.name] = value
                    continue
            if parameter.constexpr:
                constants[parameter.name] = _constant_guess(parameter, turn, sizes[place % len(sizes)])
            else:
                types[parameter.name] = _type_guess(parameter, pointer)
        yield Signature(types=types, constants=constants)


def _type_guess(parameter: Parameter, pointer: str) -> str:
    if parameter.role == "index":
        return "*i64" if pointer == "*i64" else "*i32"
    return {"pointer": pointer, "float": "fp32", "unknown": pointer}.get(parameter.role, "i32")


def _constant_guess(parameter: Parameter, turn: int, size: int) -> Any:
    if parameter.role == "flag":
        return turn % 2 == 0
    if parameter.role == "dtype":
        import triton.language as tl

        return (tl.float32, tl.float16)[turn % 2]
    if parameter.role == "word":
        return ""
    return size


def _plain_errors(
    path: str, text: str, node: ast.FunctionDef, namespace: Mapping[str, Any]
) -> Iterator[Diagnostic]:
    """Names that exist nowhere: certain without compiling, also in branches that no guess reaches."""
    lines = Lines(text.lstrip("\ufeff"))
    for part, message in kernel_names.undefined(node, namespace):
        start, end = lines.span(part)
        (line, column), (end_line, end_column) = lines.position(start), lines.position(end)
        yield Diagnostic(
            path=path, line=line, column=column, severity="error", code="triton", message=message, end_line=end_line,
            end_column=end_column,
        )


def _diagnostic(failure: _Failure) -> Iterator[Diagnostic]:
    place = failure.told.place
    assert place is not None
    yield Diagnostic(
        path=place.path, line=place.line, column=place.column, severity="error", code="triton",
        message=failure.told.message, end_line=place.end_line, end_column=place.end_column,
    )
