"""Owns CUDA text in Python files: load_inline, load, torch.cuda._compile_kernel and cupy's raw kernels are intercepted.

NVRTC sees the device code first, so an error is on its line in tens of milliseconds. Without a GPU that is all. On a
card, host code that is plain enough is interpreted and its kernels launched by the driver; else the real builder runs,
for this card's architecture only, into a folder named by the content.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from evalcore.facts import Place
from evalcore.gpu import cuda_host, importing, launched
from evalcore.gpu.fake_cuda import CannotInterpret
from evalcore.gpu.literals import Spelling
from evalcore.gpu.nvrtc import DEFAULT_ARCH, BuildFault, Built, build, kernel_facts
from evalcore.gpu.nvrtc_library import NvrtcMissing

_NVCC = re.compile(
    r"^(?P<file>[^\s(:][^(:]*?)\((?P<line>\d+)\): (?:catastrophic )?error\s*(?:#[\w-]+)?:? ?(?P<text>.*)$"
)
_GXX = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$")
_IMPLICIT_CUDA_LINES = 3
"""load_inline puts three includes before the CUDA text and one before the C++ text."""
_IMPLICIT_CPP_LINES = 1
_HALF_RULES = (
    "-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)
"""What torch's builder defines: operators on __half are errors there, so they must be here."""


@dataclass(slots=True, kw_only=True)
class Settings:
    """Where this process builds, and for what."""

    device: str
    scratch: str
    interpret_host: bool = True
    """False forces the real builder, so that the two ways can be compared."""


_settings = Settings(device="cpu", scratch="")


def install(device: str, scratch: str) -> None:
    """From now on builds that user code asks for come here. Safe to call again."""
    _settings.device, _settings.scratch = device, scratch
    importing.after_import("torch.utils.cpp_extension", _hook_torch)
    importing.after_import("cupy", _hook_cupy)
    if hasattr(torch.cuda, "_compile_kernel") and not hasattr(torch.cuda._compile_kernel, "odyssey"):
        torch.cuda._compile_kernel = _marked(functools.partial(_compile_kernel, torch.cuda._compile_kernel))


def _marked(function: Any) -> Any:
    function.odyssey = True
    return function


def _hook_torch(module: ModuleType) -> None:
    for name, wrap in (("load_inline", _load_inline), ("load", _load)):
        original = getattr(module, name)
        if not hasattr(original, "odyssey"):
            setattr(module, name, _marked(functools.partial(wrap, original)))


def _hook_cupy(module: ModuleType) -> None:
    for name in ("RawKernel", "RawModule"):
        original = getattr(module, name)
        if not hasattr(original, "odyssey"):
            setattr(module, name, _marked(functools.partial(_raw, original)))


def on_gpu() -> bool:
    """True where builds end on a card."""
    return _settings.device != "cpu"


def arch() -> int:
    """The architecture that is built for."""
    if not on_gpu():
        return DEFAULT_ARCH
    major, minor = torch.cuda.get_device_capability(_settings.device)
    return major * 10 + minor


# ------------------------------------------------------------------------------------------------------------- checking


def check(text: str, *, expressions: Sequence[str] = (), options: Sequence[str] = ()) -> Built | None:
    """Compiles the device code of `text`; None where NVRTC is missing or lacks a header. Raises BuildFault."""
    project = importing.current()
    overlays = project.overlays if project is not None else {}
    try:
        built = build(text, path=_own_path(), arch=arch(), overlays=overlays, expressions=expressions, options=options)
    except NvrtcMissing:
        return None
    if built.compiled.missing_header:
        return None
    if built.compiled.errors:
        raise _fault(built, text)
    for facts in kernel_facts(built):
        launched.record_cuda(facts)
    return built


def _own_path() -> str:
    project = importing.current()
    return project.path if project is not None else ""


def _fault(built: Built, text: str) -> BuildFault:
    first = built.compiled.errors[0]
    more = len(built.compiled.errors) - 1
    words = f"{first.text} (and {more} more)" if more else first.text
    if first.file:
        project = importing.current()
        path = importing.beside(project.path, first.file) if project is not None else first.file
        return BuildFault(words, Place(path=path, line=first.line, column=first.column))
    return BuildFault(words, place_of(text, first.line, first.column))


def place_of(text: str, line: int, column: int) -> Place | None:
    """Where the person spelled (line, column) of a text that was handed over at run time."""
    for path, whole in _project_texts():
        place = Spelling(path, whole).place(text, line, column)
        if place is not None:
            return place
    return _place_in_file(text, line, column)


def _place_in_file(text: str, line: int, column: int) -> Place | None:
    """For a text that was read from a file beside the program: the place there."""
    project = importing.current()
    if project is None:
        return None
    for path in importing.named_files(project, (".cu", ".cuh", ".cpp", ".h", ".hpp", ".txt")):
        whole = project.text_of(path).replace("\r\n", "\n")
        if whole.strip() and whole in text:
            before = text[: text.index(whole)].count("\n")
            if before < line <= before + whole.count("\n") + 1:
                return Place(path=path, line=line - before, column=column)
    return None


def _project_texts() -> Iterable[tuple[str, str]]:
    project = importing.current()
    if project is None:
        return
    yield project.path, project.main_text
    for path in project.files:
        yield path, project.text_of(path)


def _resource_words(built: Built | None) -> str:
    if built is None:
        return "it was not compiled here"
    found = [(one.name, one.resources) for one in built.kernels]
    parts = [f"{name} compiles ({one.registers} registers)" for name, one in found if one is not None]
    return ", ".join(parts) or "the text compiles"


class _Unbuilt(ModuleType):
    """Stands for a built extension where there is no GPU: every function of it says so when it is called."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(name)
        self._words = words

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(_refuse, self._words)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """cupy's RawKernel is called itself."""
        return _refuse(self._words)


def _refuse(words: str, *args: Any, **kwargs: Any) -> Any:
    raise CannotInterpret(f"CUDA kernels do not run without a GPU; {words}")


# ------------------------------------------------------------------------------------------------------------- builders


def _listed(sources: Any) -> list[str]:
    if not sources:
        return []
    return [sources] if isinstance(sources, str) else list(sources)


def _load_inline(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    bound = inspect.signature(original).bind(*args, **kwargs)
    given = dict(bound.arguments)
    cuda, cpp = _listed(given.get("cuda_sources")), _listed(given.get("cpp_sources"))
    text = "\n".join(cuda)
    options = _macros(given.get("extra_cuda_cflags"))
    options += _HALF_RULES
    options += () if given.get("no_implicit_headers") else ("--pre-include=torch/types.h",)
    built = check(text, options=options) if "__global__" in text else None
    if not on_gpu():
        if not text and cpp:
            return _build(original, given, text, "\n".join(cpp))
        return _Unbuilt(str(given["name"]), _resource_words(built))
    if built is not None and _settings.interpret_host:
        functions = given.get("functions")
        names = list(functions) if isinstance(functions, (list, tuple, dict)) else _listed(functions)
        request = cuda_host.Request(
            name=str(given["name"]), cuda=text, cpp="\n".join(cpp), functions=tuple(names), path=_own_path(),
            arch=arch(), options=tuple(options), built=built,
        )
        module = cuda_host.interpret(request)
        if module is not None:
            return module
    return _build(original, given, text, "\n".join(cpp))


def _macros(flags: Any) -> list[str]:
    """Of nvcc's flags those that change what the text means."""
    return [flag for flag in _listed(flags) if flag.startswith(("-D", "-I")) or flag.endswith("-use_fast_math")]


def _build(original: Callable[..., Any], given: dict[str, Any], cuda: str, cpp: str) -> Any:
    """The real builder, in a folder named by the content, for this card alone."""
    given = dict(given)
    if not given.get("build_directory"):
        given["build_directory"] = _folder(given)
    if on_gpu() and not os.environ.get("TORCH_CUDA_ARCH_LIST"):
        number = arch()
        os.environ["TORCH_CUDA_ARCH_LIST"] = f"{number // 10}.{number % 10}"
    for key in ("cuda_sources", "cpp_sources"):
        if isinstance(given.get(key), tuple):
            given[key] = list(given[key])
    try:
        return original(**given)
    except (RuntimeError, OSError) as error:
        implicit = not given.get("no_implicit_headers")
        raise _builder_fault(str(error), cuda, cpp, implicit=implicit) from error


def _folder(given: dict[str, Any]) -> str:
    base = os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(_settings.scratch, "extensions")
    digest = hashlib.sha256(
        repr([sorted((key, str(value)) for key, value in given.items()), torch.__version__, arch()]).encode()
    ).hexdigest()[:16]
    folder = os.path.join(base, f"{given['name']}-{digest}")
    os.makedirs(folder, exist_ok=True)
    return folder


def _builder_fault(log: str, cuda: str, cpp: str, *, implicit: bool) -> BuildFault:
    """The first error in a builder's log, on the line of the string that it came from."""
    for line in log.splitlines():
        match = _NVCC.match(line.strip()) or _GXX.match(line.strip())
        if match is None:
            continue
        number, name = int(match["line"]), os.path.basename(match["file"])
        is_cuda = name.endswith((".cu", ".cuh"))
        text = cuda if is_cuda else cpp
        if implicit:
            number -= _IMPLICIT_CUDA_LINES if is_cuda else _IMPLICIT_CPP_LINES
        column = int(match.groupdict().get("column") or 1)
        place = place_of(text, number, column) if text else Place(path=match["file"], line=number, column=column)
        return BuildFault(match["text"].strip(), place)
    lines = [one for one in log.splitlines() if "error" in one.lower()] or log.splitlines()[:1] or ["the build failed"]
    return BuildFault(lines[0].strip(), None)


def _load(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    given = dict(inspect.signature(original).bind(*args, **kwargs).arguments)
    sources = [os.path.abspath(source) for source in _listed(given.get("sources"))]
    options = (*_HALF_RULES, *_macros(given.get("extra_cuda_cflags")))
    checked = [(path, *_check_file(path, options)) for path in sources if path.endswith((".cu", ".cuh"))]
    if not on_gpu() and checked:
        return _Unbuilt(str(given["name"]), ", ".join(_resource_words(built) for _, _, built in checked))
    path, text, built = checked[0] if len(checked) == 1 else ("", "", None)
    if built is not None and _settings.interpret_host:
        cpp = "\n".join(_read(one) for one in sources if one != path)
        request = cuda_host.Request(
            name=str(given["name"]), cuda=text, cpp=cpp, functions=(), path=path, arch=arch(), options=options,
            built=built,
        )
        module = cuda_host.interpret(request)
        if module is not None:
            return module
    given["sources"] = [_staged(one) for one in sources]
    folders = list(given.get("extra_include_paths") or [])
    given["extra_include_paths"] = folders + sorted({os.path.dirname(one) for one in sources})
    return _build(original, given, "", "")


def _read(path: str) -> str:
    """A source's text, remembered as part of the program."""
    project = importing.current()
    if project is None:
        return ""
    text = project.text_of(path)
    project.note_file(path, text)
    return text.replace("\r\n", "\n")


def _check_file(path: str, options: Sequence[str]) -> tuple[str, Built | None]:
    """(text, what NVRTC makes of it); None where it cannot judge. Raises BuildFault with the place in the file."""
    text = _read(path)
    project = importing.current()
    overlays = project.overlays if project is not None else {}
    try:
        built = build(text, path=path, arch=arch(), overlays=overlays, options=options)
    except NvrtcMissing:
        return text, None
    errors = built.compiled.errors
    if built.compiled.missing_header:
        return text, None
    if errors:
        where = path if not errors[0].file else importing.beside(path, errors[0].file)
        raise BuildFault(errors[0].text, Place(path=where, line=errors[0].line, column=errors[0].column))
    for facts in kernel_facts(built):
        launched.record_cuda(facts)
    return text, built


def _staged(path: str) -> str:
    """`path`, or a copy of its unsaved buffer that names the original in its messages."""
    project = importing.current()
    if project is None or path not in project.overlays:
        return path
    folder = os.path.join(_settings.scratch, "sources")
    os.makedirs(folder, exist_ok=True)
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "w", encoding="utf-8", newline="") as handle:
        handle.write(f'#line 1 "{path}"\n{project.overlays[path]}')
    return copy


def _compile_kernel(
    original: Callable[..., Any], kernel_source: str, kernel_name: str, *args: Any, **kwargs: Any
) -> Any:
    extra = str(kwargs.get("header_code") or "")
    built = check(f"{kernel_source}\n{extra}" if extra else kernel_source)
    if not on_gpu():
        return functools.partial(_refuse, _resource_words(built))
    made = original(kernel_source, kernel_name, *args, **kwargs)
    return cuda_host.Counted(made, kernel_name)


def _raw(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    code = kwargs.get("code") or (args[0] if args else "")
    built = check(str(code), options=_macros(kwargs.get("options")))
    if not on_gpu():
        return _Unbuilt("raw", _resource_words(built))
    return original(*args, **kwargs)


def force_real_builds(real: bool = True) -> None:
    """True lets torch's own builder do every extension: minutes, but the call time is that of the built one."""
    _settings.interpret_host = not real
