"""Owns the settings: names, kinds, defaults, and reading them from what an editor sends. Never stops on a bad value."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

DEVICE = re.compile(r"auto|cpu|cuda:\d{1,2}")
MOST_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The section `odyssey` of the editor's settings."""

    python: str = ""
    """Interpreter with torch and triton; '' asks the editor, then VIRTUAL_ENV, then our own."""
    evaluate: str = "save"
    """'save', 'pause' (one quiet second on text that parses) or 'off'."""
    device: str = "auto"
    """'auto', 'cpu' or 'cuda:N'."""
    watch: tuple[str, ...] = ()
    """Globs of files that are judged on any change although they were never opened."""
    mode: str = "fast"
    """'fast' or 'thorough', for saves."""
    model: str = ""
    """A litellm model name for proposals; '' uses the tuner alone."""
    model_base: str = ""
    """Address of an OpenAI-compatible server; '' for the model's own."""
    model_timeout_s: float = 120.0
    """How long one answer of the model may take."""
    reuse: bool = True
    """Show an earlier verdict of exactly this text, problem, card and environment instead of measuring again."""
    sandbox: bool = True
    """Confine candidates; off only for debugging the sandbox itself."""
    inlay_hints: bool = True
    code_lens: bool = True
    trace: bool = False
    """Write trace files of what the server does."""


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: its name in the editor, our attribute, and what it may be."""

    key: str
    attribute: str
    kind: type
    choices: tuple[str, ...] = ()


FIELDS: tuple[Field, ...] = (
    Field("python", "python", str),
    Field("evaluate", "evaluate", str, ("save", "pause", "off")),
    Field("device", "device", str),
    Field("watch", "watch", tuple),
    Field("mode", "mode", str, ("fast", "thorough")),
    Field("model", "model", str),
    Field("modelBase", "model_base", str),
    Field("modelTimeout", "model_timeout_s", float),
    Field("reuse", "reuse", bool),
    Field("sandbox", "sandbox", bool),
    Field("inlayHints", "inlay_hints", bool),
    Field("codeLens", "code_lens", bool),
    Field("trace", "trace", bool),
)


def read(section: Any, *, over: Settings | None = None) -> tuple[Settings, tuple[str, ...]]:
    """Settings from the editor's section, laid over `over`; and one sentence for each value that was ignored."""
    settings = over or Settings()
    if section is None:
        return settings, ()
    if not isinstance(section, dict):
        return settings, (f"odyssey: settings should be an object, not {_shown(section)}; defaults are used",)
    problems: list[str] = []
    for field in FIELDS:
        if section.get(field.key) is None:
            continue
        value, problem = _value(field, section[field.key])
        if problem:
            problems.append(problem)
        else:
            settings = replace(settings, **{field.attribute: value})
    return settings, tuple(problems)


def _value(field: Field, given: Any) -> tuple[Any, str]:
    name = f"odyssey.{field.key}"
    if field.kind is tuple:
        if isinstance(given, list) and all(isinstance(item, str) for item in given):
            return tuple(given), ""
        return None, f"{name} should be a list of globs, not {_shown(given)}; it is ignored"
    if field.kind is float:
        if isinstance(given, (int, float)) and not isinstance(given, bool) and 1 <= given <= MOST_SECONDS:
            return float(given), ""
        return None, f"{name} should be seconds from 1 to {MOST_SECONDS}, not {_shown(given)}; it is ignored"
    if field.kind is bool and isinstance(given, str) and given in ("on", "off"):
        return given == "on", ""
    if not isinstance(given, field.kind) or (isinstance(given, str) and "\0" in given):
        return None, f"{name} should be {_kind_words(field.kind)}, not {_shown(given)}; it is ignored"
    if field.choices and given not in field.choices:
        return None, f"{name} should be one of {', '.join(field.choices)}, not {_shown(given)}; it is ignored"
    if field.key == "device" and not DEVICE.fullmatch(str(given)):
        return None, f"{name} should be auto, cpu or cuda:N, not {_shown(given)}; it is ignored"
    return given, ""


def _kind_words(kind: type) -> str:
    return {str: "a text", bool: "true or false"}[kind]


def _shown(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 40 else words[:37] + "..."
