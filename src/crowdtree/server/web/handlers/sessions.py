"""Logging in and joining, by links; an owner's tokens and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Request, Response
from pydantic import Field
from starlette.responses import RedirectResponse

from crowdtree.server.store import NotFound, tokens
from crowdtree.server.store.owner import owners, people
from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.web import auth
from crowdtree.server.web.auth import LoginRole
from crowdtree.server.web.language import keep_language
from crowdtree.server.web.middleware import client_address
from crowdtree.server.web.routing import Body, Read, Reply, Routes, Write
from crowdtree.server.web.state import state_of

routes = Routes("sessions")
Token = Annotated[str, Field(min_length=1, max_length=200)]
Short = Annotated[str, Field(max_length=200)]
LINK_SECONDS = 900.0
PLATFORM = (("STUDY_ID", "study"), ("SESSION_ID", "session"))
"""Query parameters of crowdsourcing platforms that are kept with a worker."""
MAX_PROOF = 200


class Login(Body):
    """A token to exchange for a session."""

    token: Token


class Join(Login):
    """A join token, and what the platform says about the participant."""

    participant: Short | None = None
    expires: Short = ""
    nonce: Short = ""
    signature: Short = ""
    study: Short = ""
    session: Short = ""


class TokenRequest(Body):
    """A name for a token, and whether it only reads."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    read_only: bool = False


class OwnedToken(tokens.OwnerToken):
    """A token or session of an owner; `this` marks the one that asked."""

    this: bool


# --------------------------------------------------------------------------------- links


async def _exchange_link(request: Request, token: str, role: LoginRole, where: str) -> Response:
    """Exchange a link for a session, and remove it from the address."""
    response = RedirectResponse(where, 303)
    if role != "once":
        keep_language(request, response)
    await auth.log_in(request, response, token, role)
    return response


@routes.page("GET /login")
async def login(request: Request, token: str = "") -> Response:
    """Log an owner in by the one-time link."""
    return await _exchange_link(request, token, "once", "/")


@routes.page("GET /w/{token}")
async def personal(request: Request, token: str) -> Response:
    """Open the worker's page by the personal link."""
    return await _exchange_link(request, token, "worker", "/work")


@routes.page("GET /a/{token}")
async def auditor(request: Request, token: str) -> Response:
    """Open the page of an auditor by the personal link."""
    return await _exchange_link(request, token, "auditor", "/check")


@routes.page("GET /join/{token}")
async def join_by_link(request: Request, token: str) -> Response:
    """Join by the open link; a platform passes the participant's id in the address."""
    query = request.query_params
    response = RedirectResponse("/work", 303)
    keep_language(request, response)
    state, address = state_of(request), client_address(request.scope)
    campaign_id, name = await auth.find_join_link(state, address, token)
    participant = query.get(name) or query.get("PROLIFIC_PID") or query.get("participant") or None
    session = request.cookies.get(auth.WORKER_COOKIE, "")[: auth.MAX_TOKEN]
    if await state.store.aread(
        lambda c: people.is_participant(c, session, campaign_id, participant, state.now)
    ):
        return response  # the same person again, not a second worker
    proof = {key: query.get(key, "")[:MAX_PROOF] for key in ("expires", "nonce", "signature")}
    details = {name: query[key][:200] for key, name in PLATFORM if key in query}
    visitor = Visitor(participant, **proof, details=details)
    session = await auth.join_campaign(state, address, token, visitor)
    auth.remember(response, state, auth.WORKER_COOKIE, session)
    return response


# -------------------------------------------------------------------------- the API's doors


async def _session(
    request: Request, response: Response, token: str, role: LoginRole
) -> dict[str, str]:
    return {"csrf": auth.csrf_of(await auth.log_in(request, response, token, role))}


@routes.api("POST /api/session")
async def start_session(request: Request, response: Response, login: Login) -> dict[str, str]:
    """Exchange an owner's one-time token for a session cookie."""
    return await _session(request, response, login.token, "once")


@routes.api("POST /api/worker/session")
async def start_worker_session(
    request: Request, response: Response, login: Login
) -> dict[str, str]:
    """Exchange a worker's personal token for a session cookie."""
    return await _session(request, response, login.token, "worker")


@routes.api("POST /api/join")
async def join(request: Request, given: Join) -> dict[str, str]:
    """Join a campaign by its open link; returns a bearer token for the worker API.

    `expires`, `nonce` and `signature` are those of a signed link.
    """
    proof = given.model_dump(include={"participant", "expires", "nonce", "signature"})
    visitor = Visitor(**proof, details={"study": given.study, "session": given.session})
    state, address = state_of(request), client_address(request.scope)
    return {"token": await auth.join_campaign(state, address, given.token, visitor)}


# --------------------------------------------------------------------------- an owner's own


@routes.api("DELETE /api/session", "viewer")
def end_session(tx: Write, response: Response) -> dict[str, bool]:
    """Log out; the session stops working everywhere."""
    tokens.revoke_owner_tokens(tx.connection, tx.now, tx.owner.token_hash)
    auth.forget(response, auth.OWNER_COOKIE)
    return {"done": True}


@routes.api("POST /api/login-link", "viewer")
def login_link(tx: Write) -> dict[str, str]:
    """Make a link that logs the owner in on another device: once, within some minutes."""
    token = owners.make_link(tx.connection, tx.owner.id, tx.now, LINK_SECONDS)
    return {"link": f"/login?token={token}"}


@routes.api("GET /api/tokens", "viewer")
def list_tokens(tx: Read) -> Sequence[Reply]:
    """List the owner's tokens and sessions that work now, without their secrets."""
    return _own_tokens(tx)


def _own_tokens(tx: Read) -> list[OwnedToken]:
    this = tx.owner.token_hash[: tokens.ID_LENGTH]
    rows = tokens.listed(tx.connection, tx.now, tokens.of_owner(tx.owner.id))
    return [{**row, "this": row["id"] == this} for row in rows]


@routes.api("POST /api/tokens", "viewer")
def make_token(tx: Write, given: TokenRequest) -> dict[str, str]:
    """Make a token for scripts, shown only once: with the rights of the owner, or only to read."""
    who = tx.owner.id
    token = owners.make_token(tx.connection, who, given.name, tx.now, given.read_only)
    return {"token": token, "id": tokens.hashed(token)[: tokens.ID_LENGTH]}


@routes.api("DELETE /api/tokens/{token_id}", "viewer")
def end_token(tx: Write, token_id: str) -> dict[str, int]:
    """Revoke a token, session or link of the owner by its id."""
    count = 0
    if len(token_id) == tokens.ID_LENGTH and token_id.isalnum():
        own = tokens.of_owner(tx.owner.id)
        count = owners.revoke_token(tx.connection, token_id, tx.now, own)
    if not count:
        raise NotFound("There is no such token.")
    return {"revoked": count}


@routes.page("GET /access", "viewer", "access.html")
def access(tx: Read) -> Reply:
    """Show the owner's tokens, sessions and unused links."""
    rows = _own_tokens(tx)
    kinds = {kind: [r for r in rows if r["kind"] == kind] for kind in ("token", "session", "link")}
    return {"kinds": kinds, "now": tx.now, "base": tx.state.options.url}
