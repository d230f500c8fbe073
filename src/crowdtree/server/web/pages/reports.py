"""What workers reported about items."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.queries.export import ReportRow, report_rows
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, render
from crowdtree.server.web.requests import Number, state_of

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
MAX_SHOWN = 200


@router.get("/c/{number}/reports")
async def listed(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """List the last reports, the newest first."""
    state = state_of(request)

    def look(connection: Connection) -> tuple[Campaign, list[ReportRow]]:
        campaign = get_campaign(connection, number)
        texts = [entry.get("text") or entry["name"] for entry in campaign.problem["questions"]]
        return campaign, report_rows(connection, number, texts, most=MAX_SHOWN, newest=True)

    campaign, rows = await state.store.aread(look)
    more = len(rows) == MAX_SHOWN
    return render(request, "reports.html", owner=owner, campaign=campaign, rows=rows, more=more)
