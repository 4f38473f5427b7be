"""Owns the only import of litellm: a process that answers requests on its pipes. Run as a process, never imported.

One JSON object a line. In: {"id", "model", "messages", "schema", "base", "timeout_s", "max_tokens"}. Out: {"id",
"text", "usage"} or {"id", "refusal": {"code", "message", "remedy"}}. Keys come from this process's environment alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

LONGEST_ANSWER = 400_000
"""Characters; a stream that goes on longer is cut and refused."""

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # noqa: TID251  (else importing it fetches a price table)


def refuse(code: str, message: str, remedy: str) -> dict[str, Any]:
    """A refusal as it travels."""
    return {"refusal": {"code": code, "message": message[:600], "remedy": remedy}}


def answer(litellm: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One completion, streamed so that an endless one can be cut."""
    options: dict[str, Any] = {
        "model": request["model"],
        "messages": request["messages"],
        "timeout": request["timeout_s"],
        "max_retries": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.get("max_tokens"),
    }
    key = os.environ.get("ODYSSEY_API_KEY")  # noqa: TID251
    if request.get("base"):
        options["api_base"] = request["base"]
        options["api_key"] = key or os.environ.get("OPENAI_API_KEY") or "none"  # noqa: TID251
    elif key:
        options["api_key"] = key
    if request.get("schema"):
        schema = {"name": "answer", "schema": request["schema"], "strict": True}
        options["response_format"] = {"type": "json_schema", "json_schema": schema}
    deadline = time.monotonic() + request["timeout_s"]
    pieces: list[str] = []
    size = 0
    usage = None
    for chunk in litellm.completion(**options):
        usage = getattr(chunk, "usage", None) or usage
        if chunk.choices and chunk.choices[0].delta.content:
            pieces.append(chunk.choices[0].delta.content)
            size += len(pieces[-1])
        if size > LONGEST_ANSWER or time.monotonic() > deadline:
            return refuse("model_endless", "the model's answer did not end", "try again, or set another model")
    counted = {
        "prompt_tokens": int(getattr(usage, "prompt_tokens", 0) or 0),
        "completion_tokens": int(getattr(usage, "completion_tokens", 0) or 0),
    }
    return {"text": "".join(pieces), "usage": {**counted, "usd": price(litellm, request["model"], counted)}}


def price(litellm: Any, model: str, counted: dict[str, int]) -> float | None:
    """US dollars by the bundled table, or None for a model that it does not know."""
    try:
        prompt, completion = litellm.cost_per_token(model=model, **counted)
    except Exception:  # noqa: BLE001  (the library raises bare exceptions for unknown models)
        return None
    return float(prompt + completion)


def explain(problem: Exception) -> dict[str, Any]:
    """A library's exception by its HTTP status and type, never by its words."""
    status = getattr(problem, "status_code", None)
    name = type(problem).__name__
    if status in (401, 403):
        return refuse("model_key", "the model's server refused the key", "set the key in the environment or the editor")
    if status == 429:
        return refuse("model_rate_limit", "the model's server says: too many requests", "wait a minute and try again")
    if name == "Timeout" or status == 408:
        return refuse("model_timeout", "the model did not answer in time", "try again, or raise odyssey.modelTimeout")
    if isinstance(status, int) and status >= 500:
        return refuse("model_server", f"the model's server failed ({status})", "try again later")
    return refuse("model_error", f"{name}: {problem}", "look at odyssey.model and odyssey.modelBase")


def main() -> int:
    """Answer lines until the pipe closes."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        import litellm
    except ImportError:
        litellm = None
    for line in sys.stdin:
        request = json.loads(line)
        if litellm is None:
            reply = refuse("no_litellm", "litellm is not installed", "pip install 'odyssey-lsp[llm]'")
        else:
            try:
                reply = answer(litellm, request)
            except Exception as problem:  # noqa: BLE001  (the child's fence: every failure is answered)
                reply = explain(problem)
        channel.write(json.dumps({"id": request.get("id"), **reply}) + "\n")
        channel.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
