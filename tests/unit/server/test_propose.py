"""A search over a real ledger with a scripted evaluator: what is kept of it, what comes back, how it reaches a file."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcore.fingerprint import sha256_text
from evalcore.jobs import EvalJob, Measurement, Refusal
from evalcore.results import correct, incorrect
from server import config
from server.cli_propose import Answer, as_json, exit_code, write
from server.config import Settings
from server.host import Host
from server.ledger.store import Ledger
from server.proposals import burial, cannot_apply, recovered, unified_diff
from server.propose import KEY_NAME, LedgerMemory, Outcome, Plan, Ports, model_of, search
from server.recorder import Recorder
from skills.budget import Budget
from tests.support.measurements import job, measurement
from tests.support.tuned_worker import time_of

TEXT = "@triton.jit\ndef k(x, BLOCK: tl.constexpr):\n    pass\n\n\ndef run(x):\n    k[(4,)](x, BLOCK=64, num_warps=4)\n"
FASTER = TEXT.replace("num_warps=4", "num_warps=8")


class Clock:
    """An evaluator whose times follow from the text."""

    def __init__(self, *, wrong: str = "", refuses: Refusal | None = None, compares: bool = True) -> None:
        self.wrong, self.refuses, self.compares = wrong, refuses, compares

    async def evaluate(self, job: EvalJob) -> Measurement | Refusal:
        text = job.problem.candidate.text
        if self.refuses is not None:
            return self.refuses
        told: dict[str, Any] = {"kernel_sha": job.kernel_sha, "job_id": job.job_id, "cause": job.cause,
                                "file": job.problem.candidate.path}  # fmt: skip
        if self.wrong and self.wrong in text:
            return measurement(incorrect("max abs error 1.0"), **told)
        made = measurement(correct(runtime_us=time_of(text), ref_runtime_us=100.0), **told)
        if job.compare_with is not None and self.compares:
            ratio = time_of(job.compare_with) / time_of(text)
            made = replace(made, ab={"verdict": "faster", "ratio": ratio, "interval": [ratio, ratio], "n": 40})
        return made


class Bench:
    """A workspace with a ledger, and searches in it."""

    def __init__(self, folder: Path, key: str = "") -> None:
        self.host = Host({"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "PATH": ""})
        self.file = folder / "kernel.py"
        self.recorder = Recorder(self.host, folder)
        self.bells: list[int] = []

    async def run(self, evaluator: Clock, *, attempts: int = 16, text: str = TEXT) -> Outcome:
        given = job(text, sha=sha256_text(text))
        program = replace(given.problem.candidate, path=str(self.file), text=text)
        given = replace(given, problem=replace(given.problem, candidate=program))
        memory = LedgerMemory(self.host, self.recorder, given.problem, self.bells.append)
        base = measurement(
            correct(runtime_us=50.0, ref_runtime_us=100.0), kernel_sha=given.kernel_sha, file=str(self.file)
        )
        seq = await memory.append_base(base, text=text, after=None)
        plan = Plan(run_id="run1", job=given, text=text, language="triton", budget=Budget(attempts=attempts))
        return await search(plan, (base, seq), Ports(evaluator=evaluator, memory=memory), lambda *_: None)

    async def ask(self, work: Any) -> Any:
        return await self.recorder.call(work)


@pytest.fixture
async def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    await made.recorder.close()


async def test_what_a_search_finds_comes_back_out_of_the_ledger_whole(bench):
    outcome = await bench.run(Clock())
    proposal = outcome.proposal
    assert proposal is not None and proposal.new_text == FASTER and proposal.base_text == TEXT
    assert proposal.title == "k: 1.25x faster than your text, 40.0 us, right (num_warps 4 -> 8)"
    again = await bench.ask(lambda ledger: recovered(ledger, proposal.proposal_id))
    assert again == replace(proposal, measurement=again.measurement)
    assert again.measurement.ab == proposal.measurement.ab and again.measurement.parents == (proposal.base_sha,)
    assert await bench.ask(lambda ledger: ledger.last_seq()) == proposal.seq == max(bench.bells)
    assert outcome.tried == len({row.kernel_sha for row in await bench.ask(lambda ledger: ledger.rows())}) - 1
    for strange in (
        "",
        "run1",
        "run1-zzzzzzzzzzzz",
        "run2-" + proposal.candidate_sha[:12],
        "run1-" + proposal.base_sha[:12],
    ):
        assert await bench.ask(lambda ledger, name=strange: recovered(ledger, name)) is None


async def test_a_strangers_row_is_no_proposal(bench, tmp_path):
    proposal = (await bench.run(Clock())).proposal
    assert proposal is not None
    with Ledger.open(tmp_path, state_dir=tmp_path / "another user", key=bytes(range(32))) as ledger:
        assert ledger.of_text(proposal.candidate_sha)[0].foreign
        assert recovered(ledger, proposal.proposal_id) is None


async def test_the_map_has_each_candidate_under_its_parent_with_its_reason(bench):
    proposal = (await bench.run(Clock(wrong="num_warps=2"))).proposal
    found = await bench.ask(lambda ledger: ledger.map(str(bench.file), "k"))
    by_sha = {node.sha: node for node in found.nodes}
    assert by_sha[proposal.candidate_sha].buried is None and by_sha[proposal.candidate_sha].intent == "num_warps 4 -> 8"
    wrong = by_sha[sha256_text(TEXT.replace("num_warps=4", "num_warps=2"))]
    assert wrong.buried == "incorrect: max abs error 1.0" and wrong.parents == (proposal.base_sha,)
    assert {edge.kind for edge in found.edges} == {"tune"}
    await bench.ask(lambda ledger: ledger.bury(proposal.candidate_sha, burial(" too\n clever ")))
    found = await bench.ask(lambda ledger: ledger.map(None, "k"))
    assert found.node(proposal.candidate_sha).buried == "rejected: too clever"


async def test_where_nothing_could_be_judged_that_is_the_reason(bench):
    lost = Refusal(code="worker_lost", message="The worker ended", remedy="Try again.")
    outcome = await bench.run(Clock(refuses=lost))
    assert outcome.refusal == lost and outcome.tried == 0 and exit_code(_answer(outcome), wanted=False) == 2


async def test_an_ab_that_cannot_be_had_is_no_gain_and_says_so(bench):
    outcome = await bench.run(Clock(compares=False))
    assert outcome.refusal.code == "no_gain" and "could not be had" in outcome.refusal.message
    assert exit_code(_answer(outcome), wanted=False) == 1


async def test_a_text_with_nothing_to_turn_is_told_so(bench):
    outcome = await bench.run(Clock(), text="def nothing():\n    pass\n")
    assert outcome.refusal.message == "there is nothing here that the tuner could turn" and outcome.tried == 0


async def test_the_budget_bounds_what_is_judged(bench):
    outcome = await bench.run(Clock(), attempts=2)
    assert outcome.tried == 2


def _answer(outcome: Outcome) -> Answer:
    return Answer(file="/p/kernel.py", kernel="k", outcome=outcome)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nb\nc\n", "a\nB\nc\n"), ("a\nb", "a\nc"), ("a\n", "a\nb"), ("a\r\nb\r\n", "a\r\nc\r\n"),
     ("x\x0cy\u2028z\n", "x\x0cy\u2028w\n")],
)  # fmt: skip
def test_a_diff_is_one_that_git_applies(tmp_path, before, after):
    (tmp_path / "k.py").write_bytes(before.encode())
    diff = unified_diff("k.py", before, after)
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "k.py").read_bytes() == after.encode()


async def test_apply_writes_the_text_and_nothing_else(bench, tmp_path):
    proposal = (await bench.run(Clock())).proposal
    assert write(proposal).code == "unreadable", "there is no file yet"
    bench.file.symlink_to(tmp_path / "real.py")
    real = tmp_path / "real.py"
    real.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    real.chmod(0o750)
    assert write(proposal) is None
    assert real.read_bytes() == b"\xef\xbb\xbf" + FASTER.encode() and real.stat().st_mode & 0o777 == 0o750
    assert bench.file.is_symlink() and sorted(p.name for p in tmp_path.glob("*real*")) == ["real.py"]
    assert write(proposal).code == "applied"
    real.write_text(TEXT + "# later\n")
    assert write(proposal).code == "moved_on" and real.read_text() == TEXT + "# later\n"
    assert cannot_apply(proposal, proposal.base_sha) is None


async def test_the_json_has_the_text_and_its_verdict(bench):
    outcome = await bench.run(Clock())
    made = as_json(replace(_answer(outcome), applied=True, diff="d"))
    assert made["proposal"]["text"] == FASTER and made["proposal"]["ab"]["ratio"] == 1.25 and made["refusal"] is None
    assert made["proposal"]["result"]["status"] == "correct" and made["tried"] == outcome.tried
    assert exit_code(_answer(outcome), wanted=True) == 2 and exit_code(_answer(outcome), wanted=False) == 0


def test_the_models_key_goes_to_its_own_process_alone(tmp_path):
    host = Host({"HOME": str(tmp_path)})
    assert model_of(Settings(), host, "sk-1") is None
    settings, _ = config.read({"model": "gpt", "modelBase": "http://127.0.0.1:1/v1", "modelTimeout": 7})
    model = model_of(settings, host, "sk-1")
    assert model is not None and model.settings.timeout_s == 7.0 and model.settings.base == "http://127.0.0.1:1/v1"
    assert model._environment[KEY_NAME] == "sk-1" and KEY_NAME not in host.environ


@pytest.mark.parametrize("given", ["long", True, 0, 1e9, float("nan")])
def test_a_timeout_that_is_no_number_of_seconds_is_ignored_with_a_word(given):
    settings, problems = config.read({"modelTimeout": given})
    assert settings.model_timeout_s == 120.0 and len(problems) == 1 and "odyssey.modelTimeout" in problems[0]
