"""Owns @triton.autotune in an evaluation: which config runs, and that Triton never times anything itself.

`Autotuner.run` is replaced. Under the interpreter, and where a config is forced, exactly one config runs per call. On a
card the last winner runs; where there is none, the configs are timed here, once, with every tensor put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class TunedKernel:
    """What was seen of one autotuned kernel."""

    name: str
    configs: list[str] = field(default_factory=list)
    """Configs left after pruning, in words, in the person's order."""
    chosen: str = ""
    """The config that ran last."""
    wanted: str | None = None
    """What was forced or preferred when `chosen` was."""
    timings_us: dict[str, float] = field(default_factory=dict)
    """Quick timings of this process, where it had to choose; not for reports of speed."""


_seen: dict[str, TunedKernel] = {}
_preferred: dict[str, str] = {}
_forced: dict[str, str] = {}
_labels: dict[tuple[int, tuple[Any, ...]], str] = {}
_chosen: dict[tuple[int, tuple[Any, ...]], Any] = {}
_interpreted = False


def words(config: Any) -> str:
    """A config as a person would write it, such as 'BLOCK=128, num_warps=4, num_stages=3'."""
    parts = [f"{key}={value}" for key, value in config.kwargs.items()]
    for name in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
        value = getattr(config, name, None)
        if value is not None and not (name == "num_ctas" and value == 1):
            parts.append(f"{name}={value}")
    return ", ".join(parts)


def seen() -> dict[str, TunedKernel]:
    """Autotuned kernels that ran since `forget`, by name."""
    return dict(_seen)


def forget() -> None:
    """Starts anew for a new load; preferences stay."""
    for table in (_seen, _forced, _labels, _chosen):
        table.clear()  # type: ignore[attr-defined]


def prefer(winners: dict[str, str]) -> None:
    """Kernel name -> words of the config that won before: it runs first and untimed, if it is still listed."""
    _preferred.clear()
    _preferred.update(winners)


@contextmanager
def forced(name: str, config: str) -> Iterator[None]:
    """Every call of kernel `name` runs `config` (in words), so that each config can be judged and timed alone."""
    before = _forced.get(name)
    _forced[name] = config
    try:
        yield
    finally:
        if before is None:
            _forced.pop(name, None)
        else:
            _forced[name] = before


def install(*, interpreted: bool) -> None:
    """Replaces `Autotuner.run`. Safe to call again."""
    global _interpreted
    _interpreted = interpreted
    try:
        from triton.runtime.autotuner import Autotuner
    except ImportError:
        return
    Autotuner.run = _run


def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
    self.nargs = dict(zip(self.arg_names, args))  # noqa: B905  (a launch may pass constexprs by keyword)
    try:
        config = _choose(self, args, kwargs)
        self.best_config = config
        given = {**kwargs, **_config_kwargs(config)}
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **given})
        return self.fn.run(*args, **given)
    finally:
        self.nargs = None


def _config_kwargs(config: Any) -> dict[str, Any]:
    given: dict[str, Any] = config.all_kwargs()
    return given


def _choose(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The config for this call. As in Triton, pruning and choosing happen once per key, unless a config is forced."""
    use = (id(tuner), _key(tuner, args, kwargs))
    label = _label(tuner.base_fn.__name__, use)
    record = _seen[label]
    wanted = _forced.get(label) or _preferred.get(label)
    if record.wanted != wanted or use not in _chosen:
        record.wanted = wanted
        _chosen[use] = _decide(tuner, args, kwargs, record)
        record.chosen = words(_chosen[use])
    return _chosen[use]


def _label(name: str, use: tuple[int, tuple[Any, ...]]) -> str:
    """The kernel's name; a second key of one kernel, such as another shape in the same run, is 'name#2'."""
    if use not in _labels:
        count = sum(1 for other in _labels.values() if other.split("#")[0] == name)
        _labels[use] = f"{name}#{count + 1}" if count else name
        _seen[_labels[use]] = TunedKernel(_labels[use])
    return _labels[use]


def _decide(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], record: TunedKernel) -> Any:
    pruned = list(tuner.prune_configs(kwargs)) if len(tuner.configs) > 1 else list(tuner.configs)
    by_words = {words(config): config for config in pruned}
    record.configs = list(by_words)
    wanted = record.wanted or ""
    if wanted in by_words:
        return by_words[wanted]
    if record.name in _forced:
        pruned_away = next((one for one in tuner.configs if words(one) == wanted), None)
        if pruned_away is not None:
            return pruned_away
    if _interpreted or len(pruned) == 1:
        return pruned[0]
    if not record.timings_us:
        record.timings_us = _time_all(tuner, args, kwargs, pruned)
    timings = record.timings_us
    tuner.configs_timings = {config: timings[words(config)] for config in pruned}
    return min(pruned, key=lambda config: timings[words(config)])


def _key(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    named = {**dict(zip(tuner.arg_names, args)), **kwargs}  # noqa: B905
    key = [named[name] for name in tuner.keys if name in named]
    key += [str(value.dtype) for name, value in named.items() if name in tuner.arg_names and hasattr(value, "dtype")]
    return tuple(key)


def _time_all(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], pruned: list[Any]) -> dict[str, float]:
    """Microseconds per config: best of three after one warm launch. A config that cannot run counts as infinite."""
    import torch

    with _put_back(torch, [*args, *kwargs.values()]) as put_back:
        timings: dict[str, float] = {}
        first_error: Exception | None = None
        for config in pruned:
            try:
                timings[words(config)] = _time_one(torch, tuner, args, {**kwargs, **_config_kwargs(config)}, config)
            except _does_not_fit() as error:
                timings[words(config)] = float("inf")
                first_error = first_error or error
            put_back()
    if first_error is not None and all(value == float("inf") for value in timings.values()):
        raise first_error
    return timings


def _does_not_fit() -> tuple[type[Exception], ...]:
    """Errors by which a config rules itself out, as Triton's own tuner sees it."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime import errors

    return (errors.OutOfResources, CompileTimeAssertionFailure, getattr(errors, "PTXASError", errors.OutOfResources))


def _time_one(torch: Any, tuner: Any, args: tuple[Any, ...], given: dict[str, Any], config: Any) -> float:
    def launch() -> None:
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **given})
        for name in tuner.reset_to_zero:
            _named(tuner, given, name).zero_()
        tuner.fn.run(*args, **given)

    launch()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) * 1000.0)
    return best


def _named(tuner: Any, given: dict[str, Any], name: str) -> Any:
    """A kernel argument by name. In Triton up to 3.2 reset_to_zero and restore_value hold positions."""
    key = tuner.arg_names[name] if isinstance(name, int) else name
    return {**tuner.nargs, **given}[key]


@contextmanager
def _put_back(torch: Any, values: list[Any]) -> Iterator[Callable[[], None]]:
    """Yields a function that puts every tensor's bytes back as they were; skipped for what does not fit in memory."""
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.is_cuda]
    needed = sum(one.numel() * one.element_size() for one in tensors)
    free, _ = torch.cuda.mem_get_info()
    copies = [(one, one.clone()) for one in tensors] if needed < free * 0.8 else []

    def put_back() -> None:
        for tensor, copy in copies:
            tensor.copy_(copy)

    yield put_back
