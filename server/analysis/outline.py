"""Owns text -> Outline: which kernels stand where, half-typed text welcome. Never raises for any text, never runs one.

`Parsed` is the incremental form: it holds a text cut into pieces, and reads again only the pieces that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from server.analysis.chunks import Pieces, cuda_pieces, python_pieces
from server.analysis.cuda_facts import CudaFacts, CudaKernel, read_cuda
from server.analysis.finding import Span
from server.analysis.python_facts import FunctionFacts, LaunchFacts, PieceFacts, read_piece
from server.analysis.sites import Decorator, KernelSite, Launch, Outline, Param, StringOrigin, Wrapper
from server.analysis.strings import Literal

_BOM = b"\xef\xbb\xbf"


def language_of(path: str, hint: str = "") -> str:
    """'python', 'cuda', 'notebook' or 'other', by the file's name, else by what the editor calls it."""
    lower = path.lower()
    if lower.endswith((".cu", ".cuh")):
        return "cuda"
    if lower.endswith(".ipynb"):
        return "notebook"
    if lower.endswith((".py", ".pyi")) or hint in ("python", "triton"):
        return "python"
    return "cuda" if hint.startswith("cuda") else "other"


class Parsed:
    """One document's text, cut and read. Cheap to edit; `outline` and `check.findings` read from it."""

    def __init__(self, path: str, text: str, language: str = "") -> None:
        self.path = path
        self.language = language_of(path, language)
        scanner = cuda_pieces if self.language == "cuda" else python_pieces
        self._pieces = Pieces(text.encode("utf-8", "replace"), scanner)
        self._python: dict[bytes, PieceFacts] = {}
        self._cuda: dict[bytes, CudaFacts] = {}
        self._string_pieces: dict[bytes, list[tuple[int, bytes]]] = {}
        self._cut: list[tuple[int, PieceFacts]] | None = None
        self.memo: dict[str, object] = {}
        """What others keep about this document between edits."""

    @property
    def data(self) -> bytes:
        """The whole text as UTF-8."""
        return self._pieces.data

    def edit(self, start: int, old_end: int, new_text: str) -> None:
        """Replace the bytes start..old_end by `new_text`. Offsets outside the text are clamped."""
        self._cut = None
        self._pieces.edit(start, old_end, new_text.encode("utf-8", "replace"))

    def replace(self, text: str) -> None:
        """Make `text` the whole text; only what differs is cut and read anew."""
        new, old = text.encode("utf-8", "replace"), self.data
        head = _common(old, new)
        tail = min(_common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
        self._cut = None
        self._pieces.edit(head, len(old) - tail, new[head : len(new) - tail])

    def python_pieces(self) -> list[tuple[int, PieceFacts]]:
        """(offset, facts) of each piece of a Python text. Pieces that did not change are not read again."""
        if self.language != "python":
            return []
        if self._cut is not None:
            return self._cut
        known, self._python = self._python, {}
        found: list[tuple[int, PieceFacts]] = []
        for start, end in self._pieces.spans():
            start += 3 if start == 0 and self.data.startswith(_BOM) else 0
            text = self.data[start:end]
            facts = self._python.get(text) or known.get(text) or read_piece(text)
            self._python[text] = facts
            found.append((start, facts))
        self._cut = found
        return found

    def cuda_pieces(self) -> list[tuple[int, CudaFacts]]:
        """(offset, facts) of each piece of a CUDA text."""
        if self.language != "cuda":
            return []
        known, self._cuda = self._cuda, {}
        return [self._cuda_piece(start, self.data[start:end], known) for start, end in self._pieces.spans()]

    def string_pieces(self, literal: Literal, text: bytes) -> list[tuple[int, CudaFacts]]:
        """(offset from the piece's start, facts) of the CUDA text in one Python string."""
        key = text
        if key not in self._string_pieces:
            if len(self._string_pieces) > 64:
                self._string_pieces.clear()
            self._string_pieces[key] = [(start, text[start:end]) for start, end in Pieces(text, cuda_pieces).spans()]
        return [
            self._cuda_piece(literal.content_start + start, part, self._cuda)
            for start, part in self._string_pieces[key]
        ]

    def _cuda_piece(self, start: int, text: bytes, known: dict[bytes, CudaFacts]) -> tuple[int, CudaFacts]:
        facts = self._cuda.get(text) or known.get(text) or read_cuda(text)
        self._cuda[text] = facts
        return start, facts


def _common(one: bytes, other: bytes) -> int:
    """Length of the common head of two byte strings, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def outline(parsed: Parsed) -> Outline:
    """What is seen in the text now."""
    sha = hashlib.sha256(parsed.data).hexdigest()
    if parsed.language == "python":
        return _python_outline(parsed, sha)
    if parsed.language == "cuda":
        return _cuda_outline(parsed, sha)
    return Outline(path=parsed.path, language=parsed.language, text_sha=sha)


def _python_outline(parsed: Parsed, sha: str) -> Outline:
    pieces = parsed.python_pieces()
    names = {each.name for _offset, facts in pieces for each in facts.functions if each.kernel}
    aliases = {"", *names}
    launches = [
        _launch(offset, each)
        for offset, facts in pieces
        for each in facts.launches
        if each.grid or each.kernel.rsplit(".", 1)[-1] in aliases
    ]
    by_kernel: dict[str, list[Launch]] = {}
    for launch in launches:
        by_kernel.setdefault(launch.kernel.rsplit(".", 1)[-1], []).append(launch)
    kernels = [
        _site(parsed.path, sha, offset, each, by_kernel)
        for offset, facts in pieces
        for each in facts.functions
        if each.kernel
    ]
    kernels += _string_sites(parsed, sha, pieces)
    kernels.sort(key=lambda site: site.span.start)
    return Outline(
        path=parsed.path,
        language="python",
        text_sha=sha,
        kernels=tuple(kernels),
        launches=tuple(launches),
        wrappers=tuple(_wrappers(pieces, names, launches)),
        imports=tuple(dict.fromkeys(name for _offset, facts in pieces for name in facts.imports)),
        parses=not any(facts.broken for _offset, facts in pieces),
    )


def _span(offset: int, start: int, end: int) -> Span:
    return Span(offset + start, offset + end)


def _launch(offset: int, facts: LaunchFacts) -> Launch:
    return Launch(
        facts.kernel, _span(offset, facts.start, facts.end), facts.grid, facts.args, facts.keywords, facts.owner
    )


def _details(offset: int, facts: FunctionFacts) -> Callable[[], tuple[tuple[Param, ...], tuple[Decorator, ...]]]:
    def make() -> tuple[tuple[Param, ...], tuple[Decorator, ...]]:
        params = tuple(
            Param(each.name, _span(offset, each.start, each.end), each.constexpr, each.annotation, each.default)
            for each in facts.params
        )
        decorators = tuple(
            Decorator(each.name, each.kind, _span(offset, each.start, each.end)) for each in facts.decorators
        )
        return params, decorators

    return make


def _site(path: str, sha: str, offset: int, facts: FunctionFacts, launches: dict[str, list[Launch]]) -> KernelSite:
    return KernelSite(
        path=path,
        name=facts.name,
        language="triton",
        qualname=facts.qualname,
        span=_span(offset, facts.start, facts.end),
        name_span=_span(offset, facts.name_start, facts.name_end),
        signature_span=_span(offset, facts.signature_start, facts.signature_end),
        launches=tuple(launches.get(facts.name, ())),
        text_sha=sha,
        complete=facts.node is not None,
        details=_details(offset, facts),
    )


def _wrappers(pieces: list[tuple[int, PieceFacts]], names: set[str], launches: list[Launch]) -> Iterator[Wrapper]:
    launched: dict[str, list[str]] = {}
    for launch in launches:
        kernel = launch.kernel.rsplit(".", 1)[-1]
        if kernel in names and kernel not in launched.setdefault(launch.owner, []):
            launched[launch.owner].append(kernel)
    for offset, facts in pieces:
        for each in facts.functions:
            if not each.kernel and launched.get(each.qualname):
                yield Wrapper(
                    each.name, each.qualname, _span(offset, each.start, each.end),
                    _span(offset, each.name_start, each.name_end), tuple(launched[each.qualname]),
                )  # fmt: skip


def _string_sites(parsed: Parsed, sha: str, pieces: list[tuple[int, PieceFacts]]) -> list[KernelSite]:
    """Kernels in CUDA text inside Python strings."""
    makers = [maker for _offset, facts in pieces for maker in facts.makers]
    found: list[KernelSite] = []
    for offset, facts in pieces:
        for literal, text in facts.strings:
            origin = StringOrigin(
                span=_span(offset, literal.start, literal.end),
                content=_span(offset, literal.content_start, literal.content_end),
                prefix=literal.prefix,
                terminated=literal.terminated,
                variable=literal.variable,
                maker=_maker(literal, makers),
            )
            cuda = parsed.string_pieces(literal, text)
            launches = _cuda_launches(offset, cuda)
            for start, piece in cuda:
                found += [
                    _cuda_site(parsed.path, sha, offset + start, each, launches, origin) for each in piece.kernels
                ]
    return found


def _maker(literal: Literal, makers: list[tuple[str, frozenset[str]]]) -> str:
    named = [name for name, words in makers if literal.variable and literal.variable in words]
    if named:
        return named[0]
    return makers[0][0] if len(makers) == 1 else ""


def _cuda_launches(offset: int, pieces: list[tuple[int, CudaFacts]]) -> list[Launch]:
    return [
        Launch(each.kernel, _span(offset + start, each.start, each.end), each.config, each.args, (), each.owner)
        for start, facts in pieces
        for each in facts.launches
    ]


def _cuda_site(
    path: str, sha: str, offset: int, facts: CudaKernel, launches: list[Launch], origin: StringOrigin | None = None
) -> KernelSite:
    return KernelSite(
        path=path,
        name=facts.name,
        language="cuda",
        qualname=facts.name,
        span=_span(offset, facts.start, facts.end),
        name_span=_span(offset, facts.name_start, facts.name_end),
        signature_span=_span(offset, facts.signature_start, facts.signature_end),
        launches=tuple(each for each in launches if each.kernel == facts.name),
        text_sha=sha,
        origin=origin,
        complete=facts.complete,
        details=_cuda_details(offset, facts),
    )


def _cuda_details(offset: int, facts: CudaKernel) -> Callable[[], tuple[tuple[Param, ...], tuple[Decorator, ...]]]:
    def make() -> tuple[tuple[Param, ...], tuple[Decorator, ...]]:
        params = (Param(each.name, _span(offset, each.start, each.end), False, each.type) for each in facts.params)
        return tuple(params), ()

    return make


def _cuda_outline(parsed: Parsed, sha: str) -> Outline:
    pieces = parsed.cuda_pieces()
    launches = _cuda_launches(0, pieces)
    kernels = [
        _cuda_site(parsed.path, sha, offset, each, launches) for offset, facts in pieces for each in facts.kernels
    ]
    return Outline(
        path=parsed.path,
        language="cuda",
        text_sha=sha,
        kernels=tuple(kernels),
        launches=tuple(launches),
        wrappers=tuple(_cuda_wrappers(launches)),
        imports=tuple(dict.fromkeys(name for _offset, facts in pieces for name in facts.includes)),
        parses=not any(facts.broken for _offset, facts in pieces),
    )


def _cuda_wrappers(launches: list[Launch]) -> Iterator[Wrapper]:
    """Host functions of a .cu file, placed at their first launch."""
    by_owner: dict[str, list[Launch]] = {}
    for launch in launches:
        if launch.owner:
            by_owner.setdefault(launch.owner, []).append(launch)
    for owner, own in by_owner.items():
        kernels = tuple(dict.fromkeys(each.kernel for each in own))
        yield Wrapper(owner, owner, own[0].span, own[0].span, kernels)
