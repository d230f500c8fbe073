"""Waiting workers."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.state import TRIES, Waiters
from tests import aside


async def waiting(waiters: Waiters, count: int) -> list[asyncio.Task[int]]:
    made = [asyncio.create_task(waiters.wait(1, 30)) for _ in range(count)]
    while waiters.waiting() < count:
        await asyncio.sleep(0)
    return made


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_worker_is_woken_for_each_question() -> None:
    async def play() -> None:
        waiters = Waiters()
        tasks = await waiting(waiters, 10)
        waiters.wake({1: 3, 2: 5})
        await settled()
        assert [task.done() for task in tasks] == [True] * 3 + [False] * 7  # first come
        waiters.wake({1: 100})
        await settled()
        assert all(task.done() for task in tasks)

    aside.run(play())


def test_a_question_is_passed_on_a_few_times() -> None:
    async def play() -> None:
        waiters = Waiters()
        tasks = await waiting(waiters, TRIES + 3)
        waiters.wake({1: 1})
        for place in range(TRIES):
            left = await tasks[place]
            assert left == TRIES - 1 - place
            waiters.pass_on(1, left)  # it was not for this one
        await settled()
        assert not any(task.done() for task in tasks[TRIES:])
        waiters.wake_all()
        assert await asyncio.gather(*tasks[TRIES:]) == [0, 0, 0]
        assert waiters.waiting() == 0

    aside.run(play())


def test_the_question_of_a_worker_who_disconnects_is_passed_on() -> None:
    async def play() -> None:
        waiters = Waiters()
        gone, next_one = await waiting(waiters, 2)
        waiters.wake({1: 1})
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert await next_one == TRIES - 2

    aside.run(play())
