"""The process for slow work: progress, errors, limits."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Unavailable
from crowdtree.server.web import worker_process as module
from crowdtree.server.web.worker_process import WorkerProcess
from tests import aside


def count(report, steps):
    for step in range(steps):
        report(step / steps, f"step {step}")
    return steps


def fail(_, words):
    raise CrowdtreeError(words)


def sleep(report, seconds):
    report(0.0, str(os.getpid()))
    time.sleep(seconds)


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def hungry(_):
    raise MemoryError


@pytest.fixture(scope="module")
def process():
    made = WorkerProcess()
    yield made
    made.close()


def test_a_job_reports_progress_without_blocking_others(process):
    async def go():
        heard = []
        job = asyncio.create_task(process.run(count, 3, report=lambda *news: heard.append(news)))
        others = 0
        while not job.done():
            others += 1
            await asyncio.sleep(0.001)
        return await job, heard, others

    found, heard, others = aside.run(go())
    assert found == 3
    assert heard == [(0.0, "step 0"), (1 / 3, "step 1"), (2 / 3, "step 2")]
    assert others > 3  # the loop was free all the time


def test_an_error_is_reported_and_the_next_job_runs(process):
    with pytest.raises(CrowdtreeError, match="the table is bad"):
        aside.run(process.run(fail, "the table is bad"))
    with pytest.raises(CrowdtreeError, match="too much memory"):
        aside.run(process.run(hungry))
    with pytest.raises(CrowdtreeError, match="without a result"):
        aside.run(process.run(die))
    assert aside.run(process.run(count, 2)) == 2


def test_a_job_that_takes_too_long_is_stopped_with_its_process(process):
    heard = []
    process.seconds = 0.5
    with pytest.raises(CrowdtreeError, match="takes longer than 0 s; make the plan with"):
        aside.run(process.run(sleep, 600, report=lambda _, words: heard.append(int(words))))
    process.seconds = module.MAX_SECONDS
    assert process._process is None
    for pid in heard:  # empty where the process was not even ready by then
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_queue_has_a_limit():
    crowded = WorkerProcess()
    crowded.waiting = module.MAX_WAITING
    with pytest.raises(Unavailable, match="Try again"):
        aside.run(crowded.run(count, 1))
    assert crowded.waiting == module.MAX_WAITING
