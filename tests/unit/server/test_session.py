"""The session without its protocol: append before show, newest wins, what is measured is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalcore.jobs import EvalJob, Measurement, Refusal
from server import signals
from server.events import JudgeAsked, StopAsked, TextOpened, TextSaved, Trusted
from server.host import Host
from server.ledger.store import LedgerUnusable
from server.session import Session
from tests.lsp.texts import ADD
from tests.unit.server.measured import measurement


class Bench:
    """A session whose pool is a function, and everything it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session = Session(Host({"XDG_STATE_HOME": str(folder / "state"), "PATH": "/usr/bin:/bin"}))
        self.session.state.project.folders = (str(folder),)
        self.session.listen(self.hear)
        self.heard: list[signals.Signal] = []
        self.jobs: list[EvalJob] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.session.pool.evaluate = self.evaluate  # type: ignore[method-assign]
        self.session.pool.start = lambda: None  # type: ignore[method-assign]
        self.session.pool.check = self.check  # type: ignore[method-assign]

    def hear(self, signal: signals.Signal) -> None:
        self.heard.append(signal)

    async def evaluate(self, job: EvalJob, on_stage: Any = None) -> Measurement | Refusal:
        self.jobs.append(job)
        await self.gate.wait()
        return measurement(job_id=job.job_id, file=job.problem.candidate.path, kernel_sha=job.kernel_sha)

    async def check(self, **fields: Any) -> Refusal:
        return Refusal(code="no_triton", message="", remedy="")

    def open(self, text: str = ADD) -> str:
        path = str(self.folder / "add.py")
        self.session.apply(TextOpened(path=path, uri=f"file://{path}", version=1, language="python", text=text))
        return path

    def of(self, kind: type) -> list[Any]:
        return [signal for signal in self.heard if isinstance(signal, kind)]

    async def until(self, check: Any) -> Any:
        for _ in range(1500):
            if value := check():
                return value
            await asyncio.sleep(0.01)
        raise AssertionError(f"did not happen; heard {self.heard[-5:]}")


@pytest.fixture
async def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    await made.session.close()


async def test_the_row_comes_before_the_verdict(bench):
    path = bench.open()
    bench.session.apply(TextSaved(path=path))
    await bench.until(lambda: bench.of(signals.VerdictShown))
    kinds = [type(signal) for signal in bench.heard]
    assert kinds.index(signals.RowAppended) < kinds.index(signals.VerdictShown)
    (shown,) = bench.of(signals.VerdictShown)
    row = await bench.session.state.recorder(path).call(lambda ledger: ledger.row(shown.verdict.seq))
    assert row.kernel_sha == shown.verdict.sha and row.at


async def test_a_verdict_that_cannot_be_recorded_is_not_shown(bench):
    class Broken:
        async def exists(self) -> bool:
            return False

        async def append(self, *_: Any, **__: Any) -> int:
            raise LedgerUnusable("the disk is full")

        async def close(self) -> None:
            pass

    path = bench.open()
    bench.session.state.recorders[bench.folder] = Broken()  # type: ignore[assignment]
    bench.session.apply(TextSaved(path=path))
    (refused,) = await bench.until(lambda: bench.of(signals.Refused))
    assert refused.refusal.code == "ledger_unusable" and "the disk is full" in refused.refusal.message
    assert bench.of(signals.VerdictShown) == [] and bench.session.state.board.verdicts() == ()
    assert any(finding.code == "ledger-unusable" for finding in bench.session.state.findings(path))


async def test_what_was_measured_is_recorded_even_if_it_is_stopped_then(bench):
    path = bench.open()
    recorder = bench.session.state.recorder(path)
    append, started, go = recorder.append, asyncio.Event(), asyncio.Event()

    async def slow(*given: Any, **named: Any) -> int:
        started.set()
        await go.wait()
        return await append(*given, **named)

    recorder.append = slow  # type: ignore[method-assign]
    bench.session.apply(TextSaved(path=path))
    await asyncio.wait_for(started.wait(), 15)
    bench.session.apply(StopAsked())
    go.set()
    await bench.until(lambda: bench.of(signals.RowAppended))
    assert await recorder.call(lambda ledger: ledger.last_seq()) == 1


async def test_the_same_text_is_not_judged_twice_and_a_command_always_is(bench):
    path = bench.open()
    bench.session.apply(TextSaved(path=path))
    await bench.until(lambda: bench.of(signals.VerdictShown))
    bench.session.apply(TextSaved(path=path))
    await asyncio.sleep(0.1)
    assert len(bench.jobs) == 1
    bench.session.apply(JudgeAsked(path=path, kernels=("add_kernel",)))
    await bench.until(lambda: len(bench.of(signals.VerdictShown)) == 2)
    assert [job.cause.value for job in bench.jobs] == ["save", "command"]


async def test_a_command_joins_a_running_batch_of_the_same_text(bench):
    bench.gate.clear()
    path = bench.open()
    bench.session.apply(TextSaved(path=path))
    await bench.until(lambda: bench.jobs)
    bench.session.apply(JudgeAsked(path=path, kernels=("add_kernel",)))
    bench.gate.set()
    await bench.until(lambda: bench.of(signals.VerdictShown))
    await asyncio.sleep(0.1)
    assert len(bench.jobs) == 1


async def test_nothing_runs_where_nobody_is_trusted(bench):
    bench.session.apply(Trusted(trusted=False))
    path = bench.open()
    bench.session.apply(TextSaved(path=path))
    bench.session.apply(JudgeAsked(path=path, kernels=("add_kernel",)))
    await bench.until(lambda: bench.session.state.documents[path].analysed_generation >= 0)
    assert bench.jobs == [] and [said.loud for said in bench.of(signals.Said)] == [True]


async def test_a_fault_of_ours_is_said_and_the_next_save_is_judged(bench):
    path = bench.open()
    good = bench.evaluate

    async def bad(job: EvalJob, on_stage: Any = None) -> Measurement | Refusal:
        raise RuntimeError("ours")

    bench.session.pool.evaluate = bad
    bench.session.apply(TextSaved(path=path))
    (refused,) = await bench.until(lambda: bench.of(signals.Refused))
    assert refused.refusal.code == "fault" and "ours" not in refused.refusal.message
    bench.session.pool.evaluate = good
    bench.session.apply(JudgeAsked(path=path, kernels=("add_kernel",)))
    await bench.until(lambda: bench.of(signals.VerdictShown))


async def test_the_second_save_is_compared_with_the_first(bench):
    path = bench.open()
    bench.session.apply(TextSaved(path=path))
    await bench.until(lambda: bench.of(signals.VerdictShown))
    document = bench.session.state.documents[path]
    bench.session.state.documents[path] = replace(
        document, index=type(document.index)(ADD + "# two\n"), _sha="", bounds_sha=""
    )
    bench.session.apply(TextSaved(path=path))
    await bench.until(lambda: len(bench.jobs) == 2)
    assert bench.jobs[0].compare_with is None and bench.jobs[1].compare_with == ADD
