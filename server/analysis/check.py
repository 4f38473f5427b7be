"""Owns running all rules over a text: the literal list of them, and the one pure entry `analyse`.

Never raises for a text. A rule is asked again only where its kernel, or host code that mentions it, has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from server.analysis.finding import Finding
from server.analysis.kernel_view import KernelView, view
from server.analysis.outline import Parsed, outline
from server.analysis.python_facts import FunctionFacts, PieceFacts
from server.analysis.reach import Reach
from server.analysis.rules import arange_size, autotune_inplace, dot_tf32, int32_offset_overflow, unmasked_access
from server.analysis.rules.draft import Draft
from server.analysis.sight import Sight
from server.analysis.sites import Outline

Rule = Callable[[KernelView, Sight], Iterator[Draft]]
RULES: tuple[Rule, ...] = (
    arange_size.check,
    autotune_inplace.check,
    dot_tf32.check,
    int32_offset_overflow.check,
    unmasked_access.check,
)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that static analysis has to say about one text."""

    outline: Outline
    findings: tuple[Finding, ...]


def analyse(path: str, text: str, language: str = "") -> Analysis:
    """Outline and findings of a text, from nothing. Pure: may run in any process."""
    return analyse_parsed(Parsed(path, text, language))


def analyse_parsed(parsed: Parsed) -> Analysis:
    """Outline and findings of a text that is kept and edited; only changed pieces cost."""
    seen = outline(parsed)
    checker = parsed.memo.get("checker")
    if not isinstance(checker, _Checker):
        checker = parsed.memo["checker"] = _Checker()
    return Analysis(seen, checker.findings(parsed.python_pieces()))


class _Checker:
    """What was said about each kernel, and what of it is still good after an edit."""

    def __init__(self) -> None:
        self._reach = Reach()
        self._sight: Sight | None = None
        self._host: tuple[int, ...] = ()

    def findings(self, pieces: list[tuple[int, PieceFacts]]) -> tuple[Finding, ...]:
        """Findings of all kernels of a text, in order."""
        places = {id(facts): offset for offset, facts in pieces}
        kernels = [(each, facts) for _offset, facts in pieces for each in facts.functions if each.kernel]
        if not kernels:
            return ()
        changed = self._reach.update((facts for _offset, facts in pieces), {each.name for each, _facts in kernels})
        found: list[Finding] = []
        for function, facts in kernels:
            key = f"drafts {function.start}"
            drafts = facts.memo.get(key)
            if not isinstance(drafts, list) or function.name in changed:
                drafts = facts.memo[key] = self._drafts(function, facts, pieces)
            found += [draft.placed(places[id(draft.piece)]) for draft in drafts if id(draft.piece) in places]
        found.sort(key=lambda each: (each.span.start, each.code))
        return tuple(found)

    def _drafts(self, function: FunctionFacts, facts: PieceFacts, pieces: list[tuple[int, PieceFacts]]) -> list[Draft]:
        kernel = view(function, facts)
        if kernel is None:
            return []
        sight = self._seen(pieces)
        found: list[Draft] = []
        for rule in RULES:
            try:
                found += rule(kernel, sight)
            except RecursionError:
                continue  # an expression nested beyond what anybody writes: this rule is silent about the kernel
        return found

    def _seen(self, pieces: list[tuple[int, PieceFacts]]) -> Sight:
        """The host code's picture, made anew only where host code changed."""
        host = tuple(id(facts) for _offset, facts in pieces if not facts.only_kernels)
        if self._sight is None or host != self._host:
            self._sight, self._host = Sight([facts for _offset, facts in pieces if not facts.only_kernels]), host
        return self._sight
