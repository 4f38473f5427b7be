"""The search, with a scripted evaluator: what is proposed, what is buried, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from evalcore.fingerprint import sha256_text
from evalcore.jobs import EvalJob, Measurement, Refusal
from evalcore.results import correct, incorrect
from skills.budget import Budget
from skills.ports import Completion, Progress, Proposal
from skills.search.optimize import Request, optimize
from tests.support.measurements import job, measurement

TEXT = "@triton.jit\ndef k(x, BLOCK: tl.constexpr):\n    pass\n\n\ndef run(x):\n    k[(4,)](x, BLOCK=64, num_warps=4)\n"


@dataclass
class ScriptedEvaluator:
    """Time is a function of the text; correctness too."""

    time_us: callable
    wrong: callable = lambda text: False
    ab_ratio: float | None = None
    jobs: list[EvalJob] = field(default_factory=list)

    async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
        self.jobs.append(job)
        text = job.problem.candidate.text
        if self.wrong(text):
            return measurement(incorrect("max abs error 1.0"), kernel_sha=job.kernel_sha)
        made = measurement(correct(runtime_us=self.time_us(text), ref_runtime_us=100.0), kernel_sha=job.kernel_sha)
        if job.compare_with is not None:
            ratio = self.ab_ratio or self.time_us(job.compare_with) / self.time_us(text)
            verdict = "faster" if ratio > 1.01 else "same"
            made = replace(made, ab={"verdict": verdict, "ratio": ratio, "interval": [ratio, ratio], "n": 40})
        return made


@dataclass
class ListMemory:
    rows: list[tuple[Measurement, str]] = field(default_factory=list)
    buried: dict[str, str] = field(default_factory=dict)

    async def append(self, measurement: Measurement, *, text: str, intent: str = "") -> int:
        self.rows.append((measurement, text))
        return len(self.rows)

    async def bury(self, sha: str, *, reason: str) -> None:
        self.buried[sha] = reason


def time_by_warps(text: str) -> float:
    warps = int(re.search(r"num_warps=(\d+)", text)[1])
    return {1: 90.0, 2: 80.0, 4: 50.0, 8: 40.0, 16: 60.0}.get(warps, 95.0)


async def run(evaluator, memory, *, base=None, budget=None, model=None):
    base = base or measurement(correct(runtime_us=50.0, ref_runtime_us=100.0))
    request = Request(job=job(TEXT), text=TEXT, base=base, base_seq=1, budget=budget or Budget())
    return [event async for event in optimize(request, evaluator=evaluator, memory=memory, model=model)]


async def test_the_faster_candidate_is_proposed_and_the_others_are_buried() -> None:
    memory = ListMemory()
    events = await run(ScriptedEvaluator(time_by_warps), memory)
    proposal = events[-1]
    assert isinstance(proposal, Proposal)
    assert "num_warps=8" in proposal.new_text and proposal.base_sha == sha256_text(TEXT)
    assert proposal.ratio == 50.0 / 40.0 and "1.25x" in proposal.title
    assert all(m.parents and m.author == "tuner" for m, _ in memory.rows)
    shas = {m.kernel_sha for m, _ in memory.rows}
    assert shas - set(memory.buried) == {proposal.candidate_sha}, "every other branch has its burial reason"
    assert all(isinstance(e, Progress) for e in events[:-1])


async def test_a_fast_wrong_candidate_is_never_proposed() -> None:
    memory = ListMemory()
    evaluator = ScriptedEvaluator(time_by_warps, wrong=lambda text: "num_warps=8" in text)
    events = await run(evaluator, memory)
    assert isinstance(events[-1], Refusal) and events[-1].code == "no_gain"
    assert any("incorrect" in reason for reason in memory.buried.values())


async def test_a_gain_that_the_ab_does_not_confirm_is_no_gain() -> None:
    memory = ListMemory()
    events = await run(ScriptedEvaluator(time_by_warps, ab_ratio=1.03), memory)
    assert isinstance(events[-1], Refusal) and "1.030" in events[-1].message


async def test_without_times_there_is_a_reason() -> None:
    base = measurement(correct())
    base = replace(base, environment=replace(base.environment, card=None))
    evaluator = ScriptedEvaluator(time_by_warps)
    events = await run(evaluator, ListMemory(), base=base)
    assert events == [events[0]] and events[0].code == "no_gpu" and "no CUDA device" in events[0].message
    assert evaluator.jobs == []


async def test_a_wrong_kernel_is_not_tuned() -> None:
    events = await run(ScriptedEvaluator(time_by_warps), ListMemory(), base=measurement(incorrect("wrong")))
    assert events[-1].code == "not_correct"


async def test_the_budget_ends_the_search() -> None:
    evaluator = ScriptedEvaluator(lambda text: 50.0)
    await run(evaluator, ListMemory(), budget=Budget(attempts=3))
    assert len(evaluator.jobs) == 3


class ScriptedModel:
    """Answers from a list."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def complete(self, messages, *, json_schema=None):
        self.asked.append(messages[-1].content)
        return Completion(text=self.answers.pop(0))


DIAGNOSIS = (
    '{"bottleneck_type": "memory_bound", "roofline_position": 0.9, "specific_issue": "loads are narrow", '
    '"recommendation": "widen", "estimated_headroom": 1.5, "confidence": 0.6}'
)
BETTER = TEXT.replace("pass", "return")


def fenced(text: str) -> str:
    return f"CHANGE: loads widened\n```python\n{text}```\n"


async def test_a_models_candidate_goes_through_the_same_judge_untrusted() -> None:
    evaluator = ScriptedEvaluator(lambda text: 20.0 if "return" in text else 50.0)
    model = ScriptedModel(DIAGNOSIS, fenced(BETTER))
    events = await run(evaluator, ListMemory(), model=model, budget=Budget(attempts=40))
    assert isinstance(events[-1], Proposal) and events[-1].author == "model" and events[-1].change == "loads widened"
    by_model = [j for j in evaluator.jobs if "return" in j.problem.candidate.text]
    assert by_model and all(not j.trusted for j in by_model)


async def test_the_judges_error_goes_back_once() -> None:
    model = ScriptedModel(DIAGNOSIS, fenced(TEXT.replace("pass", "return 1")), fenced(BETTER))
    evaluator = ScriptedEvaluator(
        lambda text: 20.0 if "return" in text else 50.0, wrong=lambda text: "return 1" in text
    )
    events = await run(evaluator, ListMemory(), model=model, budget=Budget(attempts=40))
    assert isinstance(events[-1], Proposal) and "max abs error 1.0" in model.asked[-1]


async def test_cheating_code_is_refused_before_it_is_run() -> None:
    cheat = TEXT + "\nimport torch\ntorch.allclose = lambda *a, **k: True\n"
    model = ScriptedModel(DIAGNOSIS, fenced(cheat), fenced(cheat))
    evaluator = ScriptedEvaluator(lambda text: 50.0)
    events = await run(evaluator, ListMemory(), model=model, budget=Budget(attempts=40))
    assert not any("allclose" in j.problem.candidate.text for j in evaluator.jobs)
    assert any(isinstance(e, Progress) and "refused before it was run" in e.message for e in events)


async def test_the_tuner_leaves_attempts_for_the_model() -> None:
    evaluator = ScriptedEvaluator(lambda text: 20.0 if "return" in text else 50.0)
    model = ScriptedModel(DIAGNOSIS, fenced(BETTER))
    events = await run(evaluator, ListMemory(), model=model, budget=Budget(attempts=4))
    assert isinstance(events[-1], Proposal) and events[-1].author == "model"
    by_tuner = [j for j in evaluator.jobs if "return" not in j.problem.candidate.text]
    assert len(by_tuner) == 2


async def test_a_models_cuda_file_is_not_read_as_python() -> None:
    cuda = "__global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }\n"
    better = cuda.replace("*= 2.0f", "+= x[threadIdx.x]")
    model = ScriptedModel(DIAGNOSIS, f"CHANGE: an addition\n```cuda\n{better}```\n")
    evaluator = ScriptedEvaluator(lambda text: 20.0 if "+=" in text else 50.0)
    base = measurement(correct(runtime_us=50.0, ref_runtime_us=100.0))
    request = Request(job=job(cuda), text=cuda, base=base, base_seq=1, language="cuda")
    events = [event async for event in optimize(request, evaluator=evaluator, memory=ListMemory(), model=model)]
    assert isinstance(events[-1], Proposal) and events[-1].new_text == better


async def test_why_the_model_brought_nothing_comes_with_the_progress() -> None:
    cheat = TEXT + "\nimport torch\ntorch.allclose = lambda *a, **k: True\n"
    model = ScriptedModel(DIAGNOSIS, fenced(cheat), fenced(cheat))
    events = await run(ScriptedEvaluator(time_by_warps), ListMemory(), model=model)
    (told,) = [e.refusal for e in events if isinstance(e, Progress) and e.refusal is not None]
    assert told.code == "model_answer" and isinstance(events[-1], Proposal) and events[-1].author == "tuner"


async def test_an_ab_that_could_not_be_had_is_not_called_slow() -> None:
    class WithoutAb(ScriptedEvaluator):
        async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
            return await ScriptedEvaluator.evaluate(self, replace(job, compare_with=None))

    memory = ListMemory()
    events = await run(WithoutAb(time_by_warps), memory)
    assert events[-1].code == "no_gain" and "could not be had" in events[-1].message
    assert any("could not be had" in reason for reason in memory.buried.values())
