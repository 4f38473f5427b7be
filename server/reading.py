"""Owns reading texts for the server: analysis and bindings turned into sites, findings and bounds. Never runs a text.

It blocks while it parses, so the language server uses it only in a reader child; the command line calls it directly.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

from evalcore.bindings.binding import Binding, no_reference
from evalcore.bindings.registry import bind
from evalcore.bindings.starter import starter_for_kernel
from evalcore.jobs import Refusal
from evalcore.slicing import module_dependencies
from server import words
from server.analysis.check import Analysis, analyse_parsed
from server.analysis.finding import Finding
from server.analysis.outline import Parsed
from server.analysis.sites import KernelSite
from server.lean import lean_text
from server.project import read_text
from server.sites import Bound, Site, packed

_LONE_RETURN = re.compile(r"\r(?!\n)")

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "HEAD", ".git", "__init__.py")
"""Files that are looked for but whose content decides nothing."""


@dataclass(frozen=True, slots=True)
class Found:
    """What syntax shows in one text."""

    sites: tuple[Site, ...]
    findings: tuple[Finding, ...]
    parses: bool


class Reader:
    """Texts that are kept parsed, and questions about them."""

    def __init__(self) -> None:
        self._parsed: dict[str, Parsed] = {}

    def open(self, path: str, language: str, text: str) -> None:
        """Keep a text."""
        self._parsed[path] = Parsed(path, _lines_end_as_usual(text), language)

    def knows(self, path: str) -> bool:
        """Whether a text is kept."""
        return path in self._parsed

    def edit(self, path: str, edits: Sequence[tuple[int, int, str]]) -> None:
        """Apply (start byte, old end byte, new text), one after the other."""
        parsed = self._parsed[path]
        for start, end, text in edits:
            parsed.edit(start, end, _lines_end_as_usual(text))

    def close(self, path: str) -> None:
        """Forget a text."""
        self._parsed.pop(path, None)

    def analyse(self, path: str) -> Found:
        """Kernels and findings of a kept text."""
        return _found(analyse_parsed(self._parsed[path]))

    def lean(self, path: str, kernels: Sequence[str]) -> str | None:
        """A kept text without what these kernels do not need, line for line; None where it is not kept."""
        parsed = self._parsed.get(path)
        if parsed is None:
            return None
        starts = [start for start, _ in parsed.python_pieces()]
        if not starts:
            return parsed.data.decode("utf-8", "replace")
        data = parsed.data
        ends = [*starts[1:], len(data)]
        pieces = [data[: starts[0]], *(data[start:end] for start, end in zip(starts, ends, strict=True))]
        return lean_text(pieces, kernels).decode("utf-8", "replace")

    def bind(self, path: str, text: str, *, root: str, overlays: Mapping[str, str]) -> tuple[Bound, ...]:
        """How each kernel of a text is judged, in text order; one bound for each kernel that nothing binds."""
        disk = _Disk(overlays)
        answer = bind(path, text, read=disk.read)
        names = [site.name for site in self._sites_of(path, text) if not site.helper]
        if isinstance(answer, Refusal):
            place = _syntax_place(text) if answer.code == "syntax_error" else None
            return tuple(replace(_unbound(name, answer), place=place) for name in names)
        texts = [text]

        @cache
        def depends(above: str) -> tuple[str, ...]:
            found = dict.fromkeys([*disk.siblings(), *module_dependencies(text, path, above)])
            return tuple(each for each in found if each != path)

        bounds = [_bound(each, texts, depends(each.problem.project_root or root)) for each in _first_ways(answer)]
        covered = {name for bound in bounds for name in (*bound.kernels, bound.anchor)}
        bounds += [_unbound(name, no_reference(name)) for name in names if name not in covered]
        return tuple(replace(bound, texts=tuple(texts)) for bound in bounds)

    @staticmethod
    def starter(text: str, kernel: str) -> str | None:
        """What to append to a text so that a kernel gets a reference; None where no wrapper is in sight."""
        return starter_for_kernel(text, kernel)

    @staticmethod
    def _sites_of(path: str, text: str) -> tuple[Site, ...]:
        return _found(analyse_parsed(Parsed(path, _lines_end_as_usual(text), ""))).sites


class _Disk:
    """What bindings may read: unsaved buffers, else the disk, each file once."""

    def __init__(self, overlays: Mapping[str, str]) -> None:
        self._known: dict[str, str | None] = dict(overlays)
        self._asked: set[str] = set()

    def read(self, path: str) -> str | None:
        """A file's text, None where there is none."""
        self._asked.add(path)
        if path not in self._known:
            found = read_text(path)
            self._known[path] = found.text if found is not None else None
        return self._known[path]

    def siblings(self) -> list[str]:
        """The files that were read and whose content counts."""
        return sorted(path for path in self._asked if self._known[path] is not None and _counts(path))


def _first_ways(bindings: Sequence[Binding]) -> list[Binding]:
    """Of several ways to judge the same kernels the first one."""
    found: list[Binding] = []
    covered: set[str] = set()
    for binding in bindings:
        anchor = anchor_of(binding)
        if anchor in covered or (binding.kernels and covered.issuperset(binding.kernels)):
            continue
        covered.update(binding.kernels, (anchor,))
        found.append(binding)
    return found


def _syntax_place(text: str) -> tuple[int, int] | None:
    """Where Python's own parser stops: line and column from 1, None where it does not."""
    try:
        ast.parse(text)
    except SyntaxError as problem:
        return fault_place(problem)
    except (ValueError, RecursionError, MemoryError):
        return 1, 1
    return None


def fault_place(problem: SyntaxError) -> tuple[int, int]:
    """Line and column, from 1, at which Python's parser stopped."""
    return max(problem.lineno or 1, 1), max(problem.offset or 1, 1)


def anchor_of(binding: Binding) -> str:
    """The name that a verdict stands beside: the first launched kernel, else what is called."""
    launched = binding.problem.kernels or binding.kernels
    return launched[0] if launched else binding.wrapper


def _bound(binding: Binding, texts: list[str], depends: tuple[str, ...]) -> Bound:
    problem = binding.problem
    return Bound(
        anchor=anchor_of(binding),
        kernels=binding.kernels,
        format=problem.format,
        cases=tuple(case.name for case in problem.cases),
        evidence=binding.evidence,
        depends=depends,
        packed=packed(problem, texts),
    )


def _unbound(name: str, refusal: Refusal) -> Bound:
    return Bound(
        anchor=name,
        kernels=(name,),
        refusal_code=refusal.code,
        refusal_words=words.refusal_words(refusal),
    )


def _lines_end_as_usual(text: str) -> str:
    """A lone carriage return ends a line for Python and for editors, but not for the parser; lengths stay the same."""
    return _LONE_RETURN.sub("\n", text) if "\r" in text else text


def _counts(place: str) -> bool:
    return PurePath(place).name not in MARKERS


def _found(analysis: Analysis) -> Found:
    outline = analysis.outline
    sites = tuple(_site(kernel, outline.kernels) for kernel in outline.kernels)
    return Found(sites, analysis.findings, outline.parses)


def _site(kernel: KernelSite, all_kernels: Sequence[KernelSite]) -> Site:
    return Site(
        name=kernel.name,
        language=kernel.language,
        span=kernel.span,
        name_span=kernel.name_span,
        helper=_is_helper(kernel, all_kernels),
    )


def _is_helper(kernel: KernelSite, all_kernels: Sequence[KernelSite]) -> bool:
    """A jitted function that nothing launches here and that another kernel's name is launched instead of."""
    if kernel.launches or kernel.language == "cuda":
        return False
    return any(other is not kernel and other.launches for other in all_kernels)
