"""Workers: the table with reliability and controls, and one worker's answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from crowdtree.problem import DASH
from crowdtree.store import campaigns, people, views
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.pages.base import Number, PageRoute, render
from crowdtree.web.pages.items import FATES
from crowdtree.web.pages.words import ago
from crowdtree.web.site import site_of

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)


@router.get("/c/{number}/workers")
async def listed(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    sort: str = "answers",
    skip: int = Query(0, ge=0, le=10**9),
) -> Response:
    """List workers."""
    site = site_of(request)
    sort = sort if sort in views.WORKER_ORDERS else "answers"

    def look(connection: Any) -> Any:
        campaign = campaigns.get(connection, number)
        problem = site.policy(campaign).problem
        error = float(problem.worker_error.mean())
        return (
            campaign,
            views.some_workers(connection, number, problem, sort=sort, skip=skip),
            error,
        )

    campaign, rows, error = await site.store.aread(look)
    return render(
        request,
        "workers.html",
        owner=owner,
        campaign=campaign,
        rows=[{**row, "seen": ago(row["seen_at"], site.now)} for row in rows],
        more=skip + len(rows) if len(rows) == views.WORKERS_PAGE else None,
        sort=sort,
        expected=1 - error,
    )


@router.get("/c/{number}/workers/{worker}")
async def one(request: Request, number: Number, worker: Number, owner: OwnerNeeded) -> Response:
    """Show a worker with the last answers."""
    site = site_of(request)

    def look(connection: Any) -> Any:
        campaign = campaigns.get(connection, number)
        problem = site.policy(campaign).problem
        facts = people.worker_facts(people.get_worker(connection, number, worker), problem)
        return campaign, facts, views.worker_log(connection, number, worker)

    campaign, facts, log = await site.store.aread(look)
    problem = site.policy(campaign).problem
    for line in log:
        line["text"] = problem.text(line["question"])
        line["words"] = FATES.get(line["fate"], line["fate"])
        line["agrees"] = _agrees(problem, line)
    return render(
        request,
        "person.html",
        owner=owner,
        campaign=campaign,
        row=facts,
        log=log,
        now=site.now,
    )


def _agrees(problem: Any, line: dict[str, Any]) -> bool | None:
    """Whether an answer fits what is known or was decided about the item."""
    truth = line["label"] if line["gold"] is None else line["gold"]
    if truth is None or line["value"] is None:
        return None
    outcome = int(problem.outcome[line["question"], truth])
    return None if outcome == DASH else outcome == line["value"]
