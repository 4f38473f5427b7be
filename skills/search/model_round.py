"""Owns one round of critic and generator: diagnose, write, screen, and one repair. Never runs anything."""

from __future__ import annotations

from evalcore.jobs import Measurement, Refusal
from evalcore.screen import screen
from skills.agents.critic import add_usage, criticise, diagnosis_json, verdict_json
from skills.agents.diagnosis import CriticDiagnosis
from skills.agents.generator import Written, first_messages, parse_candidate, repair_messages
from skills.ports import ChatModel, Message, Usage


class ModelRound:
    """A conversation about one kernel. `tokens` is what the last step used."""

    def __init__(self, model: ChatModel, *, language: str = "triton") -> None:
        self.model = model
        self.language = language
        self.usage = Usage()
        self.tokens = 0

    async def write(self, source: str, base: Measurement, rule_based: CriticDiagnosis | None) -> Written | Refusal:
        """A candidate for the critic's diagnosis; the rule-based one serves where the model's cannot be read."""
        before = self._spent()
        diagnosis, usage = await criticise(self.model, source, base)
        self.usage = add_usage(self.usage, usage)
        if isinstance(diagnosis, Refusal):
            if diagnosis.code != "model_answer" or rule_based is None:
                self.tokens = self._spent() - before
                return diagnosis
            diagnosis = rule_based
        messages = first_messages(source, verdict=verdict_json(base), diagnosis=diagnosis_json(diagnosis))
        written = await self._candidate(messages)
        self.tokens = self._spent() - before
        return written

    async def repair(self, written: Written, refused: Measurement) -> Written | Refusal:
        """The judge's words go back once."""
        before = self._spent()
        mended = await self._candidate(repair_messages(written, refused.result.error or refused.result.status.value))
        self.tokens = self._spent() - before
        return mended

    async def _candidate(self, messages: tuple[Message, ...]) -> Written | Refusal:
        problem = ""
        for _attempt in range(2):
            completion = await self.model.complete(messages)
            if isinstance(completion, Refusal):
                return completion
            self.usage = add_usage(self.usage, completion.usage)
            try:
                written = parse_candidate(completion.text, language=self.language, messages=messages)
            except ValueError as reason:
                problem = str(reason)
            else:
                problem = self._screened(written.text)
                if not problem:
                    return written
            messages = (
                *messages,
                Message(role="assistant", content=completion.text[:20_000]),
                Message(role="user", content=f"Refused before it was run: {problem}. Answer again by the same rules."),
            )
        return Refusal(
            code="model_answer",
            message=f"the model's candidate was refused before it was run: {problem}",
            remedy="nothing was changed; try again or use another model",
        )

    def _screened(self, text: str) -> str:
        hits = [hit for hit in screen(text, self.language) if hit.gate]
        return "; ".join(f"line {hit.line}: {hit.message}" for hit in hits[:3])

    def _spent(self) -> int:
        return self.usage.prompt_tokens + self.usage.completion_tokens
