"""Owns how a person's text becomes a module: as their own Python would import it, unsaved buffers laid over the disk.

Each load starts fresh: modules of an earlier load leave sys.modules, nothing is read from or written to `__pycache__`.
Never decides what to call, and never writes into the project.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import io
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

from evalcore.fingerprint import sha256_text
from evalcore.slicing import package_root, parse, slice_module

_LINE = re.compile(r"\r\n|\r|\n")
_FOREIGN = ("site-packages", "dist-packages")


@dataclass(slots=True, kw_only=True)
class Project:
    """What one load sees of the disk, and what it read."""

    path: str
    """Absolute path of the file that is loaded."""
    root: str
    """The project's folder; the file's own where none is known."""
    overlays: dict[str, str]
    """Absolute path -> text of an unsaved buffer."""
    main_text: str = ""
    """The sliced text that stands for `path`."""
    dropped: frozenset[str] = frozenset()
    """Names that the whole text binds. Those that the slice leaves out can still be imported by other modules."""
    files: dict[str, str] = field(default_factory=dict)
    """Absolute path -> sha256 of the project files that were loaded, the main file excepted."""
    modules: list[str] = field(default_factory=list)
    added_paths: list[str] = field(default_factory=list)
    finder: ProjectFinder | None = None

    def owns(self, path: str) -> bool:
        """True for a source file of the person's project, not of an environment that lies inside it."""
        if path in self.overlays or path == self.path:
            return True
        if any(f"{os.sep}{name}{os.sep}" in path for name in _FOREIGN):
            return False
        if path.startswith(os.path.join(sys.prefix, "lib") + os.sep):
            return False
        homes = {self.root, os.path.dirname(self.path)}
        return any(path.startswith(home.rstrip(os.sep) + os.sep) for home in homes if home)

    def note_file(self, path: str, text: str) -> None:
        """Remembers a project file that the program was made of."""
        self.files[path] = sha256_text(text)

    def text_of(self, path: str) -> str:
        """The text that counts for `path`: an unsaved buffer before the disk."""
        if path in self.overlays:
            return self.overlays[path]
        with open(path, encoding="utf-8", errors="replace", newline="") as handle:
            return handle.read()


_active: list[Project] = []
_after_import: dict[str, Callable[[ModuleType], None]] = {}


def current() -> Project | None:
    """The project of the latest load in this process."""
    return _active[-1] if _active else None


def begin(path: str, root: str, overlays: Sequence[tuple[str, str]]) -> Project:
    """Makes this process see the project as the person's Python would when it runs `path`. Ends the load before."""
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    project = Project(path=path, root=os.path.abspath(root) if root else package_root(folder), overlays=dict(overlays))
    if _active:
        _end(_active.pop())
    finder = ProjectFinder(project)
    project.finder = finder
    sys.meta_path.insert(0, finder)
    for entry in reversed(list(dict.fromkeys([folder, package_root(folder), project.root]))):
        if entry not in sys.path:
            sys.path.insert(0, entry)
            project.added_paths.append(entry)
    importlib.invalidate_caches()
    overlay_open()
    _active.append(project)
    return project


def after_import(name: str, hook: Callable[[ModuleType], None]) -> None:
    """Calls `hook` with the module `name` now, if it is imported, else as soon as user code imports it."""
    _after_import[name] = hook
    module = sys.modules.get(name)
    if module is not None:
        hook(module)


class _HookedLoader(importlib.abc.Loader):
    """Runs another loader and then a hook."""

    def __init__(self, loader: importlib.abc.Loader, hook: Callable[[ModuleType], None]) -> None:
        self.loader = loader
        self.hook = hook

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        self.hook(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def _end(project: Project) -> None:
    if project.finder in sys.meta_path:
        sys.meta_path.remove(project.finder)
    for entry in project.added_paths:
        if entry in sys.path:
            sys.path.remove(entry)
    unload(project)


def unload(project: Project) -> None:
    """Forgets the modules that `project` has loaded so far."""
    for name in project.modules:
        sys.modules.pop(name, None)
    project.modules.clear()
    project.files.clear()


def settle(project: Project) -> None:
    """Sets the working folder and argv as a run of the file would: data files are found where the text expects them."""
    sys.argv = [project.path]
    folder = os.path.dirname(project.path)
    choice = project.root if os.path.isdir(project.root) else folder
    if choice != folder:
        names = list(_file_names(project.main_text))
        here = any(os.path.exists(os.path.join(folder, name)) for name in names)
        if here and not any(os.path.exists(os.path.join(choice, name)) for name in names):
            choice = folder
    if os.path.isdir(choice):
        os.chdir(choice)


def _file_names(text: str) -> Iterator[str]:
    """Literals in `text` that look like relative paths of files."""
    try:
        tree = parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
            if 3 <= len(name) <= 200 and "." in name and not os.path.isabs(name) and not set(name) & set("\n\0"):
                yield name


def named_files(project: Project, endings: tuple[str, ...]) -> list[str]:
    """Absolute paths of files that literals of the main file name, below its folder or the project's."""
    found = []
    for name in _file_names(project.main_text):
        for folder in (os.path.dirname(project.path), project.root):
            path = os.path.normpath(os.path.join(folder, name))
            if name.endswith(endings) and (path in project.overlays or os.path.isfile(path)):
                found.append(path)
    return list(dict.fromkeys(found))


def overlay_open() -> None:
    """Have `open` see unsaved buffers, once a process. A case does it before it notes what `open` stands for."""
    if not hasattr(io.open, "__wrapped__"):
        builtins.open = io.open = _overlaid_open(io.open)  # type: ignore[assignment]


def _overlaid_open(original: Callable[..., Any]) -> Callable[..., Any]:
    """`open` that reads an unsaved buffer where there is one for the file, such as CUDA text read at run time."""

    @functools.wraps(original)
    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        project = current()
        if project is not None and project.overlays and isinstance(file, (str, os.PathLike)) and "r" in mode:
            path = os.path.abspath(os.fspath(file))
            if path in project.overlays:
                text = project.overlays[path]
                project.note_file(path, text)
                return io.BytesIO(text.encode("utf-8", "surrogatepass")) if "b" in mode else io.StringIO(text)
        return original(file, mode, *args, **kwargs)

    return open_


def run_main(project: Project, text: str) -> ModuleType:
    """Executes `text` as the project's file and returns its module. Exceptions of the text pass through."""
    project.main_text = text
    settle(project)
    package = _package_of(project.path)
    if is_member(project.path, text):
        name = f"{package}.{_stem(project.path)}"
        __import__(name)
        return sys.modules[name]
    name = _free_name(_stem(project.path))
    loader = ProjectLoader(name, project.path, project)
    spec = importlib.util.spec_from_file_location(name, project.path, loader=loader)
    if spec is None:
        raise ImportError(f"cannot make a module of {project.path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    project.modules.append(name)
    loader.exec_module(module)
    return module


def _stem(path: str) -> str:
    name = os.path.splitext(os.path.basename(path))[0]
    return re.sub(r"\W", "_", name) or "module"


def _free_name(stem: str) -> str:
    taken = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    return f"candidate_{stem}" if taken else stem


def _package_of(path: str) -> str:
    folder = os.path.dirname(path)
    root = package_root(folder)
    return "" if root == folder else os.path.relpath(folder, root).replace(os.sep, ".")


def is_member(path: str, text: str) -> bool:
    """True for a file that can only be imported as part of its package: others there may use all of its names."""
    return bool(_package_of(path)) and _has_relative_import(text)


def _has_relative_import(text: str) -> bool:
    try:
        tree = parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def _hooked(fullname: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _HookedLoader(spec.loader, _after_import[fullname])
    return spec


class ProjectFinder:
    """Finds modules of the project before anybody else does; every other name is left alone."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The import system's hook."""
        if fullname in _after_import:
            return _hooked(fullname, path)
        overlaid = self._overlay(fullname, path)
        if overlaid is not None:
            location, is_package = overlaid
        else:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
                return None
            location, is_package = os.path.abspath(spec.origin), spec.submodule_search_locations is not None
        if not self.project.owns(location):
            return None
        self.project.modules.append(fullname)
        return importlib.util.spec_from_file_location(
            fullname,
            location,
            loader=ProjectLoader(fullname, location, self.project),
            submodule_search_locations=[os.path.dirname(location)] if is_package else None,
        )

    def _overlay(self, fullname: str, path: Sequence[str] | None) -> tuple[str, bool] | None:
        if not self.project.overlays:
            return None
        tail = fullname.rpartition(".")[2]
        for entry in path if path is not None else sys.path:
            base = os.path.join(os.path.abspath(entry or os.curdir), tail)
            for location, is_package in ((os.path.join(base, "__init__.py"), True), (base + ".py", False)):
                if location in self.project.overlays:
                    return location, is_package
                if os.path.isfile(location):
                    return None  # an earlier entry on the disk wins, as it would without the buffer
        return None


class ProjectLoader(importlib.machinery.SourceFileLoader):
    """Compiles the text that counts, under the person's own path, and lets tracebacks and Triton read it."""

    def __init__(self, fullname: str, path: str, project: Project) -> None:
        super().__init__(fullname, path)
        self.project = project

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module; names that the slice left out can be imported, but not used."""
        if str(self.path) == self.project.path and self.project.dropped:
            module.__dict__["__getattr__"] = functools.partial(_placeholder, self.project.dropped, module.__name__)
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        """The code of the module: the main file's slice, or a helper without its checks and benchmark runs."""
        path = str(self.path)
        if path == self.project.path:
            text = self.project.main_text
        else:
            whole = self.project.text_of(path)
            self.project.note_file(path, whole)
            text = gently(whole)
        stage(path, text)
        return compile_text(text, path)


def beside(path: str, name: str) -> str:
    """Absolute path of a file that a text at `path` names, such as a header."""
    return os.path.normpath(os.path.join(os.path.dirname(path), name))


class NotLoaded:
    """Stands for a name of the main file that its slice left out."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NameError(f"{self.__name__} was not loaded: only what the kernel needs is")


def _placeholder(dropped: frozenset[str], module: str, name: str) -> Any:
    if name in dropped:
        return NotLoaded(name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def gently(text: str) -> str:
    """A helper's text without what is plainly a check, a print or a benchmark run; unreadable text as it is."""
    try:
        return slice_module(text, gentle=True)
    except SyntaxError:
        return text.lstrip("\ufeff")


def compile_text(text: str, path: str) -> CodeType:
    """`compile` that answers every unreadable text with a SyntaxError that names `path`."""
    try:
        return compile(text, path, "exec", dont_inherit=True)
    except ValueError as error:  # null bytes, before Python 3.12
        raise SyntaxError(str(error), (path, 1, 1, None)) from error


def stage(path: str, text: str) -> None:
    """Lets inspect, tracebacks and triton.jit read `text` under `path`, whatever lies on the disk."""
    lines = [line + "\n" for line in _LINE.split(text)]
    # a modification time of None means: never checked against the disk
    linecache.cache[path] = (len(text), None, lines, path)


def staged_lines(path: str, overlays: Mapping[str, str] | None = None) -> list[str]:
    """Lines of the text that was staged for `path`, or of an overlay, or of the disk; [] where there is none."""
    entry = linecache.cache.get(path)
    if entry is not None and len(entry) == 4:
        return [line.rstrip("\n") for line in entry[2]]
    if overlays and path in overlays:
        return _LINE.split(overlays[path])
    return [line.rstrip("\n") for line in linecache.getlines(path)]
