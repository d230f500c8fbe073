"""The owner's one-time link, personal links of workers and auditors, the open join link."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.web import auth
from crowdtree.server.web.limits import client_address
from crowdtree.server.web.pages.base import PageRoute
from crowdtree.server.web.pages.language import keep_language
from crowdtree.server.web.requests import state_of
from crowdtree.server.web.services import sessions

router = APIRouter(route_class=PageRoute)
PLATFORM = (("STUDY_ID", "study"), ("SESSION_ID", "session"))
"""Query parameters of crowdsourcing platforms that are kept with a worker."""
MAX_PROOF = 200


@router.get("/login")
async def login(request: Request, token: str = "") -> Response:
    """Exchange the one-time link for a session, and remove it from the address."""
    response = RedirectResponse("/", 303)
    await auth.log_in(request, response, token, "once")
    return response


@router.get("/w/{token}")
async def personal(request: Request, token: str) -> Response:
    """Exchange a personal link for a worker session."""
    response = RedirectResponse("/work", 303)
    keep_language(request, response)
    await auth.log_in(request, response, token, "worker")
    return response


@router.get("/a/{token}")
async def auditor(request: Request, token: str) -> Response:
    """Open the page of an auditor by the personal link."""
    response = RedirectResponse("/check", 303)
    keep_language(request, response)
    await auth.log_in(request, response, token, "auditor")
    return response


@router.get("/join/{token}")
async def join(request: Request, token: str) -> Response:
    """Join by the open link; a platform passes the participant's id in the address."""
    query = request.query_params
    response = RedirectResponse("/work", 303)
    keep_language(request, response)
    state, address = state_of(request), client_address(request.scope)
    number, name = await sessions.find_join_link(state, address, token)
    participant = query.get(name) or query.get("PROLIFIC_PID") or query.get("participant") or None
    mine = request.cookies.get(auth.WORKER_COOKIE, "")[: auth.MAX_TOKEN]
    if await sessions.is_participant(state, mine, number, participant):
        return response  # the same person again, not a second worker
    proof = {key: query.get(key, "")[:MAX_PROOF] for key in ("expires", "nonce", "signature")}
    details = {name: query[key][:200] for key, name in PLATFORM if key in query}
    visitor = Visitor(participant, **proof, details=details)
    session = await sessions.join_campaign(state, address, token, visitor)
    auth.remember(response, state, auth.WORKER_COOKIE, session)
    return response
