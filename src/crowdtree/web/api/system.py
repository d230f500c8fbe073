"""Health and metrics."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.responses import JSONResponse, PlainTextResponse, Response

from crowdtree.store.db.campaign_row import list_campaigns, tally
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.site import site_of

__all__ = ["router"]

router = APIRouter(tags=["system"])
STARTED = time.time()


@router.get("/healthz")
async def health(request: Request) -> Response:
    """Say whether the server and its database work."""
    if await site_of(request).store.is_reachable():
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "no database"}, 503)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, owner: OwnerNeeded) -> PlainTextResponse:
    """Count what happened, in Prometheus' text format."""
    del owner
    site = site_of(request)

    def look(connection: Connection) -> list[tuple[int, dict[str, int]]]:
        return [(row.id, tally(connection, row.id)) for row in list_campaigns(connection)]

    lines = [
        "# TYPE crowdtree_waiting_workers gauge",
        f"crowdtree_waiting_workers {site.waiters.waiting()}",
        "# TYPE crowdtree_start_time_seconds gauge",
        f"crowdtree_start_time_seconds {STARTED:.3f}",
        "# TYPE crowdtree_items gauge",
        "# TYPE crowdtree_answers counter",
    ]
    for number, counts in await site.store.aread(look):
        for name in ("new", "open", "labelled", "set aside"):
            status = name.replace(" ", "_")
            value = counts.get(name, 0)
            lines.append(f'crowdtree_items{{campaign="{number}",status="{status}"}} {value}')
        for name, value in sorted(counts.items()):
            if name.startswith("fate:"):
                fate = name[5:].replace(" ", "_")
                lines.append(f'crowdtree_answers{{campaign="{number}",fate="{fate}"}} {value}')
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")
