"""Owns NVRTC by ctypes: CUDA text to a cubin and structured messages, without a driver. Never launches anything."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import glob
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evalcore.gpu.cuda_headers import bundled_headers, include_folders, toolkits
from evalcore.gpu.nvrtc_headers import STUBS

_DIAG = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<level>catastrophic error|error|warning|remark)\s*(?P<code>#[\w-]+)?: "
    r"(?P<text>.*)$"
)
_CANNOT_OPEN = re.compile(r"could not open source file|cannot open source file|when compiling with NVRTC")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


class NvrtcMissing(RuntimeError):
    """No NVRTC library was found. The message says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the compiler, at a place of the text that it was given. Line and column from 1."""

    level: str
    """'error' | 'warning'."""
    text: str
    line: int
    column: int
    code: str = ""
    file: str = ""
    """'' for the text itself, else the header as the compiler names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What ptxas made of one entry."""

    name: str
    """As in the cubin: mangled unless extern "C"."""
    registers: int | None = None
    shared_bytes: int | None = None
    stack_bytes: int | None = None
    spill_bytes: int | None = None
    """Spill stores plus spill loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What came of one compilation."""

    cubin: bytes | None
    messages: tuple[Message, ...] = ()
    lowered: dict[str, str] = field(default_factory=dict)
    """Name expression -> mangled name."""
    resources: tuple[Resources, ...] = ()
    missing_header: bool = False
    log: str = ""

    @property
    def errors(self) -> tuple[Message, ...]:
        return tuple(message for message in self.messages if message.level == "error")


def find_library() -> str:
    """Path of libnvrtc: the pip wheel's, torch's, else a toolkit's. Raises NvrtcMissing."""
    for pattern in _library_patterns():
        found = sorted(glob.glob(pattern), reverse=True)
        found = [path for path in found if "builtins" not in path and ".alt." not in path]
        if found:
            return found[0]
    by_name = ctypes.util.find_library("nvrtc")
    if by_name:
        return by_name
    raise NvrtcMissing("no NVRTC library: install the package nvidia-cuda-nvrtc, or set CUDA_HOME to a CUDA toolkit")


def _library_patterns() -> Iterator[str]:
    for package, tail in (("nvidia", "*/lib/libnvrtc.so*"), ("torch", "lib/libnvrtc*.so*")):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or [] if spec else []:
            yield os.path.join(folder, tail)
    for home in toolkits():
        yield os.path.join(home, "lib64", "libnvrtc.so*")
        yield os.path.join(home, "targets", "*", "lib", "libnvrtc.so*")


@dataclass(frozen=True, slots=True)
class _Unit:
    """One compilation's input."""

    text: str
    name: str
    arch: int
    options: Sequence[str]
    expressions: Sequence[str]
    headers: Mapping[str, str]


class Nvrtc:
    """The loaded library."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lib = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def architectures(self) -> list[int]:
        """Compute capabilities that this library compiles for, such as 90."""
        count = ctypes.c_int()
        if self.lib.nvrtcGetNumSupportedArchs(ctypes.byref(count)) != 0:
            return []
        values = (ctypes.c_int * count.value)()
        self.lib.nvrtcGetSupportedArchs(values)
        return list(values)

    def compile(
        self,
        text: str,
        *,
        name: str = "kernel.cu",
        arch: int = 90,
        options: Sequence[str] = (),
        expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Compiled:
        """Compiles `text` for sm_<arch>.

        expressions: template instances, such as 'scale<float>'. headers: name as included -> text, besides the
        stand-ins.
        """
        given = {**STUBS, **(headers or {})}
        if "#include" not in text and not any("include" in option for option in options):
            return self._compile(_Unit(text, name, arch, options, expressions, {}))
        made = self._compile(_Unit(text, name, arch, options, expressions, {**given, **bundled_headers(self)}))
        folders = include_folders(self) if made.missing_header else []
        if folders:
            flags = (*options, *[f"-I{folder}" for folder in folders])
            made = self._compile(_Unit(text, name, arch, flags, expressions, given))
        return made

    def _compile(self, unit: _Unit) -> Compiled:
        text, name, expressions = unit.text, unit.name, unit.expressions
        program = self._program(text, name, unit.headers)
        try:
            for expression in expressions:
                self.lib.nvrtcAddNameExpression(program, expression.encode())
            flags = [*self._flags(unit.arch), *unit.options]
            encoded = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
            status = self.lib.nvrtcCompileProgram(program, len(flags), encoded)
            log = self._bytes(program, "nvrtcGetProgramLog").decode(errors="replace").rstrip("\0")
            messages, missing = parse_log(log, name, text)
            if status != 0:
                if not any(message.level == "error" for message in messages):
                    reason = self.lib.nvrtcGetErrorString(status).decode()
                    messages = (*messages, Message(level="error", text=reason, line=1, column=1))
                return Compiled(cubin=None, messages=messages, missing_header=missing, log=log)
            return Compiled(
                cubin=self._bytes(program, "nvrtcGetCUBIN"),
                messages=messages,
                lowered={one: self._lowered(program, one) for one in expressions},
                resources=tuple(parse_resources(log)),
                log=log,
            )
        finally:
            self.lib.nvrtcDestroyProgram(ctypes.byref(program))

    def _program(self, text: str, name: str, headers: Mapping[str, str]) -> ctypes.c_void_p:
        program = ctypes.c_void_p()
        names = list(headers)
        bodies = (ctypes.c_char_p * len(names))(*[headers[one].encode("utf-8", "replace") for one in names])
        includes = (ctypes.c_char_p * len(names))(*[one.encode() for one in names])
        source = text.encode("utf-8", "replace")
        status = self.lib.nvrtcCreateProgram(
            ctypes.byref(program), source, os.path.basename(name).encode(), len(names), bodies, includes
        )
        if status != 0:
            raise RuntimeError(f"NVRTC: {self.lib.nvrtcGetErrorString(status).decode()}")
        return program

    def _flags(self, arch: int) -> list[str]:
        return [
            f"--gpu-architecture={self._target(arch)}", "--std=c++17", "-lineinfo", "--ptxas-options=-v",
            "-default-device",
        ]

    def _target(self, arch: int) -> str:
        """sm_<arch> with its own features; the newest below it where this library does not know it."""
        known = self.architectures()
        if arch in known:
            return f"sm_{arch}a" if arch >= 90 else f"sm_{arch}"
        return f"sm_{max((one for one in known if one <= arch), default=arch)}"

    def _bytes(self, program: ctypes.c_void_p, getter: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self.lib, f"{getter}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.lib, getter)(program, buffer)
        return buffer.raw

    def _lowered(self, program: ctypes.c_void_p, expression: str) -> str:
        name = ctypes.c_char_p()
        status = self.lib.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name))
        return name.value.decode() if status == 0 and name.value else expression


def prepare() -> None:
    """Loads the library and its headers into this process, for its forks. Does nothing where there is no NVRTC."""
    try:
        bundled_headers(library())
    except NvrtcMissing:
        return


@functools.cache
def library() -> Nvrtc:
    """The process's NVRTC. Raises NvrtcMissing."""
    path = find_library()
    try:
        return Nvrtc(path)
    except OSError as error:
        raise NvrtcMissing(f"{os.path.basename(path)} does not load: {error}") from error


# ------------------------------------------------------------------------------------------------------------- messages


def parse_log(log: str, name: str, text: str) -> tuple[tuple[Message, ...], bool]:
    """(messages, whether a header was missing) of a compiler's log about `text`, which it knew as `name`."""
    lines = log.splitlines()
    own = os.path.basename(name)
    found: list[Message] = []
    missing = False
    source = text.splitlines()
    for index, line in enumerate(lines):
        match = _DIAG.match(line)
        if match is None:
            continue
        level = "warning" if match["level"] in {"warning", "remark"} else "error"
        if match["level"] == "remark":
            continue
        missing |= bool(_CANNOT_OPEN.search(match["text"]))
        column = _caret(lines, index, source, int(match["line"]))
        found.append(
            Message(
                level=level, text=match["text"].strip(), line=int(match["line"]), column=column,
                code=(match["code"] or "").lstrip("#"),
                file="" if os.path.basename(match["file"]) == own else match["file"],
            )
        )
    return tuple(found), missing


def _caret(lines: list[str], index: int, source: list[str], number: int) -> int:
    """Column from the caret line under the echoed source, which carries two spaces of its own."""
    for line in lines[index + 1 : index + 4]:
        if _DIAG.match(line):
            break
        if line.strip() == "^":
            return max(line.index("^") - 2, 0) + 1
    text = source[number - 1] if 0 < number <= len(source) else ""
    return len(text) - len(text.lstrip()) + 1


def parse_resources(log: str) -> Iterator[Resources]:
    """Per entry what `--ptxas-options=-v` says."""
    name: str | None = None
    stack = spill = None
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            name, stack, spill = entry[1], None, None
        elif frame := _STACK.search(line):
            stack, spill = int(frame[1]), int(frame[2]) + int(frame[3])
        elif name and (used := _USED.search(line)):
            shared = _SHARED.search(line)
            yield Resources(
                name=name, registers=int(used[1]), shared_bytes=int(shared[1]) if shared else 0, stack_bytes=stack,
                spill_bytes=spill,
            )
            name = None
