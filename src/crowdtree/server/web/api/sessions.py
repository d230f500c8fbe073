"""Logging in, joining, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from crowdtree.server.store import NotFound, tokens
from crowdtree.server.store.owner import owners
from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.web import auth
from crowdtree.server.web.auth import OwnerNeeded
from crowdtree.server.web.limits import client_address
from crowdtree.server.web.requests import Reply, State, state_of
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services import sessions

router = APIRouter(route_class=GuardedRoute, prefix="/api", tags=["sessions"])
Token = Annotated[str, Field(min_length=1, max_length=200)]
Id = Annotated[str, Field(max_length=200)]
LINK_SECONDS = 900.0


class Login(BaseModel):
    """A token to exchange for a session."""

    model_config = ConfigDict(extra="forbid")
    token: Token


class Join(Login):
    """A join token, and what the platform says about the participant."""

    participant: Id | None = None
    expires: Id = ""
    nonce: Id = ""
    signature: Id = ""
    study: Id = ""
    session: Id = ""


class TokenRequest(BaseModel):
    """A name for a token, and whether it only reads."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=100)]
    read_only: bool = False


@router.post("/session")
async def start_session(request: Request, response: Response, login: Login) -> dict[str, str]:
    """Exchange an owner's one-time token for a session cookie."""
    return await _start(request, response, login.token, "once")


@router.delete("/session")
async def end_session(state: State, response: Response, owner: OwnerNeeded) -> dict[str, bool]:
    """Log out; the session stops working everywhere."""
    end = owner.token_hash
    await state.store.awrite(lambda c: tokens.revoke_owner_tokens(c, state.now, end))
    auth.forget(response, auth.OWNER_COOKIE)
    return {"done": True}


@router.post("/worker/session")
async def start_worker_session(
    request: Request, response: Response, login: Login
) -> dict[str, str]:
    """Exchange a worker's personal token for a session cookie."""
    return await _start(request, response, login.token, "worker")


async def _start(
    request: Request, response: Response, token: str, role: sessions.LoginRole
) -> dict[str, str]:
    return {"csrf": auth.csrf_of(await auth.log_in(request, response, token, role))}


@router.post("/join")
async def join(request: Request, given: Join) -> dict[str, str]:
    """Join a campaign by its open link; returns a bearer token for the worker API.

    `expires`, `nonce` and `signature` are those of a signed link.
    """
    proof = given.model_dump(include={"participant", "expires", "nonce", "signature"})
    visitor = Visitor(**proof, details={"study": given.study, "session": given.session})
    address = client_address(request.scope)
    token = await sessions.join_campaign(state_of(request), address, given.token, visitor)
    return {"token": token}


@router.post("/login-link")
async def login_link(state: State, owner: OwnerNeeded) -> dict[str, str]:
    """Make a link that logs the owner in on another device: once, within some minutes."""
    token = await state.store.awrite(
        lambda c: owners.make_link(c, owner.id, state.now, LINK_SECONDS)
    )
    return {"link": f"/login?token={token}"}


@router.get("/tokens")
async def list_tokens(state: State, owner: OwnerNeeded) -> Sequence[Reply]:
    """List the owner's tokens and sessions that work now, without their secrets."""
    return await sessions.list_tokens(state, owner.id, owner.token_hash)


@router.post("/tokens")
async def make_token(state: State, given: TokenRequest, owner: OwnerNeeded) -> dict[str, str]:
    """Make a token for scripts, shown only once: with the rights of the owner, or only to read."""
    token = await state.store.awrite(
        lambda c: owners.make_token(c, owner.id, given.name, state.now, given.read_only)
    )
    return {"token": token, "id": tokens.hashed(token)[: tokens.ID_LENGTH]}


@router.delete("/tokens/{token_id}")
async def end_token(state: State, token_id: str, owner: OwnerNeeded) -> dict[str, int]:
    """Revoke a token, session or link of the owner by its id."""
    mine = tokens.of_owner(owner.id)
    count = 0
    if len(token_id) == tokens.ID_LENGTH and token_id.isalnum():
        count = await state.store.awrite(
            lambda c: owners.revoke_token(c, token_id, state.now, mine)
        )
    if not count:
        raise NotFound("There is no such token.")
    return {"revoked": count}
