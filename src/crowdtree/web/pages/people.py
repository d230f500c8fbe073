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
from crowdtree.web.site import site_of

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
SORTS = {
    "answers": lambda row: (-row["answers"], row["id"]),
    "reliability": lambda row: (row["reliability"], row["id"]),
    "seen": lambda row: (-row["seen_at"], row["id"]),
    "name": lambda row: (row["name"].lower(), row["id"]),
}


@router.get("/c/{number}/workers")
async def listed(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    sort: str = "answers",
    after: int = Query(0, ge=0, le=2**53),
) -> Response:
    """List workers."""
    site = site_of(request)

    def look(connection: Any) -> Any:
        campaign = campaigns.get(connection, number)
        problem = site.policy(campaign).problem
        error = float(problem.worker_error.mean())
        return campaign, people.listed_workers(connection, number, problem, after), error

    campaign, rows, error = await site.store.aread(look)
    sort = sort if sort in SORTS else "answers"
    return render(
        request,
        "workers.html",
        owner=owner,
        campaign=campaign,
        rows=sorted(rows, key=SORTS[sort]),
        more=rows[-1]["id"] if len(rows) == 1000 else None,
        sort=sort,
        now=site.now,
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
