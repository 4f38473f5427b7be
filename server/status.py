"""Owns the state of the server in finished words: what runs, on which card, what is missing. Never acts."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.jobs import Cause
from server import words
from server.gpu_pool import PoolFacts
from server.signals import Missing, StatusChanged
from server.verdicts import Running


def status_of(facts: PoolFacts, runs: Sequence[Running]) -> StatusChanged:
    """The status notification's content."""
    card = card_of(facts)
    missing = missing_of(facts)
    if not facts.trusted:
        return StatusChanged(
            state="degraded", text="text only: folder not trusted", card=None, detail=_detail(facts), missing=missing
        )
    if runs:
        run = next((each for each in runs if each.cause != Cause.SEARCH.value), runs[0])
        return StatusChanged(
            state="busy",
            text=words.running(run.kernel, run.stage, 0, 0),
            card=card,
            detail=_detail(facts),
            missing=missing,
        )
    if facts.starting:
        return StatusChanged(
            state="starting", text="starting the worker", card=card, detail=_detail(facts), missing=missing
        )
    if facts.refusal is not None:
        return StatusChanged(
            state="degraded",
            text=words.first_sentence(facts.refusal.message, 60),
            card=card,
            detail=_detail(facts),
            grey_reason=words.refusal_words(facts.refusal),
            missing=missing,
        )
    if facts.compile is None and facts.interpret is None:
        return StatusChanged(state="idle", text="no kernel yet", card=None, detail=_detail(facts), missing=missing)
    if card is None:
        return StatusChanged(
            state="degraded", text="no GPU: Triton's interpreter", card=None, detail=_detail(facts), missing=missing
        )
    return StatusChanged(state="idle", text=card, card=card, detail=_detail(facts), missing=missing)


def card_of(facts: PoolFacts) -> str | None:
    """The card's name, with how many there are."""
    names = [str(device.get("name") or "GPU") for device in facts.devices]
    if not names:
        return None
    return names[0] if len(names) == 1 else f"{names[0]} (1 of {len(names)})"


def missing_of(facts: PoolFacts) -> tuple[Missing, ...]:
    """What is not there, each with what would supply it; said once each."""
    found: dict[str, Missing] = {}
    if facts.refusal is not None:
        found[facts.refusal.code] = Missing(
            what=facts.refusal.code, message=facts.refusal.message, remedy=facts.refusal.remedy
        )
    hellos = [hello for hello in (facts.compile, facts.interpret) if hello is not None]
    for each in (item for hello in hellos for item in hello.missing):
        found.setdefault(each["what"], Missing(what=each["what"], message=each["message"], remedy=each["remedy"]))
    return tuple(found.values())


def _detail(facts: PoolFacts) -> str:
    hello = facts.compile or facts.interpret
    if hello is None:
        return f"Python {facts.interpreter.path}" if facts.interpreter is not None else ""
    origin = f" (from {facts.interpreter.origin})" if facts.interpreter is not None else ""
    parts = [
        f"{hello.executable}{origin}",
        f"Python {hello.python}",
        f"torch {hello.torch}" if hello.torch else "no torch",
        f"triton {hello.triton}" if hello.triton else "no triton",
    ]
    parts += [f"isolation: {', '.join(hello.isolation)}"] if hello.isolation else []
    return " · ".join(parts)
