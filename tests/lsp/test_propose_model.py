"""A model's round in the real server, through the real litellm in its child, against a scripted server on loopback."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tests.lsp.test_propose import TUNED, make, propose, ready, rows, said  # noqa: F401  (make is a fixture)
from tests.support.openai_server import scripted_server

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="the extra llm is not installed"),
    pytest.mark.timeout(180),
]

DIAGNOSIS = json.dumps(
    {"bottleneck_type": None, "roofline_position": None, "specific_issue": "the mask is made twice",
     "recommendation": "make it once", "estimated_headroom": 2.0, "confidence": 0.7}
)  # fmt: skip
BETTER = "# time_us: 20\n" + TUNED.replace("    mask = i < n\n", "    mask = n > i\n")
WRONG = "# worker: wrong\n" + TUNED
CHEAT = TUNED.replace("x = torch.rand", "torch.allclose = lambda *a, **k: True\nx = torch.rand", 1)
KEY = "sk-of-the-editors-secret-storage"


def answer(text: str) -> str:
    return f"CHANGE: the mask is made once\n```python\n{text}```\n"


async def test_a_models_candidate_comes_as_the_same_proposal_and_a_cheat_or_a_full_server_as_a_reason(
    make,  # noqa: F811
    tmp_path,
):
    script = [DIAGNOSIS, answer(WRONG), answer(BETTER), DIAGNOSIS, answer(CHEAT), answer(CHEAT), 429]
    log = tmp_path / "jobs"
    with scripted_server(*script) as (address, requests):
        editor, uri = await make({"model": "scripted", "modelBase": address, "modelTimeout": 30}, TUNED_LOG=str(log))
        editor.client.protocol.notify("odyssey/key", {"key": KEY})
        await propose(editor, uri)
        await editor.until(lambda: editor.heard["odyssey/proposalReady"], seconds=60)
        proposal = await ready(editor)
        assert proposal.new_text == BETTER and proposal.change == "the mask is made once" and not said(editor)
        assert proposal.title.startswith("add_kernel: 2.50x faster than your text, 20.0 us, right 5/5 (")
        assert "max abs error" in requests[2]["messages"][-1]["content"], "the judge's words went back once"
        assert {request["authorization"] for request in requests} == {f"Bearer {KEY}"}
        jobs = [json.loads(line) for line in log.read_text().splitlines()]
        assert all(job["trusted"] is (job["text"] not in (BETTER, WRONG)) for job in jobs)
        by_model = [row for row in await rows(editor, uri) if row.author == "model"]
        assert {row.verdict for row in by_model} == {"correct", "incorrect"}

        await propose(editor, uri)
        proposal = await ready(editor, 2)
        assert proposal.change == "num_warps 4 -> 8", "the tuner serves where the model does not"
        (cheating,) = await editor.until(lambda: said(editor))
        assert "refused before it was run" in cheating and "No candidate by the model" in cheating
        assert "torch.allclose = lambda" not in log.read_text()

        await propose(editor, uri)
        await ready(editor, 3)
        assert "too many requests" in (await editor.until(lambda: said(editor)[1:]))[0]
        assert len(requests) == len(script)
    kept = [place for place in tmp_path.rglob("*") if place.is_file() and KEY.encode() in place.read_bytes()]
    assert kept == [], "the key is in no file"
