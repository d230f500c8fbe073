"""Slow work beside the server: it tells how far it is, it is stopped, and it blocks nobody."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

import aside
from crowdtree import files
from crowdtree.errors import CrowdtreeError
from crowdtree.policy import AdaptivePolicy
from crowdtree.store import Unavailable
from crowdtree.store.db.problem_json import problem_to_json
from crowdtree.web import worker_process as module
from crowdtree.web.plan_cache import PlanCache
from crowdtree.web.plan_jobs import read_offer
from crowdtree.web.worker_process import WorkerProcess
from weblab import lab


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
def room():
    made = WorkerProcess()
    yield made
    made.close()


def test_a_job_tells_how_far_it_is_and_others_go_on_meanwhile(room):
    async def go():
        heard = []
        job = asyncio.create_task(room.run(count, 3, report=lambda *news: heard.append(news)))
        others = 0
        while not job.done():
            others += 1
            await asyncio.sleep(0.001)
        return await job, heard, others

    found, heard, others = aside.run(go())
    assert found == 3
    assert heard == [(0.0, "step 0"), (1 / 3, "step 1"), (2 / 3, "step 2")]
    assert others > 3  # the loop was free all the time


def test_a_mistake_is_said_and_the_next_job_runs(room):
    with pytest.raises(CrowdtreeError, match="the table is bad"):
        aside.run(room.run(fail, "the table is bad"))
    with pytest.raises(CrowdtreeError, match="too much memory"):
        aside.run(room.run(hungry))
    with pytest.raises(CrowdtreeError, match="without a result"):
        aside.run(room.run(die))
    assert aside.run(room.run(count, 2)) == 2


def test_a_job_that_takes_too_long_is_stopped_with_its_process(room):
    heard = []
    room.seconds = 0.5
    with pytest.raises(CrowdtreeError, match="takes longer than 0 s; make the plan with"):
        aside.run(room.run(sleep, 600, report=lambda _, words: heard.append(int(words))))
    room.seconds = module.MOST_SECONDS
    assert room._process is None
    for pid in heard:  # empty where the process was not even ready by then
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_nobody_waits_in_an_endless_queue():
    crowded = WorkerProcess()
    crowded.waiting = module.MOST_WAITING
    with pytest.raises(Unavailable, match="Try again"):
        aside.run(crowded.run(count, 1))
    assert crowded.waiting == module.MOST_WAITING


def test_plans_are_worked_out_once(monkeypatch):
    problem = files.example("table1")
    policy = AdaptivePolicy(problem, 0.05, 50, strict=False)
    asked = []

    async def run(job, *values, report=None):
        del report
        asked.append(job.__name__)
        return job(module.silent, *values)

    async def go():
        plans = PlanCache()
        monkeypatch.setattr(plans.process, "run", run)
        offer = await plans.read(b"", "example:table1", {}, module.silent)
        assert plans.known(problem_to_json(problem)) is offer
        assert await plans.offer(problem_to_json(problem)) is offer
        same = offer.get("adaptive-0.05").policy
        assert (await plans.promise(same)).error == offer.get("adaptive-0.05").error
        assert asked == ["read_offer"]
        assert await plans.promise_soon(policy) is None  # on its way
        assert await plans.promise_soon(policy) is None
        while plans.pending:
            await asyncio.sleep(0.01)
        found = await plans.promise_soon(policy)
        again = AdaptivePolicy(problem, 0.05, 50, strict=False)
        assert await plans.promise_soon(again) is found
        plans.close()

    aside.run(go())
    assert asked == ["read_offer", "make_promise"]


def test_an_uploaded_table_is_read_with_its_faults_named():
    with pytest.raises(CrowdtreeError, match=r"upload one of \.csv"):
        read_offer(module.silent, b"x", "table.exe", {})
    with pytest.raises(CrowdtreeError, match="no question splits"):
        read_offer(module.silent, b"question,error,a,b\nq,0.1,1,1\n", "t.csv", {})


def test_the_wizard_hears_how_far_the_server_is():
    with lab() as app:
        form = {"example": "table1", "name": "Mine"}
        headers = {**app.owner, "accept": "application/json"}
        answer = app.client.post("/new", data=form, headers=headers)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert lines[-1] == {"go": "/c/1/plan"}
        shares = [line["share"] for line in lines[:-1]]
        assert shares == sorted(shares)
        assert len({line["words"] for line in lines[:-1]}) > 3
        page = app.get("/c/1/plan")
        assert "How sure do you want to be?" in page.text
        bad = app.client.post("/new", data={"pasted": "question,a\nq,7\n"}, headers=headers)
        assert (bad.status_code, bad.json()["error"]) == (422, "input")
        # a browser without scripts waits, and is sent on
        plain = app.client.post("/new", data=form, headers=app.owner, follow_redirects=False)
        assert (plain.status_code, plain.headers["location"]) == (303, "/c/2/plan")
        # after a restart the choices are worked out again
        app.client.app.state.crowdtree.plans.offers.clear()
        assert "Computing what each error costs" in app.get("/c/1/plan").text
        again = app.client.post("/c/1/plan/ready", data={}, headers=headers)
        assert json.loads(again.text.splitlines()[-1]) == {"go": "/c/1/plan"}
        assert "How sure do you want to be?" in app.get("/c/1/plan").text
