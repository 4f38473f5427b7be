"""Owns the order of the formats and `bind`, the one door to them. Never reads a file itself and never runs a text.

Cheapest and most explicit first: what a person declared wins over what is recognised.
"""

from __future__ import annotations

from evalcore.bindings import comment, cuda_inline, kernelbench, toml, tutorial
from evalcore.bindings.binding import Binding, Reader, Source, no_reference, parse
from evalcore.bindings.calls import HostMap, global_names, host_map
from evalcore.jobs import Refusal

DECLARED = (comment.bind_comment, toml.bind_toml)
"""Formats that need no Python syntax tree of the file: (path, text, read) -> bindings or refusals."""
RECOGNISED = (kernelbench.bind_kernelbench, tutorial.bind_triton, cuda_inline.bind_cuda_inline)
"""Formats that read the file's tree: (source, read, hosts) -> bindings."""
CUDA_SUFFIXES = (".cu", ".cuh")


def bind(
    path: str, text: str, *, read: Reader, kernel: str | None = None, cursor: int | None = None
) -> list[Binding] | Refusal:
    """All ways to judge the kernels of a file, the chosen one first; a refusal where there is none.

    `path` is absolute. `kernel` keeps only bindings that exercise that kernel; `cursor` (1-based line) picks the kernel
    around or before it. The first binding that covers a kernel is the one to use, the others are for a picker.
    """
    try:
        return _bind(path, text, read, kernel, cursor)
    except RecursionError:
        remedy = "Split the expression."
        return Refusal(code="unreadable", message="the file is nested too deeply to be read", remedy=remedy)


def _bind(path: str, text: str, read: Reader, kernel: str | None, cursor: int | None) -> list[Binding] | Refusal:
    found, refusals = _declared(path, text, read)
    hosts: HostMap | None = None
    source: Source | None = None
    if not path.endswith(CUDA_SUFFIXES):
        parsed = parse(path, text)
        if isinstance(parsed, Refusal):
            return found or parsed
        source = parsed
        hosts = host_map(source.tree)
        found += _recognised(source, read, hosts)
        names = list(hosts.kernels)
    else:
        names = global_names(text)
    wanted = kernel or (_kernel_at(hosts, cursor) if hosts is not None and cursor is not None else None)
    if wanted is not None:
        found = [each for each in found if wanted in each.kernels or wanted == each.wrapper]
    if found:
        return found
    if refusals:
        return refusals[0]
    if not names and not (hosts is not None and "ModelNew" in hosts.classes):
        return Refusal(code="no_kernel", message="there is no kernel in this file", remedy="Open a file with a kernel.")
    why = _why_not(source, hosts) if source is not None and hosts is not None else ""
    return no_reference(wanted or ", ".join(names[:3]) or "ModelNew", why, cuda=path.endswith(CUDA_SUFFIXES))


def _why_not(source: Source, hosts: HostMap) -> str:
    if "ModelNew" in hosts.classes:
        return "it has a ModelNew, but no file beside it has the class Model and get_inputs"
    return tutorial.why_not(source, hosts)


def _declared(path: str, text: str, read: Reader) -> tuple[list[Binding], list[Refusal]]:
    found: list[Binding] = []
    refusals: list[Refusal] = []
    for format in DECLARED:
        for each in format(path, text, read):
            if isinstance(each, Refusal):
                refusals.append(each)
            else:
                found.append(each)
    return found, refusals


def _recognised(source: Source, read: Reader, hosts: HostMap) -> list[Binding]:
    return [binding for format in RECOGNISED for binding in format(source, read, hosts)]


def _kernel_at(hosts: HostMap, line: int) -> str | None:
    """The last kernel that starts at or before a line, else the first one."""
    ordered = sorted(hosts.kernels.values(), key=lambda each: each.line)
    before = [each for each in ordered if each.line <= line]
    chosen = before[-1:] or ordered[:1]
    return chosen[0].name if chosen else None
