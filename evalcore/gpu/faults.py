"""Owns what went wrong and where: any exception of a candidate becomes a Crash with a place in the person's text.

Never decides a verdict. Messages lose environment secrets and our own paths before they leave.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch

from evalcore.facts import Crash, Place
from evalcore.gpu import compile_faults
from evalcore.gpu.importing import current, staged_lines
from evalcore.problem import Program

_OURS = str(Path(__file__).resolve().parents[1])
_DETAIL_CHARS = 4096
_MESSAGE_CHARS = 2000
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{12,}|xox[abp]-[\w-]{10,})"
)


_REFUSED_BY_A_COMPILER = (AttributeError, NameError, TypeError, ValueError, AssertionError, SyntaxError, KeyError)
"""What Triton's front end would say of a kernel's own code, where the interpreter stumbles over it."""


class CandidateFault(Exception):
    """A program could not be loaded or run; `crash` says how and where."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.message)
        self.crash = crash


def fault(kind: str, message: str, place: Place | None = None, detail: str = "") -> CandidateFault:
    """A CandidateFault from words of ours."""
    return CandidateFault(Crash(kind=kind, message=scrub(message), place=place, detail=scrub(detail)[:_DETAIL_CHARS]))


def locate(exc: BaseException, program: Program) -> Crash:
    """Any exception that `program` raised, as a Crash. `place` is None only where no line of the person's ran.

    Never raises: an exception whose own methods raise, or whose chain bites its tail, is told by its type alone.
    """
    try:
        return _locate(exc, program)
    except BaseException:  # noqa: BLE001  (the fence around user code: even telling its error may run it)
        return Crash(kind="exception", message=type(exc).__name__[:200])


def _locate(exc: BaseException, program: Program) -> Crash:
    if isinstance(exc, CandidateFault):
        return exc.crash
    if isinstance(exc, SyntaxError):
        return _syntax(exc, program)
    told = compile_faults.describe(exc)
    root = _root(exc)
    place = told.place if told is not None and told.place is not None else None
    for each in _inside_out(exc):
        place = place or place_of(each, program)
    if told is not None:
        return _crash(told.kind, told.message, place, exc)
    kind, message = _classify(root)
    if kind == "exception" and root is not exc and isinstance(root, _REFUSED_BY_A_COMPILER):
        kind = "compile"  # values are data to a kernel: what Python refuses while it is interpreted, Triton refuses before
    exit_code = root.code if isinstance(root, SystemExit) and isinstance(root.code, int) else None
    return _crash(kind, message, place, exc, exit_code=exit_code)


def _crash(
    kind: str, message: str, place: Place | None, exc: BaseException, *, exit_code: int | None = None
) -> Crash:
    return Crash(
        kind=kind, message=scrub(message)[:_MESSAGE_CHARS], place=place, detail=_detail(exc), exit_code=exit_code
    )


def _root(exc: BaseException) -> BaseException:
    """The exception to report: what the interpreter wrapped, else the exception itself."""
    return _inside_out(exc)[0]


def _inside_out(exc: BaseException) -> list[BaseException]:
    """What the interpreter wrapped, innermost first; a call into Triton's own library is wrapped once more."""
    chain = [exc]
    while type(chain[-1]).__name__ == "InterpreterError" and chain[-1].__cause__ not in (None, *chain):
        chain.append(chain[-1].__cause__)  # type: ignore[arg-type]
    return chain[::-1]


def _syntax(exc: SyntaxError, program: Program) -> Crash:
    path = exc.filename or program.path
    place = Place(
        path=path if os.path.isabs(path) else program.path,
        line=max(exc.lineno or 1, 1),
        column=max(exc.offset or 1, 1),
        end_line=getattr(exc, "end_lineno", None) or None,
        end_column=(getattr(exc, "end_offset", None) or 0) if (getattr(exc, "end_offset", None) or 0) > 0 else None,
    )
    return Crash(kind="compile", message=f"{type(exc).__name__}: {exc.msg}", place=place)


def _classify(exc: BaseException) -> tuple[str, str]:
    """(kind, message) of an exception that no compiler raised."""
    name = type(exc).__name__
    text = str(exc).strip()
    if text.startswith(("CUDA error", "Triton Error")):
        text = _first_line(text)  # the rest is torch's advice on debugging
    if _is_ours(exc, "evalcore.gpu.sanitizer", "OutOfBounds"):
        return "out_of_bounds", text
    if isinstance(exc, (MemoryError, torch.cuda.OutOfMemoryError)):
        return "out_of_memory", f"out of memory: {_first_line(text)}" if text else "out of memory"
    if _is_ours(exc, "evalcore.gpu.fake_cuda", "CannotInterpret") or _is_ours(
        exc, "evalcore.gpu.interpreter", "WrongVersions"
    ):
        return "cannot_interpret", text
    if isinstance(exc, NotImplementedError) and "interpreter mode" in text:
        return "cannot_interpret", f"the interpreter cannot run this: {text}"
    if isinstance(exc, SystemExit):
        return "exit", f"the program called exit({exc.code!r})"
    if "illegal memory access" in text or "misaligned address" in text:
        what = "illegal memory access" if "illegal" in text else "misaligned address"
        return "out_of_bounds", f"{what} on the GPU, reported where the host next waited for it"
    if isinstance(exc, ImportError) and exc.name and exc.name.split(".")[0] == "triton":
        return "exception", f"{name}: {text}"
    return "exception", f"{name}: {text}" if text else name


def _is_ours(exc: BaseException, module: str, name: str) -> bool:
    """True for an exception of our own class, not of one that merely has its name."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(exc, kind)


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


# --------------------------------------------------------------------------------------------------------------- places


def place_of(exc: BaseException, program: Program) -> Place | None:
    """The deepest frame of `exc` that stands in the program's file or in another file of its project."""
    project = current()
    for frame, traced in reversed(list(_frames(exc.__traceback__))):
        path = frame.f_code.co_filename
        if path == program.path or (project is not None and project.owns(path)):
            return _place(frame, traced)
    return None


def _frames(traced: TracebackType | None) -> Iterator[tuple[FrameType, TracebackType]]:
    while traced is not None:
        yield traced.tb_frame, traced
        traced = traced.tb_next


def _place(frame: FrameType, traced: TracebackType) -> Place:
    path = frame.f_code.co_filename
    line = traced.tb_lineno or 1
    return place_at(frame.f_code, line, traced.tb_lasti, path)


def place_at(code: CodeType, line: int, lasti: int, path: str) -> Place:
    """A Place for one instruction: exact range where the Python keeps columns (3.11+), else the line's first token."""
    lines = staged_lines(path)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    first = len(text) - len(text.lstrip()) + 1
    span = _span(code, lasti)
    if span is None or span[0] != line:
        return Place(path=path, line=line, column=first)
    _, end_line, column, end_column = span
    shift = _dedented_by(code, lines)
    end_text = lines[end_line - 1] if 0 < end_line <= len(lines) else ""
    return Place(
        path=path,
        line=line,
        column=_code_points(text, column + shift) + 1,
        end_line=end_line,
        end_column=_code_points(end_text, end_column + shift) + 1,
    )


def _span(code: CodeType, lasti: int) -> tuple[int, int, int, int] | None:
    """(line, end line, column, end column) of an instruction, columns in UTF-8 bytes from 0."""
    if sys.version_info < (3, 11) or lasti < 0:
        return None
    for index, span in enumerate(code.co_positions()):
        if index * 2 == lasti:
            if any(part is None for part in span):
                return None
            return span  # type: ignore[return-value]
    return None


def _dedented_by(code: CodeType, lines: list[str]) -> int:
    """Columns that Triton's interpreter took away when it dedented a nested kernel before it compiled it anew."""
    if code not in _rewritten():
        return 0
    first = lines[code.co_firstlineno - 1] if 0 < code.co_firstlineno <= len(lines) else ""
    return len(first) - len(first.lstrip())


def _rewritten() -> set[CodeType]:
    stock = sys.modules.get("triton.runtime.interpreter")
    if stock is None:
        return set()
    cache: dict[Any, Any] = getattr(stock.InterpretedFunction, "rewritten_fn", {})
    return {fn.__code__ for fn in cache.values() if hasattr(fn, "__code__")}


def _code_points(text: str, byte_column: int) -> int:
    if text.isascii():
        return min(byte_column, len(text))
    return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))


# ------------------------------------------------------------------------------------------------------------ scrubbing


def scrub(text: str) -> str:
    """`text` without secrets of the environment and without paths that are ours and not the person's."""
    for name, value in os.environ.items():
        if len(value) >= 6 and _SECRET_NAME.search(name):
            text = text.replace(value, "***")
    text = _SECRET_SHAPE.sub("***", text)
    text = text.replace(_OURS + os.sep, "evalcore/")
    text = re.sub(re.escape(tempfile.gettempdir()) + r"/\S*?/(?=[^/\s]+)", "", text)
    return re.sub(r"(/[^\s:'\"]*)?/site-packages/", "", text)


def _detail(exc: BaseException) -> str:
    """The traceback's tail without our own frames."""
    lines: list[str] = []
    for block in traceback.format_exception(type(exc), exc, exc.__traceback__):
        if f'File "{_OURS}' not in block:
            lines.append(block)
    return scrub("".join(lines))[-_DETAIL_CHARS:]
