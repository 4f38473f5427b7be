"""Owns reading the errors of Triton's compiler: which line of the person's text a CompilationError, an out-of-resources
error or a ptxas error belongs to. Works on the shapes of Triton 3.2 to 3.9, and where Triton was never imported.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
import weakref
from dataclasses import dataclass
from typing import Any

from evalcore.facts import Place
from evalcore.gpu.importing import current, staged_lines

_PTXAS_LINE = re.compile(r"line (\d+)[;,]?\s*(?:error|fatal|warning)?\s*:?\s*(.*)")
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')

_functions: list[weakref.ref[Any]] = []
"""Weak references in the order of definition. Not a set: hashing a JITFunction walks its dependencies and may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A compiler's error in words."""

    kind: str
    message: str
    place: Place | None


def remember(jit_function: Any) -> None:
    """Tells this module of a @triton.jit function, so that an error in its text finds its file again."""
    _functions.append(weakref.ref(jit_function))


def describe(exc: BaseException) -> Told | None:
    """What a compiler says, or None where `exc` comes from none."""
    names = {one.__name__ for one in type(exc).__mro__}
    if "CompilationError" in names and hasattr(exc, "node"):
        return _compilation(exc)
    if "OutOfResources" in names:
        return Told(kind="out_of_resources", message=_resources(exc), place=None)
    if "PTXASError" in names or "ptxas" in str(exc)[:400].lower():
        return _ptxas(exc)
    if "LaunchFault" in names:
        return Told(kind=getattr(exc, "kind", "exception"), message=str(exc), place=None)
    if "BuildFault" in names:
        return Told(kind="compile", message=str(exc), place=getattr(exc, "place", None))
    text = str(exc)
    if "PassManager::run failed" in text:
        return Told(kind="compile", message="Triton could not lower this kernel: PassManager::run failed", place=None)
    if isinstance(exc, RuntimeError) and text.startswith("Unsupported function referenced"):
        return Told(kind="compile", message=text, place=None)
    return None


def _resources(exc: Any) -> str:
    needed, limit, what = getattr(exc, "required", None), getattr(exc, "limit", None), getattr(exc, "name", "resources")
    if needed is None or limit is None:
        return str(exc)
    unit = " bytes" if "memory" in str(what) else ""
    return (
        f"out of {what}: the kernel needs {needed}{unit}, this card has {limit}{unit}; "
        "smaller blocks or fewer stages need less"
    )


def _compilation(exc: Any) -> Told:
    """The innermost error of the chain gives the words; the innermost that lies in the project gives the place."""
    chain = [exc]
    while _is_compilation(chain[-1].__cause__):
        chain.append(chain[-1].__cause__)
    inner = chain[-1]
    place = None
    for one in reversed(chain):
        place = _node_place(one)
        if place is not None:
            break
    return Told(kind="compile", message=_words(inner), place=place)


def _is_compilation(exc: Any) -> bool:
    return exc is not None and any(one.__name__ == "CompilationError" for one in type(exc).__mro__)


def _words(exc: Any) -> str:
    message = exc.error_message or ""
    if not message and exc.__cause__ is not None:
        message = f"{type(exc.__cause__).__name__}: {exc.__cause__}"
    message = str(message).strip()
    # Triton passes repr(e): NameError('x is not defined')
    inner = re.fullmatch(r"(\w+)\((['\"])(.*)\2,?\)", message, re.DOTALL)
    if inner:
        message = f"{inner[1]}: {inner[3]}".encode().decode("unicode_escape", "replace") if "\\" in inner[3] else (
            f"{inner[1]}: {inner[3]}"
        )
    if not message:
        unsupported = type(exc).__name__ == "UnsupportedLanguageConstruct"
        message = "unsupported in a kernel" if unsupported else "does not compile"
    # Triton's own last parameter, which a person never passes
    message = re.sub(r"got multiple values for argument '_\w+'", "takes fewer positional arguments", message)
    if type(exc).__name__ == "CompileTimeAssertionFailure" and "assert" not in message.lower():
        message = f"static_assert failed: {message}"
    return message


def _node_place(exc: Any) -> Place | None:
    node, src = exc.node, exc.src
    if not hasattr(node, "lineno"):
        return None
    project = current()
    for path, first, indent in _homes(src):
        if project is not None and not project.owns(path):
            continue
        lines = staged_lines(path)
        line = first + node.lineno - 1
        end_line = first + (getattr(node, "end_lineno", None) or node.lineno) - 1
        end_offset = getattr(node, "end_col_offset", None)
        return Place(
            path=path,
            line=line,
            column=_column(lines, line, node.col_offset + indent),
            end_line=end_line,
            end_column=_column(lines, end_line, end_offset + indent) if end_offset is not None else None,
        )
    return None


def _homes(src: str | None) -> list[tuple[str, int, int]]:
    """(path, 1-based line of `def`, indent in bytes) of the functions whose text is `src`, latest module first."""
    found: list[tuple[str, int, int]] = []
    for reference in reversed(_functions):
        function = reference()
        if function is None or getattr(function, "src", None) != src:
            continue
        lines = getattr(function, "raw_src", None) or _definition(function)  # Triton 3.2 keeps no raw source
        offset = next((i for i, line in enumerate(lines) if re.match(r"\s*(async\s+)?def\s", line)), 0)
        indent = len(lines[offset]) - len(lines[offset].lstrip())
        found.append((function.fn.__code__.co_filename, function.starting_line_number + offset, indent))
    return found


def name_place(function: Any) -> tuple[int, int, int]:
    """(line, column, end column) of a jit function's name in its file."""
    name = function.fn.__name__
    lines = staged_lines(function.fn.__code__.co_filename)
    for _, first, _ in _homes(function.src):
        text = lines[first - 1] if first <= len(lines) else ""
        column = text.find(name) + 1
        return first, max(column, 1), max(column, 1) + len(name)
    return int(function.starting_line_number), 1, 1


def _definition(function: Any) -> list[str]:
    """Lines of a function's text from its first decorator to the `def`, as staged for its file."""
    first = int(function.starting_line_number)
    return staged_lines(function.fn.__code__.co_filename)[first - 1 : first + 60]


def _column(lines: list[str], line: int, byte_column: int) -> int:
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    if text.isascii():
        return byte_column + 1
    return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore")) + 1


# ---------------------------------------------------------------------------------------------------------------- ptxas


def _ptxas(exc: BaseException) -> Told:
    text = str(getattr(exc, "error_message", None) or exc)
    wrong = [match for line in text.splitlines() if "error" in line.lower() and (match := _PTXAS_LINE.search(line))]
    ptx = getattr(exc, "odyssey_ptx", None)
    if not wrong:
        first = next((line for line in text.splitlines() if "error" in line.lower()), "ptxas failed")
        return Told(kind="compile", message=f"ptxas: {first.strip()}", place=None)
    line, words = int(wrong[0][1]), wrong[0][2].strip()
    place = ptx_place(ptx, line) if ptx else None
    return Told(kind="compile", message=f"ptxas: {words}", place=place)


def ptx_place(ptx: str, line: int) -> Place | None:
    """The person's line for a line of PTX: the nearest `.loc` above it that points into the project."""
    lines = ptx.splitlines()
    files: dict[int, str] = {}
    for text in lines:
        if match := _FILE.match(text):
            name = match[2] if match[3] is None else f"{match[2]}/{match[3]}"
            files[int(match[1])] = name
    project = current()
    for text in reversed(lines[:line]):
        if match := _LOC.match(text):
            path = files.get(int(match[1]), "")
            if project is None or project.owns(path):
                return _whole_line(path, max(int(match[2]), 1))
    return None


def _whole_line(path: str, line: int) -> Place:
    """A line from its first token to its end: PTX knows lines well, columns only roughly."""
    lines = staged_lines(path)
    text = lines[line - 1] if line <= len(lines) else ""
    first = len(text) - len(text.lstrip()) + 1
    return Place(path=path, line=line, column=first, end_line=line, end_column=max(len(text.rstrip()) + 1, first + 1))


def watch_compiler() -> None:
    """From now on every jit function is remembered, and a ptxas error keeps the PTX that it is about."""
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None or getattr(jit, "odyssey_watched", False):
        return
    jit.odyssey_watched = True  # type: ignore[attr-defined]
    start = jit.JITFunction.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        remember(self)
        self.odyssey_salt = _salt(self)

    jit.JITFunction.__init__ = init
    _salt_cache_keys(jit.JITFunction)
    from triton.backends import backends  # up to Triton 3.2 its classes are not those of the module of that name

    if "nvidia" not in backends:
        return
    backend: Any = backends["nvidia"].compiler
    make_cubin = backend.make_cubin
    is_static = isinstance(inspect.getattr_static(backend, "make_cubin"), staticmethod)

    def keep_ptx(self: Any, src: str, *args: Any, **kwargs: Any) -> Any:
        with _KeepPtx(src):
            return make_cubin(src, *args, **kwargs) if is_static else make_cubin(self, src, *args, **kwargs)

    backend.make_cubin = keep_ptx


def _salt(function: Any) -> str:
    """A hash of the whole file in which a project's kernel stands; '' for library kernels."""
    project, path = current(), function.fn.__code__.co_filename
    if project is None or not project.owns(path):
        return ""
    return hashlib.sha256("\n".join(staged_lines(path)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _salt_cache_keys(kind: Any) -> None:
    """Compiled kernels are cached by their file's text: Triton itself has missed edited globals (triton#7322)."""
    key = next(vars(base)["cache_key"] for base in kind.__mro__ if "cache_key" in vars(base)).fget
    kind.cache_key = property(lambda self: key(self) + self.__dict__.get("odyssey_salt", ""))


class _KeepPtx:
    """Attaches the PTX to whatever error passes: Triton deletes its own copy."""

    def __init__(self, ptx: str) -> None:
        self.ptx = ptx

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traced: Any) -> None:
        if error is not None:
            error.odyssey_ptx = self.ptx  # type: ignore[attr-defined]
