"""The doors: the owner's one-time link, a worker's personal link, the open join link."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.owner import tokens
from crowdtree.web import auth
from crowdtree.web.api.sessions import (
    GONE,
    join_campaign,
    known,
    limited,
    login_owner,
    login_worker,
)
from crowdtree.web.limits import client_address
from crowdtree.web.pages.base import PageRoute
from crowdtree.web.site import Site

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
PLATFORM = (("STUDY_ID", "study"), ("SESSION_ID", "session"))


@router.get("/login")
async def login(request: Request, token: str = "") -> Response:
    """Exchange the one-time link for a session, and take it out of the address."""
    with limited(request) as site:
        session = await login_owner(site, token)
    response = RedirectResponse("/", 303)
    auth.remember(response, site, auth.OWNER_COOKIE, session)
    return response


@router.get("/w/{token}")
async def personal(request: Request, token: str) -> Response:
    """Exchange a personal link for a worker session."""
    with limited(request) as site:
        session = await login_worker(site, token)
    response = RedirectResponse("/work", 303)
    auth.remember(response, site, auth.WORKER_COOKIE, session)
    return response


@router.get("/join/{token}")
async def join(request: Request, token: str) -> Response:
    """Join by the open link; a platform passes the participant's id in the address."""
    query = request.query_params
    details = {name: query[key][:200] for key, name in PLATFORM if key in query}
    response = RedirectResponse("/work", 303)
    with limited(request) as site:
        number = (await known(site, token, "join", GONE)).campaign_id
        name = await _parameter(site, number)
        participant = query.get(name) or query.get("PROLIFIC_PID") or query.get("participant")
        if not participant and await _is_here(request, site, number):
            return response  # the same person again, not a second worker
        address = client_address(request.scope)
        session = await join_campaign(site, address, token, participant, details)
    auth.remember(response, site, auth.WORKER_COOKIE, session)
    return response


async def _parameter(site: Site, number: Any) -> str:
    """Name of the participant's id in the address, as the campaign's owner chose it."""
    campaign = await site.store.aread(lambda c: get_campaign(c, number))
    return campaign.settings.participant_parameter


async def _is_here(request: Request, site: Site, number: Any) -> bool:
    """Whether this browser is a worker of the campaign already."""
    session = request.cookies.get(auth.WORKER_COOKIE, "")[: auth.MOST_TOKEN]
    found = await site.store.aread(lambda c: tokens.find(c, session, site.now))
    return found is not None and (found.role, found.campaign_id) == ("worker", number)
