"""The dashboard, which changes as answers arrive."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.audit import audit_part
from crowdtree.server.web.pages.base import PageRoute, fragment, render
from crowdtree.server.web.pages.dashboard_view import Dashboard, build_dashboard
from crowdtree.server.web.requests import Number, event_response, state_of
from crowdtree.server.web.state import AppState
from crowdtree.show.plots.live_tree import flow_svg

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
POLL_SECONDS = 2.0
PARTS = ("notes", "labels", "divided", "questions", "places", "monitor", "workers", "actions")


@router.get("/c/{number}")
async def dashboard(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show how a campaign is going."""
    state = state_of(request)
    board = await _board(state, number)
    campaign = board.campaign
    if campaign.status == "draft":
        step = "share" if board.progress["items"]["total"] else "plan"
        return RedirectResponse(f"/c/{number}/{step}", 303)
    policy = state.policy(campaign)
    flow = await asyncio.to_thread(flow_svg, policy.plan) if policy.plan is not None else ""
    return render(
        request,
        "dashboard.html",
        owner=owner,
        campaign=campaign,
        board=board,
        flow=flow,
        parts=await _parts(request, board),
    )


@router.get("/c/{number}/live")
async def live(request: Request, number: Number) -> Response:
    """Stream what has changed, at most once per second."""
    state = state_of(request)

    async def read() -> JsonObject:
        return await _message(request, await _board(state, number))

    return await event_response(request, number, "picture", read, POLL_SECONDS)


async def _board(state: AppState, number: int) -> Dashboard:
    campaign = await state.store.aread(lambda c: get_campaign(c, number))
    policy = state.policy(campaign)
    performance = await state.plans.performance_soon(
        policy, campaign.settings.labels.people_per_item
    )
    return await state.store.aread(
        lambda c: build_dashboard(c, campaign, policy, performance, state.now)
    )


async def _message(request: Request, board: Dashboard) -> JsonObject:
    return {
        "values": board.values,
        "shares": board.shares,
        "mood": board.mood,
        "status": board.campaign.status,
        "parts": await _parts(request, board),
        "flow": board.flow,
    }


async def _parts(request: Request, board: Dashboard) -> dict[str, str]:
    parts = {
        name: fragment(request, f"part-{name}.html", board=board, campaign=board.campaign)
        for name in PARTS
    }
    return parts | {"audit": await audit_part(request, board.campaign)}
