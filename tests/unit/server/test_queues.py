"""The newest-wins slot and the lanes: at most one runs, one waits, a person never waits for a search."""

from __future__ import annotations

import asyncio

import pytest

from evalcore.jobs import Cause
from server.lanes import Lane
from server.newest import Newest


async def test_a_newer_submission_cancels_the_running_one_and_replaces_the_waiting_one():
    newest, log = Newest(), []

    async def work(name: str) -> None:
        log.append(f"{name} starts")
        try:
            await asyncio.sleep(0.02)
            log.append(f"{name} ends")
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # what is cancelled may need a moment, and nothing runs beside it
            log.append(f"{name} gone")
            raise

    newest.submit("k", lambda: work("a"), "save")
    await asyncio.sleep(0)
    newest.submit("k", lambda: work("b"), "save")
    newest.submit("k", lambda: work("c"), "save")
    newest.submit("other", lambda: work("x"), "save")
    await asyncio.sleep(0.1)
    assert [line for line in log if not line.startswith("x")] == ["a starts", "a gone", "c starts", "c ends"]
    assert newest.keys() == ()


async def test_a_failing_piece_of_work_frees_its_slot():
    newest, done = Newest(), []

    async def fail() -> None:
        raise ValueError

    async def fine() -> None:
        done.append(1)

    newest.submit("k", fail, "save")
    await asyncio.sleep(0.01)
    newest.submit("k", fine, "save")
    await asyncio.sleep(0.01)
    assert done == [1]


async def test_cancel_and_close():
    newest = Newest()
    assert not newest.cancel("k")
    newest.submit("k", lambda: asyncio.sleep(60), "save")
    await asyncio.sleep(0)
    assert newest.cause("k") == "save"
    newest.submit("k", lambda: asyncio.sleep(60), "save")
    assert newest.cancel("k")
    await newest.close()
    await asyncio.sleep(0)
    assert newest.keys() == ()


async def test_jobs_run_by_cause_then_by_age():
    lane: Lane[str] = Lane()
    order: list[str] = []

    async def job(name: str, cause: Cause) -> str:
        async def work() -> str:
            order.append(name)
            await asyncio.sleep(0.005)
            return name

        return await lane.run(cause, work)

    jobs = [
        ("first", Cause.WATCH),
        ("watch", Cause.WATCH),
        ("save", Cause.SAVE),
        ("save2", Cause.SAVE),
        ("ask", Cause.COMMAND),
    ]
    assert await asyncio.gather(*(job(*each) for each in jobs)) == [name for name, _ in jobs]
    assert order == ["first", "ask", "save", "save2", "watch"]
    assert not lane.busy


async def test_a_save_makes_a_search_step_aside_and_the_search_is_done_again():
    lane: Lane[str] = Lane()
    log: list[str] = []

    async def search() -> str:
        log.append("search starts")
        await asyncio.sleep(0.05)
        log.append("search ends")
        return "search"

    async def save() -> str:
        log.append("save")
        return "save"

    searching = asyncio.ensure_future(lane.run(Cause.SEARCH, search))
    await asyncio.sleep(0.01)
    assert await asyncio.wait_for(lane.run(Cause.SAVE, save), 0.04) == "save"
    assert await searching == "search"
    assert log == ["search starts", "save", "search starts", "search ends"]


async def test_a_cancelled_job_frees_the_lane_after_it_has_ended():
    lane: Lane[str] = Lane()
    log: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            log.append("slow ended")
        return ""

    async def quick() -> str:
        log.append("quick")
        return "quick"

    first = asyncio.ensure_future(lane.run(Cause.SAVE, slow))
    waiting = asyncio.ensure_future(lane.run(Cause.SAVE, slow))
    await asyncio.sleep(0.01)
    waiting.cancel()
    first.cancel()
    assert await lane.run(Cause.SAVE, quick) == "quick"
    assert log == ["slow ended", "quick"]
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failing_job_frees_the_lane():
    lane: Lane[str] = Lane()

    async def fail() -> str:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await lane.run(Cause.SAVE, fail)
    assert not lane.busy
