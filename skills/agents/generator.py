"""Owns candidate writing by a model: prompt, and parsing of the answer into a whole file, once, at the door."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from skills.agents.prompting import fill
from skills.ports import Message

FENCE = re.compile(r"```[a-zA-Z+]*[ \t]*\n(.*?)\n?```", re.DOTALL)
CHANGE = re.compile(r"^\s*CHANGE:\s*(.+)$", re.MULTILINE)
LONGEST = 400_000
"""Characters; a longer answer is no kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A whole candidate file and what the model says it changed."""

    text: str
    change: str
    messages: tuple[Message, ...]
    """The conversation so far, so that an error can go back."""


def first_messages(source: str, *, verdict: str, diagnosis: str) -> tuple[Message, ...]:
    """The conversation that asks for a candidate."""
    content = fill("generator", source=source, verdict=verdict, diagnosis=diagnosis)
    return (Message(role="user", content=content),)


def repair_messages(written: Written, error: str) -> tuple[Message, ...]:
    """The same conversation with the judge's words."""
    return (*written.messages, Message(role="user", content=fill("repair", error=error[:4000])))


def parse_candidate(answer: str, *, language: str, messages: tuple[Message, ...]) -> Written:
    """The last fenced block as the file. Raises ValueError in words that can go back to the model."""
    if len(answer) > LONGEST:
        raise ValueError("the answer is far too long")
    blocks = FENCE.findall(answer)
    if not blocks:
        raise ValueError("no fenced code block with the whole file")
    text = max(blocks, key=len).rstrip() + "\n"
    if language == "triton":
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as problem:
            raise ValueError(f"the file does not parse: {problem}") from None
    said = CHANGE.search(answer)
    change = re.sub(r"\s+", " ", said[1]).strip()[:120] if said else "rewritten by the model"
    return Written(text=text, change=change, messages=(*messages, Message(role="assistant", content=answer)))
