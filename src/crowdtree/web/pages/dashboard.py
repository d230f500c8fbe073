"""The dashboard, which changes as answers arrive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from crowdtree.policy import PlanPolicy
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.pages.base import Number, PageRoute, fragment, render
from crowdtree.web.pages.flow import flow_svg
from crowdtree.web.pages.live import Picture, look
from crowdtree.web.site import Site, event_line, site_of

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
EVENT_SECONDS = 1.0
QUIET_SECONDS = 2.0
"""How often to look without being woken: another process may have changed something."""
PARTS = ("notes", "labels", "divided", "questions", "places", "workers", "actions")


@router.get("/c/{number}")
async def dashboard(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show how a campaign is going."""
    site = site_of(request)
    picture = await _picture(site, number)
    campaign = picture.campaign
    if campaign.status == "draft":
        step = "share" if picture.facts["items"]["total"] else "plan"
        return RedirectResponse(f"/c/{number}/{step}", 303)
    policy = site.policy(campaign)
    flow = await asyncio.to_thread(flow_svg, policy.plan) if isinstance(policy, PlanPolicy) else ""
    return render(
        request,
        "dashboard.html",
        owner=owner,
        campaign=campaign,
        picture=picture,
        flow=flow,
        parts=_parts(request, picture),
    )


@router.get("/c/{number}/live")
async def live(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Stream what has changed, at most once a second."""
    del owner
    site = site_of(request)
    await site.store.aread(lambda c: get_campaign(c, number))
    return StreamingResponse(_stream(request, site, number), media_type="text/event-stream")


async def _stream(request: Request, site: Site, number: int) -> AsyncIterator[str]:
    changed = asyncio.Event()
    watchers = site.waiters.changes[number]
    watchers.add(changed)
    try:
        while not (site.stopping or await request.is_disconnected()):
            changed.clear()
            picture = await _picture(site, number)
            yield event_line("picture", _message(request, picture))
            await asyncio.sleep(EVENT_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), QUIET_SECONDS)
    finally:
        watchers.discard(changed)


async def _picture(site: Site, number: int) -> Picture:
    campaign = await site.store.aread(lambda c: get_campaign(c, number))
    policy = site.policy(campaign)
    promise = await site.plans.promise_soon(policy)
    return await site.store.aread(lambda c: look(c, campaign, policy, promise, site.now))


def _message(request: Request, picture: Picture) -> dict[str, Any]:
    return {
        "values": picture.values,
        "shares": picture.shares,
        "mood": picture.mood,
        "status": picture.campaign.status,
        "parts": _parts(request, picture),
        "flow": picture.flow,
    }


def _parts(request: Request, picture: Picture) -> dict[str, str]:
    return {
        name: fragment(request, f"part-{name}.html", picture=picture, campaign=picture.campaign)
        for name in PARTS
    }
