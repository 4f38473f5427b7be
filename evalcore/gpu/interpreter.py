"""Owns running Triton kernels without a GPU: Triton's own interpreter, for user code that was written for one.

The process was started with TRITON_INTERPRET=1. `install` once, then user code runs inside `running()`. Never compiles:
after one interpreted launch this process cannot.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import torch
import triton
import triton.language as tl
from triton.runtime import interpreter as stock

from evalcore.gpu import autotune, bf16, fake_cuda, interpreted_values, redirect, sanitizer, signatures
from evalcore.jobs import Flag

_launches: dict[tuple[str, str], int] = {}
_signature = ""
"""Of the launch that is about to run."""
_notes: dict[str, Flag] = {}
_installed = False


class WrongVersions(RuntimeError):
    """This pair of Triton and numpy cannot interpret. The message says what to install."""


def note(code: str, message: str) -> None:
    """Remembers a remark for the verdict; one per code and message."""
    _notes[f"{code}:{message}"] = Flag(code=code, message=message)


def notes() -> list[Flag]:
    """Remarks since `forget`."""
    return list(_notes.values())


def launches() -> dict[tuple[str, str], int]:
    """(kernel name, signature) -> interpreted launches since `forget`."""
    return dict(_launches)


def forget() -> None:
    """Starts a new count for a new load."""
    _launches.clear()
    autotune.forget()
    _notes.clear()


def install() -> None:
    """Prepares this process. Raises WrongVersions where interpreting could only give wrong errors."""
    global _installed
    if _installed:
        return
    _check_versions()
    fake_cuda.install()
    bf16.install()
    interpreted_values.install()
    sanitizer.install()
    _patch_once_per_launch()
    _wrap_executor()
    _wrap_run()
    _wrap_backward()
    autotune.install(interpreted=True)
    _installed = True


def _check_versions() -> None:
    import numpy

    mine = tuple(int(part) for part in triton.__version__.split(".")[:2])
    theirs = tuple(int(part) for part in numpy.__version__.split(".")[:2])
    if mine <= (3, 6) and theirs >= (2, 4):
        raise WrongVersions(
            f"the interpreter of Triton {triton.__version__} cannot work with numpy {numpy.__version__}: every "
            "`range(0, n)` in a kernel fails; install 'numpy<2.4' or Triton 3.7 or newer"
        )


@contextlib.contextmanager
def running() -> Iterator[None]:
    """The state in which user code runs."""
    with redirect.pretend_cuda():
        yield


_patched: set[int] = set()
"""Modules of Triton's language that the running launch has made interpretable."""


class _NothingToRestore:
    def restore(self) -> None:
        return None


def _patch_once_per_launch() -> None:
    """The stock interpreter patches all of `tl` anew for every call of a device function: half of its time."""
    original = stock._patch_lang
    languages: dict[int, tuple[Any, frozenset[int]]] = {}

    def patch(function: Any) -> Any:
        names = function.__globals__
        _, found = languages.get(id(names), (None, frozenset()))
        if not found:
            found = frozenset(id(value) for value in list(names.values()) if value is tl or value is tl.core)
            languages[id(names)] = (names, found)  # held, so that the id stays its own
        if found and found <= _patched:
            return _NothingToRestore()
        _patched.update(found)
        return original(function)

    stock._patch_lang = patch
    stock._get_np_dtype = _dtype_by_name(stock._get_np_dtype)


def _dtype_by_name(original: Any) -> Any:
    """The same numpy dtype without building Triton's whole table for every operation."""
    known: dict[str, Any] = {}

    def np_dtype(kind: Any) -> Any:
        scalar = kind.element_ty if isinstance(kind, tl.block_type) else kind
        name = "pointer" if isinstance(scalar, tl.pointer_type) else scalar.name
        found = known.get(name)
        if found is None:
            found = known[name] = original(kind)
        return found

    return np_dtype


def _wrap_executor() -> None:
    original = stock.GridExecutor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        finished = False
        _patched.clear()
        with redirect.plain_torch():
            before = sanitizer.begin(self.fn, args, kwargs)
            try:
                result = original(self, *args, **kwargs)
                finished = True
                variant = (self.fn.__name__, _signature)
                _launches[variant] = _launches.get(variant, 0) + 1
            finally:
                race = sanitizer.end(before, finished=finished)
                if race:
                    note("race", race)
            return result

    stock.GridExecutor.__call__ = call


class InterpretedLaunch:
    """What a launch or a warm-up returns: a compiled kernel's attributes, as far as user code reads them."""

    n_regs = 32
    n_spills = 0

    def __init__(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._function = function
        self._bound = {**dict(zip(function.arg_names, args)), **options}  # noqa: B905  (a launch may name the rest)
        name = self.name = function.fn.__name__
        self.asm: dict[str, str] = dict.fromkeys(("ttir", "ttgir", "llir", "ptx", "cubin", "source"), "")
        self.metadata = _Metadata(
            name=name, shared=1024, num_warps=options.get("num_warps", 4), num_stages=options.get("num_stages", 3),
            num_ctas=options.get("num_ctas", 1), warp_size=32, target=fake_cuda.FakeDriver(90).target,
        )

    def _init_handles(self) -> None:
        return None

    def __getitem__(self, grid: Any) -> Any:
        """Launch by hand: every parameter in order, or (up to Triton 3.2) all but the constexprs."""

        def launch(*args: Any, stream: Any = None) -> None:
            names = self._function.arg_names
            if len(args) < len(names):
                names = [name for name in names if not _is_constexpr(self._function.fn, name)]
            given = {**self._bound, **dict(zip(names, args))}  # noqa: B905
            self._function.run(**given, grid=grid, warmup=False)

        return launch


def _is_constexpr(function: Any, name: str) -> bool:
    return "constexpr" in str(function.__annotations__.get(name, ""))


class _Metadata:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def _wrap_run() -> None:
    """Launches and warm-ups return what a compiled kernel would. Up to Triton 3.3 `run` is made for each instance."""
    kind = stock.InterpretedFunction
    start = kind.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        self.__dict__.pop("run", None)

    def run(self: Any, *args: Any, grid: Any = None, warmup: bool = False, **kwargs: Any) -> Any:
        if not warmup:
            hooks = getattr(self, "pre_run_hooks", None)
            more = () if hooks is None else (hooks,)
            named = {name: value for name, value in kwargs.items() if name in self.arg_names}
            _remember_signature(self, args, kwargs)
            stock.GridExecutor(self.rewrite(), self.arg_names, grid, *more)(*args, **named)
        return InterpretedLaunch(self, args, kwargs)

    def warmup(self: Any, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        return InterpretedLaunch(self, args, kwargs)

    def getitem(self: Any, grid: Any) -> Any:
        return functools.partial(self.run, grid=grid, warmup=False)

    kind.__init__, kind.run, kind.warmup, kind.__getitem__ = init, run, warmup, getitem


def _remember_signature(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    global _signature
    names = function.arg_names
    given = {**_defaults(function.fn), **dict(zip(names, args)), **kwargs}  # noqa: B905
    constexprs = {name for name in names if _is_constexpr(function.fn, name)}
    with redirect.plain_torch():
        _signature = signatures.capture(names, constexprs, given, kwargs)


def _defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


def _wrap_backward() -> None:
    """A Function's backward is called by the autograd engine, where the mode of the caller is off."""
    kind: Any = torch.autograd.function.BackwardCFunction
    original = kind.apply

    def apply(self: Any, *args: Any) -> Any:
        with redirect.CpuForCuda():
            return original(self, *args)

    kind.apply = apply
