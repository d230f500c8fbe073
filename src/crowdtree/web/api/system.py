"""Health and metrics."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from crowdtree.web.auth import OWNER_ONLY
from crowdtree.web.metrics import CONTENT_TYPE, exposition
from crowdtree.web.requests import state_of

__all__ = ["router"]

router = APIRouter(tags=["system"])
STARTED = time.time()


@router.get("/healthz")
async def health(request: Request) -> Response:
    """Report whether the server and its database work."""
    if await state_of(request).store.is_reachable():
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "no database"}, 503)


@router.get("/metrics", response_class=PlainTextResponse, dependencies=OWNER_ONLY)
async def metrics(request: Request) -> PlainTextResponse:
    """Count what happened, in Prometheus' text format."""
    state = state_of(request)
    text = await state.store.aread(lambda c: exposition(c, state.waiters.waiting(), STARTED))
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
