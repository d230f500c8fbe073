"""Workers: the table with reliability and controls, and one worker's answers."""

from __future__ import annotations

from fastapi import APIRouter, Query, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.core.problem import DASH, Problem
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.queries.workers import (
    WORKER_ORDERS,
    WORKERS_PAGE,
    ExclusionRow,
    WorkerAnswer,
    WorkerFacts,
    get_worker,
    list_exclusions,
    some_workers,
    worker_log,
)
from crowdtree.server.store.tokens import code_of
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, render
from crowdtree.server.web.pages.items import FATES
from crowdtree.server.web.pages.words import ago
from crowdtree.server.web.requests import Number, state_of

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)


@router.get("/c/{number}/workers")
async def listed(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    sort: str = "answers",
    skip: int = Query(0, ge=0, le=10**9),
) -> Response:
    """List workers."""
    state = state_of(request)
    sort = sort if sort in WORKER_ORDERS else "answers"

    def look(connection: Connection) -> tuple[Campaign, list[WorkerFacts], float]:
        campaign = get_campaign(connection, number)
        problem = state.policy(campaign).problem
        error = float(problem.worker_error.mean())
        return (
            campaign,
            some_workers(connection, number, problem, sort=sort, skip=skip),
            error,
        )

    campaign, rows, error = await state.store.aread(look)
    return render(
        request,
        "workers.html",
        owner=owner,
        campaign=campaign,
        rows=[{**row, "seen": ago(row["seen_at"], state.now)} for row in rows],
        more=skip + len(rows) if len(rows) == WORKERS_PAGE else None,
        sort=sort,
        expected=1 - error,
    )


@router.get("/c/{number}/workers/{worker}")
async def one(request: Request, number: Number, worker: Number, owner: OwnerNeeded) -> Response:
    """Show a worker with the last answers."""
    state = state_of(request)

    def look(
        connection: Connection,
    ) -> tuple[Campaign, WorkerFacts, list[WorkerAnswer], list[ExclusionRow]]:
        campaign = get_campaign(connection, number)
        facts = get_worker(connection, number, worker, state.policy(campaign).problem)
        excluded = list_exclusions(connection, number, worker)
        return campaign, facts, worker_log(connection, number, worker), excluded

    campaign, facts, lines, excluded = await state.store.aread(look)
    problem = state.policy(campaign).problem
    log = [
        {
            **line,
            "text": problem.text(line["question"]),
            "words": FATES.get(line["fate"], line["fate"]),
            "agrees": _agrees(problem, line),
        }
        for line in lines
    ]
    return render(
        request,
        "person.html",
        owner=owner,
        campaign=campaign,
        row=facts,
        code=code_of(campaign.settings, campaign.secret, worker),
        log=log,
        exclusions=excluded,
        now=state.now,
    )


def _agrees(problem: Problem, line: WorkerAnswer) -> bool | None:
    """Whether an answer agrees with the gold class or the label of the item."""
    truth = line["label"] if line["gold"] is None else line["gold"]
    if truth is None or line["value"] is None:
        return None
    outcome = int(problem.outcome[line["question"], truth])
    return None if outcome == DASH else outcome == line["value"]
