"""Owns ChatModel over the child process: starts it at the first call, never before. Never imports litellm."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcore.jobs import Refusal
from skills.ports import Completion, Message, Usage

GRACE_S = 15.0
"""How much longer than the model's own timeout the child is waited for (its import takes seconds)."""
LINE_LIMIT = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Which model, and where."""

    model: str
    """Any litellm name, e.g. 'openai/gpt-4o' or 'ollama/qwen3'."""
    base: str | None = None
    """Address of an OpenAI-compatible server, or None for the model's own."""
    timeout_s: float = 120.0
    max_tokens: int = 16_000


class ChildModel:
    """A ChatModel whose process lives as long as it is wanted. One request at a time; cancelling kills the process."""

    def __init__(self, settings: ModelSettings, *, environment: Mapping[str, str]) -> None:
        self.settings = settings
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._ids = itertools.count(1)
        self._turn = asyncio.Lock()

    async def warm(self) -> None:
        """Start the process now: its import takes seconds, which pass while others still work."""
        async with self._turn:
            if self._process is None:
                with contextlib.suppress(OSError):  # said by the first question, which tries again
                    self._process = await self._start()

    async def complete(
        self, messages: Sequence[Message], *, json_schema: dict[str, Any] | None = None
    ) -> Completion | Refusal:
        """Ask the model. A dead child, a hang or a broken line is a Refusal, and the next call starts afresh."""
        request = {
            "id": next(self._ids),
            "model": self._named(),
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "schema": json_schema,
            "base": self.settings.base,
            "timeout_s": self.settings.timeout_s,
            "max_tokens": self.settings.max_tokens,
        }
        async with self._turn:
            try:
                line = await asyncio.wait_for(self._exchange(request), self.settings.timeout_s + GRACE_S)
                return self._understood(json.loads(line))
            except asyncio.TimeoutError:
                await self.close()
                return Refusal(
                    code="model_timeout",
                    message="the model did not answer in time",
                    remedy="try again, or raise odyssey.modelTimeout",
                )
            except (ValueError, OSError, EOFError) as problem:
                await self.close()
                return Refusal(
                    code="model_lost", message=f"the model's process ended: {problem}", remedy="try again; see the log"
                )
            except asyncio.CancelledError:
                await self.close()
                raise

    def _named(self) -> str:
        """A bare name with an address of its own is an OpenAI-compatible server's."""
        model = self.settings.model
        return f"openai/{model}" if self.settings.base and "/" not in model else model

    async def _exchange(self, request: dict[str, Any]) -> bytes:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            raise EOFError(f"exit code {await process.wait()}")
        return line

    async def _start(self) -> asyncio.subprocess.Process:
        child = Path(__file__).with_name("child.py")
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(child),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=None,
            env=self._environment, limit=LINE_LIMIT, start_new_session=True,
        )  # fmt: skip

    def _understood(self, reply: dict[str, Any]) -> Completion | Refusal:
        if "refusal" in reply:
            given = reply["refusal"]
            return Refusal(code=str(given["code"]), message=str(given["message"]), remedy=str(given["remedy"]))
        usage = reply["usage"]
        return Completion(
            text=str(reply["text"]),
            usage=Usage(
                prompt_tokens=int(usage["prompt_tokens"]),
                completion_tokens=int(usage["completion_tokens"]),
                usd=usage["usd"],
            ),
            model=self.settings.model,
        )

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
