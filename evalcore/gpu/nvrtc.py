"""Owns what NVRTC says about CUDA text: diagnostics on the person's lines and registers per kernel. Never launches.

A .cu file and a string inside a Python file take the same way: host code becomes spaces, templates get the instances
that the launch sites name, and each message goes back to where the person wrote the line.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalcore.facts import KernelFacts, Place
from evalcore.gpu.cuda_text import KernelText, device_only, kernels, launches
from evalcore.gpu.literals import strings
from evalcore.gpu.nvrtc_library import Compiled, Message, NvrtcMissing, Resources, library
from evalcore.jobs import Diagnostic

DEFAULT_ARCH = 90
_CUDA = re.compile(r"__global__")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_KNOWN = re.compile(
    r"\b(?:float|double|half|__half|__nv_bfloat16|at::Half|at::BFloat16|c10::Half|c10::BFloat16|int|unsigned|long|short|"
    r"char|bool|true|false|const|u?int\d+_t|half2|float[1234]|double2|int[234]|size_t)\b"
)
_UNUSED = {"177-D", "550-D"}


_Mapper = Callable[[int, int], Place]
"""(line, column) of the compiled text -> Place in the person's file."""


class BuildFault(Exception):
    """CUDA text does not compile. `place` is where the first error stands."""

    def __init__(self, message: str, place: Place | None, messages: Sequence[Message] = ()) -> None:
        super().__init__(message)
        self.place = place
        self.messages = tuple(messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel, compiled."""

    name: str
    lowered: str
    """Its name in the cubin."""
    resources: Resources | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Device code of one text."""

    compiled: Compiled
    kernels: tuple[Kernel, ...]


def build(  # noqa: PLR0913  (a compiler's options)
    text: str,
    *,
    path: str,
    arch: int,
    overlays: Mapping[str, str] | None = None,
    expressions: Iterable[str] = (),
    options: Sequence[str] = (),
    named: bool = True,
) -> Built:
    """Compiles the device code of `text`. Errors come back in `compiled`; raises only NvrtcMissing.

    path: where the text belongs, for its own headers. expressions: template instances wanted. named: also compile those
    that the launch sites name in full.
    """
    wanted = list(dict.fromkeys([*expressions, *(_named_instances(text) if named else ())]))
    headers = local_headers(text, path, overlays or {})
    lib = library()
    device = device_only(text)
    folder = os.path.dirname(path)
    flags = [*options, *([f"-I{folder}"] if folder else [])]
    compiled = lib.compile(device, name=path, arch=arch, options=flags, expressions=wanted, headers=headers)
    if compiled.cubin is None and wanted and named:
        bare = lib.compile(device, name=path, arch=arch, options=flags, headers=headers)
        if bare.cubin is not None and not _in_text(compiled.errors, text):
            compiled = bare  # only an instance that we asked for was wrong
    return Built(compiled=compiled, kernels=tuple(_kernels(kernels(text), compiled)))


def _in_text(messages: Iterable[Message], text: str) -> bool:
    count = text.count("\n") + 1
    return any(not message.file and message.line <= count for message in messages)


def _named_instances(text: str) -> list[str]:
    """Template instances that launch sites name without host names, such as 'scale<float, 256>'."""
    templates = {one.name for one in kernels(text) if one.template}
    found = []
    for name, arguments in launches(text):
        if name in templates and arguments:
            rest = _KNOWN.sub("", arguments)
            if not re.search(r"[A-Za-z_]", rest):
                found.append(f"{name}{arguments}")
    return found


def _kernels(texts: list[KernelText], compiled: Compiled) -> Iterable[Kernel]:
    resources = {one.name: one for one in compiled.resources}
    for expression, lowered in compiled.lowered.items():
        yield Kernel(name=expression, lowered=lowered, resources=resources.pop(lowered, None))
    for text in texts:
        if text.template:
            continue
        lowered = next((name for name in resources if name == text.name or _mangles(name, text.name)), text.name)
        yield Kernel(name=text.name, lowered=lowered, resources=resources.pop(lowered, None))


def _mangles(mangled: str, name: str) -> bool:
    """True where an Itanium-mangled name is that of a function `name`, in whatever namespace."""
    return mangled.startswith("_Z") and f"{len(name)}{name}" in mangled


def local_headers(text: str, path: str, overlays: Mapping[str, str]) -> dict[str, str]:
    """Headers that stand beside the text, as included -> device code only; unsaved buffers before the disk."""
    found: dict[str, str] = {}
    queue = [(text, os.path.dirname(path))]
    while queue:
        current, folder = queue.pop()
        for name in _INCLUDE.findall(current):
            location = os.path.normpath(os.path.join(folder, name))
            if name in found:
                continue
            body = overlays.get(location)
            if body is None:
                if not os.path.isfile(location):
                    continue
                with open(location, encoding="utf-8", errors="replace") as handle:
                    body = handle.read()
            found[name] = device_only(body)
            queue.append((body, os.path.dirname(location)))
    return found


def kernel_facts(built: Built) -> list[KernelFacts]:
    """Registers, shared memory and spills of each compiled kernel."""
    facts = []
    for kernel in built.kernels:
        if kernel.resources is not None:
            facts.append(
                KernelFacts(
                    name=kernel.name, registers=kernel.resources.registers, spill_bytes=kernel.resources.spill_bytes,
                    shared_bytes=kernel.resources.shared_bytes, origin="nvrtc",
                )
            )
    return facts


# ---------------------------------------------------------------------------------------------------------- diagnostics


def check_cuda(
    path: str,
    text: str,
    overlays: Sequence[tuple[str, str]] = (),
    kernels: Sequence[str] = (),
    target: str | None = None,
) -> tuple[list[Diagnostic], list[KernelFacts]]:
    """Compiles the CUDA text of a .cu file, or of the strings in a Python file, without running anything.

    kernels: limits the facts to these names; () is all. target: 'sm_90' and the like; None compiles for Hopper.
    """
    arch = arch_of(target)
    laid_over = dict(overlays)
    diagnostics: list[Diagnostic] = []
    facts: list[KernelFacts] = []
    try:
        for piece, place in _pieces(path, text):
            built = build(piece, path=path, arch=arch, overlays=laid_over)
            diagnostics += _diagnostics(built.compiled, path, place)
            facts += kernel_facts(built)
    except NvrtcMissing as error:
        return [Diagnostic(path=path, line=1, column=1, severity="hint", code="nvrtc-missing", message=str(error))], []
    wanted = set(kernels)
    return diagnostics, [one for one in facts if not wanted or one.name.split("<")[0] in wanted]


def arch_of(target: str | None) -> int:
    """90 from 'sm_90' or 'sm_90a'; the default where there is none."""
    match = re.fullmatch(r"(?:sm_)?(\d+)[af]?", target or "")
    return int(match[1]) if match else DEFAULT_ARCH


def _pieces(path: str, text: str) -> Iterable[tuple[str, _Mapper]]:
    if not path.endswith((".py", ".pyi", ".ipynb")):
        clean = text.lstrip("\ufeff").replace("\r\n", "\n")
        yield clean, lambda line, column: Place(path=path, line=line, column=column)
        return
    for spelled in strings(text, _CUDA):
        yield spelled.value, functools.partial(spelled.place, path)


def _diagnostics(compiled: Compiled, path: str, place: _Mapper) -> Iterable[Diagnostic]:
    if compiled.missing_header:
        for message in compiled.errors:
            if "open source file" in message.text:
                at = place(message.line, 1)
                yield Diagnostic(
                    path=path, line=at.line, column=at.column, severity="information", code="cuda-header",
                    message=f"not checked while typing: {message.text}",
                )
        return
    for message in compiled.messages:
        if message.file or (message.level == "warning" and message.code in _UNUSED):
            continue
        at = place(message.line, message.column)
        end = place(message.line, message.column + _word_length(compiled, message))
        yield Diagnostic(
            path=at.path, line=at.line, column=at.column, severity=message.level,
            code=f"nvrtc-{message.code}" if message.code else "nvrtc", message=message.text, end_line=end.line,
            end_column=max(end.column, at.column + 1),
        )


def _word_length(compiled: Compiled, message: Message) -> int:
    """Length of the token under the caret, from the source line that the log echoes."""
    lines = compiled.log.splitlines()
    for index, line in enumerate(lines):
        if f"({message.line}):" in line and message.text[:40] in line and index + 1 < len(lines):
            match = re.match(r"\w+", lines[index + 1][2:][message.column - 1 :])
            return len(match[0]) if match else 1
    return 1
