"""The door to a model, through the real litellm in its real child process, against a scripted server on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import os

import pytest

from evalcore.jobs import Refusal
from server.llm.client import ChildModel, ModelSettings
from skills.agents.critic import criticise
from skills.agents.diagnosis import CriticDiagnosis
from skills.ports import Completion, Message
from tests.support.measurements import measurement
from tests.support.openai_server import ENDLESS, scripted_server

pytestmark = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="the extra llm is not installed")

ASK = [Message(role="user", content="hello")]
DIAGNOSIS = (
    '{"bottleneck_type": null, "roofline_position": 0.99, "specific_issue": "loads are narrow", '
    '"recommendation": "widen them", "estimated_headroom": 1.5, "confidence": 0.6}'
)


def model_at(base: str, timeout_s: float = 20.0) -> ChildModel:
    return ChildModel(ModelSettings(model="scripted", base=base, timeout_s=timeout_s), environment=os.environ)


@pytest.fixture()
async def closing():
    models: list[ChildModel] = []
    yield models.append
    for model in models:
        await model.close()


async def test_a_good_answer_with_its_usage(closing) -> None:
    with scripted_server("an answer in several pieces, streamed as models do it") as (base, requests):
        closing(model := model_at(base))
        answer = await model.complete(ASK)
    assert isinstance(answer, Completion), answer
    assert answer.text == "an answer in several pieces, streamed as models do it"
    assert answer.usage.prompt_tokens == 11 and answer.usage.completion_tokens == 7 and answer.usage.usd is None
    assert requests[0]["model"] == "scripted"


@pytest.mark.parametrize(("status", "code"), [(429, "model_rate_limit"), (500, "model_server"), (401, "model_key")])
async def test_a_refusing_server_is_a_refusal_with_a_remedy(closing, status: int, code: str) -> None:
    with scripted_server(status) as (base, requests):
        closing(model := model_at(base))
        answer = await model.complete(ASK)
    assert isinstance(answer, Refusal) and answer.code == code and answer.remedy
    assert len(requests) == 1, "a refusal is not retried behind the person's back"


async def test_an_endless_stream_is_cut(closing) -> None:
    with scripted_server(ENDLESS) as (base, _):
        closing(model := model_at(base, timeout_s=6.0))
        answer = await model.complete(ASK)
    assert isinstance(answer, Refusal) and answer.code in ("model_endless", "model_timeout")


async def test_broken_json_goes_back_once_and_is_then_read(closing) -> None:
    with scripted_server('{"bottleneck_type": }', DIAGNOSIS) as (base, requests):
        closing(model := model_at(base))
        diagnosis, usage = await criticise(model, "kernel text", measurement())
    assert isinstance(diagnosis, CriticDiagnosis), diagnosis
    assert diagnosis.roofline_position is None, "copied from the profile, never from the model"
    assert len(requests) == 2 and "broken JSON" in requests[1]["messages"][-1]["content"]
    assert usage.completion_tokens == 14


async def test_broken_json_twice_is_a_refusal(closing) -> None:
    with scripted_server("no object at all") as (base, _):
        closing(model := model_at(base))
        diagnosis, _ = await criticise(model, "kernel text", measurement())
    assert isinstance(diagnosis, Refusal) and diagnosis.code == "model_answer"


async def test_cancelling_kills_the_child_and_the_next_call_starts_afresh(closing) -> None:
    with scripted_server(ENDLESS, "fine") as (base, _):
        closing(model := model_at(base, timeout_s=60.0))
        task = asyncio.create_task(model.complete(ASK))
        while model._process is None:
            await asyncio.sleep(0.01)
        process = model._process
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert process.returncode is not None
