"""Health and metrics."""

from __future__ import annotations

import time

from fastapi import APIRouter
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import JSONResponse, PlainTextResponse, Response

from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.errors import error_response, refusal_of
from crowdtree.server.web.metrics import exposition
from crowdtree.server.web.requests import State

router = APIRouter(tags=["system"])
STARTED = time.time()


@router.get("/healthz")
async def health() -> dict[str, str]:
    """Report that the process is alive; the database is not asked."""
    return {"status": "ok"}


@router.get("/readyz")
async def ready(state: State) -> Response:
    """Report whether the server can save answers, by writing to the database."""
    problem = await state.readiness.problem()
    if problem is not None:
        return error_response(*refusal_of(problem))
    return JSONResponse({"status": "ok"})


@router.get("/metrics", response_class=PlainTextResponse, dependencies=OWNER_ONLY)
async def metrics(state: State) -> PlainTextResponse:
    """Count what happened, in Prometheus' text format."""
    waiting, queues = state.waiters.waiting(), state.store.queued()
    text = await state.store.aread(lambda c: exposition(c, waiting, STARTED, queues))
    return PlainTextResponse(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
