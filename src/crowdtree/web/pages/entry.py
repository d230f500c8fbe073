"""The doors: the owner's one-time link, a worker's personal link, the open join link."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from crowdtree.store import campaigns, tokens
from crowdtree.web import auth
from crowdtree.web.api.sessions import join_campaign, limited, login_owner, login_worker
from crowdtree.web.pages.base import PageRoute
from crowdtree.web.site import Site

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
PLATFORM = (("STUDY_ID", "study"), ("SESSION_ID", "session"))


@router.get("/login")
async def login(request: Request, token: str = "") -> Response:
    """Exchange the one-time link for a session, and take it out of the address."""
    site = limited(request)
    session = await login_owner(site, token)
    response = RedirectResponse("/", 303)
    auth.remember(response, site, auth.OWNER_COOKIE, session)
    return response


@router.get("/w/{token}")
async def personal(request: Request, token: str) -> Response:
    """Exchange a personal link for a worker session."""
    site = limited(request)
    response = RedirectResponse("/work", 303)
    auth.remember(response, site, auth.WORKER_COOKIE, await login_worker(site, token))
    return response


@router.get("/join/{token}")
async def join(request: Request, token: str) -> Response:
    """Join by the open link; a platform passes the participant's id in the address."""
    site = limited(request)
    query = request.query_params
    name = await _parameter(site, token)
    participant = query.get(name) or query.get("PROLIFIC_PID") or query.get("participant")
    details = {name: query[key][:200] for key, name in PLATFORM if key in query}
    response = RedirectResponse("/work", 303)
    session = await join_campaign(site, token, participant, details)
    auth.remember(response, site, auth.WORKER_COOKIE, session)
    return response


async def _parameter(site: Site, token: str) -> str:
    """Name of the participant's id in the address, as the campaign's owner chose it."""
    found = await site.store.aread(lambda c: tokens.find(c, token, site.now))
    if found is None or found.campaign_id is None:
        return ""
    number = found.campaign_id
    campaign = await site.store.aread(lambda c: campaigns.get(c, number))
    return str(campaign["settings"]["participant_parameter"])
