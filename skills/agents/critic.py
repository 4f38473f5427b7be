"""Owns the model critic: prompt, parse, one repair. A model's text becomes a typed diagnosis here, or a Refusal."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from evalcore.jobs import Measurement, Refusal
from evalcore.results import BottleneckType
from evalcore.wire import encode
from skills.agents.diagnosis import CriticDiagnosis
from skills.agents.prompting import fill
from skills.ports import ChatModel, Message, Usage

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "bottleneck_type": {"type": ["string", "null"], "enum": [*(b.value for b in BottleneckType), None]},
        "roofline_position": {"type": ["number", "null"]},
        "specific_issue": {"type": "string"},
        "recommendation": {"type": "string"},
        "estimated_headroom": {"type": ["number", "null"]},
        "confidence": {"type": "number"},
    },
    "required": [
        "bottleneck_type", "roofline_position", "specific_issue", "recommendation", "estimated_headroom", "confidence",
    ],
    "additionalProperties": False,
}  # fmt: skip


def verdict_json(measurement: Measurement) -> str:
    """What a model may know of a measurement: verdict, profile, timing, resources. No seeds, no expected values."""
    return json.dumps(
        {
            "result": encode(measurement.result),
            "regime": measurement.regime,
            "floor_us": measurement.floor_us,
            "timing": encode(measurement.timing),
            "kernels": encode(measurement.kernels),
            "card": measurement.environment.card,
        },
        indent=1,
    )


async def criticise(model: ChatModel, source: str, measurement: Measurement) -> tuple[CriticDiagnosis | Refusal, Usage]:
    """Ask for a diagnosis; an answer that does not parse goes back once with the reason."""
    messages = [Message(role="user", content=fill("critic", verdict=verdict_json(measurement), source=source))]
    usage = Usage()
    problem = ""
    for _attempt in range(2):
        completion = await model.complete(messages, json_schema=SCHEMA)
        if isinstance(completion, Refusal):
            return completion, usage
        usage = add_usage(usage, completion.usage)
        try:
            return parse_diagnosis(completion.text, measurement), usage
        except ValueError as reason:
            problem = str(reason)
            messages = [
                *messages,
                Message(role="assistant", content=completion.text[:4000]),
                Message(
                    role="user", content=f"That is not the JSON object asked for: {problem}. Answer with it alone."
                ),
            ]
    return Refusal(
        code="model_answer",
        message=f"the model's diagnosis could not be read: {problem}",
        remedy="try again or use another model",
    ), usage


def parse_diagnosis(text: str, measurement: Measurement) -> CriticDiagnosis:
    """Model text into a CriticDiagnosis; the first two fields are the profile's, whatever it says. Raises ValueError."""
    value = _one_object(text)
    missing = [key for key in SCHEMA["required"] if key not in value]
    if missing:
        raise ValueError(f"missing {', '.join(missing)}")
    issue, advice = value["specific_issue"], value["recommendation"]
    if not (isinstance(issue, str) and issue.strip() and isinstance(advice, str) and advice.strip()):
        raise ValueError("specific_issue and recommendation must be sentences")
    profile = measurement.result.profile
    headroom = _number(value["estimated_headroom"], "estimated_headroom", low=1.0, high=1e6)
    confidence = _number(value["confidence"], "confidence", low=0.0, high=1.0)
    if confidence is None:
        raise ValueError("confidence must be a number from 0 to 1")
    return CriticDiagnosis(
        bottleneck_type=profile.bottleneck_type if profile else None,
        roofline_position=profile.roofline_position if profile else None,
        specific_issue=issue.strip()[:400],
        recommendation=advice.strip()[:400],
        estimated_headroom=headroom,
        confidence=confidence,
    )


def _one_object(text: str) -> dict[str, Any]:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("no JSON object in the answer")
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError) as reason:
        raise ValueError(f"broken JSON: {reason}") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _number(value: Any, name: str, *, low: float, high: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, or null")
    return float(value)


def add_usage(a: Usage, b: Usage) -> Usage:
    """Sum of two usages; money stays None only where both are."""
    usd = None if a.usd is None and b.usd is None else (a.usd or 0.0) + (b.usd or 0.0)
    return Usage(
        prompt_tokens=a.prompt_tokens + b.prompt_tokens,
        completion_tokens=a.completion_tokens + b.completion_tokens,
        usd=usd,
    )


def diagnosis_json(diagnosis: CriticDiagnosis) -> str:
    """For a prompt."""
    return json.dumps(encode(asdict(diagnosis)), indent=1)
