"""Owns odyssey.toml: one [[kernel]] table a problem, in the folder of the file or above it. Runs nothing.

[[kernel]]
file = "kernels/softmax.py"
candidate = "softmax"
reference = "torch.softmax(x, dim=-1)"
inputs = "x = torch.randn(M, N, device='cuda')"
sizes = [{ M = 4096, N = 1000 }, { M = 64, N = 33 }]
tolerance = { atol = 1e-5, rtol = 1e-5 }
"""

from __future__ import annotations

from pathlib import PurePath
from types import ModuleType
from typing import Any

from evalcore.bindings.binding import Binding, Reader
from evalcore.bindings.comment import listed
from evalcore.bindings.constants import is_size
from evalcore.bindings.declared import Declaration, build
from evalcore.bindings.root import ancestors
from evalcore.jobs import Refusal

FORMAT = "toml"
FILE = "odyssey.toml"


def bind_toml(path: str, text: str, read: Reader) -> list[Binding | Refusal]:
    """One binding for each table whose `file` is `path`; a refusal where the table or the file cannot be read."""
    for folder in ancestors(PurePath(path).parent):
        config = read(str(folder / FILE))
        if config is not None:
            return _from_config(config, folder, path, text, read)
    return []


def _from_config(config: str, folder: PurePath, path: str, text: str, read: Reader) -> list[Binding | Refusal]:
    parser = _parser()
    if parser is None:
        return [
            Refusal(
                code="no_toml",
                message=f"{FILE} cannot be read: this Python has no TOML parser",
                remedy="Use Python 3.11 or newer, or install tomli.",
            )
        ]
    try:
        tables = parser.loads(config).get("kernel", [])
    except ValueError as error:
        return [Refusal(code="bad_declaration", message=f"{FILE} is not TOML: {error}", remedy="Mend that line.")]
    found: list[Binding | Refusal] = []
    for number, table in enumerate(tables if isinstance(tables, list) else [], start=1):
        if isinstance(table, dict) and str(folder / str(table.get("file", ""))) == path:
            found.append(build(_declaration(table, number), path, text, read=read, format=FORMAT))
    return found


def _parser() -> ModuleType | None:
    try:
        import tomllib

        return tomllib
    except ModuleNotFoundError:
        pass
    try:
        import tomli  # Python 3.10 has no tomllib

        return tomli
    except ModuleNotFoundError:
        return None


def _declaration(table: dict[str, Any], number: int) -> Declaration:
    declared = Declaration(where=f"{FILE}, table {number}")
    for key in ("reference", "candidate", "kernel", "grid", "block"):
        setattr(declared, key, str(table.get(key, "")))
    inputs = table.get("inputs", "")
    declared.inputs = ", ".join(str(each) for each in inputs) if isinstance(inputs, list) else str(inputs)
    declared.shared = str(table.get("shared", "0"))
    declared.args = _words(table.get("args"))
    declared.outputs = _words(table.get("outputs"))
    declared.options = _words(table.get("options"))
    declared.backward = table.get("backward") is True
    declared.tolerance = _tolerance(table.get("tolerance"))
    sizes = table.get("sizes", [])
    settings = [sizes] if isinstance(sizes, dict) else sizes if isinstance(sizes, list) else []
    declared.sizes = [kept for each in settings if isinstance(each, dict) and (kept := _sizes(each))]
    return declared


def _sizes(table: dict[str, Any]) -> dict[str, int]:
    return {name: value for name, value in table.items() if is_size(value)}


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(each) for each in value)
    return listed(str(value)) if value else ()


def _tolerance(value: Any) -> tuple[float, float] | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value), float(value)
    if isinstance(value, dict):
        return float(value.get("atol", 0.0)), float(value.get("rtol", 0.0))
    return None
