"""The cache of plans."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import io as files
from crowdtree.policies import AdaptivePolicy
from crowdtree.server.web import worker_process as module
from crowdtree.server.web.plans import Plans
from tests import aside


def test_plans_are_worked_out_once(monkeypatch):
    problem = files.example("table1")
    policy = AdaptivePolicy(problem, 0.05, 50, strict=False)
    asked = []

    async def run(job, *values, report=None):
        del report
        asked.append(job.__name__)
        return job(module.silent, *values)

    async def go():
        plans = Plans()
        monkeypatch.setattr(plans.process, "run", run)
        menu = await plans.read(b"", "example:table1", {}, module.silent)
        assert plans.known(files.problem_to_dict(problem)) is menu
        assert await plans.menu(files.problem_to_dict(problem)) is menu
        same = menu.get("adaptive-0.05").policy
        assert (await plans.performance(same)).error == menu.get("adaptive-0.05").performance.error
        assert asked == ["read_menu"]
        assert await plans.performance_soon(policy) is None  # on its way
        assert await plans.performance_soon(policy) is None
        while plans.pending:
            await asyncio.sleep(0.01)
        found = await plans.performance_soon(policy)
        again = AdaptivePolicy(problem, 0.05, 50, strict=False)
        assert await plans.performance_soon(again) is found
        assert await plans.performance_soon(policy, 3) is None
        while plans.pending:
            await asyncio.sleep(0.01)
        more = await plans.performance_soon(policy, 3)
        extra = await plans.people_costs(policy, [1, 3])
        assert more.answers == found.answers + extra[3] >= found.answers + extra[1] == found.answers
        plans.close()

    aside.run(go())
    assert asked == ["read_menu", "performance_job", "people_costs"]
