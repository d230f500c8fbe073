"""Logging in, joining, tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection

from crowdtree.store.db.audit import note
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.owner import people, tokens
from crowdtree.web import auth
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.errors import Problem
from crowdtree.web.limits import client_address
from crowdtree.web.site import Site, site_of

__all__ = ["join_campaign", "login_owner", "login_worker", "router"]

router = APIRouter(prefix="/api", tags=["sessions"])
LINK_SECONDS = 900.0
Token = Annotated[str, Field(min_length=1, max_length=200)]
Id = Annotated[str, Field(max_length=200)]
USED = "This link was used already or is not valid. Get a new one."
GONE = "This link is not valid any more. Ask for a new one."


class Login(BaseModel):
    """A token to exchange for a session."""

    model_config = ConfigDict(extra="forbid")
    token: Token


class Join(Login):
    """A join token, and what the platform says about the participant."""

    participant: Id | None = None
    study: Id = ""
    session: Id = ""


class Named(BaseModel):
    """A name for a token."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=100)]


@contextmanager
def limited(request: Request) -> Iterator[Site]:
    """Refuse whoever has failed too often to log in or to join; what succeeds does not count."""
    site = site_of(request)
    address = client_address(request.scope)
    if not site.login_limit.allows(address):
        raise Problem(429, "slow", "Too many tries. Wait a minute.")
    failed = False
    try:
        yield site
    except Problem as error:
        failed = error.status == 401
        raise
    finally:
        if not failed:
            site.login_limit.refund(address)


async def known(site: Site, token: str, role: tokens.Role, words: str) -> tokens.Credential:
    """Find what a token stands for; guesses are refused without writing anything."""
    found = await site.store.aread(lambda c: tokens.find(c, token, site.now))
    if found is None or found.role != role:
        raise Problem(401, "login" if role == "once" else "unknown", words)
    return found


async def login_owner(site: Site, token: str) -> str:
    """Exchange the one-time link for an owner session."""
    seconds = site.options.session_seconds
    await known(site, token, "once", USED)

    def exchange(connection: Connection) -> str | None:
        if not tokens.take_once(connection, token, site.now):
            return None
        note(connection, site.now, "login", None)
        return tokens.issue(connection, "owner", site.now, name="session", seconds=seconds)

    session = await site.store.awrite(exchange)
    if session is None:
        raise Problem(401, "login", USED)
    return session


async def login_worker(site: Site, token: str) -> str:
    """Exchange a personal link for a worker session."""
    found = await known(site, token, "worker", GONE)
    return await site.store.awrite(
        lambda c: tokens.issue(
            c,
            "worker",
            site.now,
            campaign_id=found.campaign_id,
            worker_id=found.worker_id,
            seconds=site.options.session_seconds,
        )
    )


async def join_campaign(
    site: Site, address: str, token: str, participant: str | None, details: dict[str, str]
) -> str:
    """Become a worker by the open join link; returns a worker session."""
    await known(site, token, "join", GONE)
    if not site.join_limit.allows(address):
        raise Problem(429, "slow", "Many people join at this moment. Try again in a minute.")

    def exchange(connection: Connection) -> str | None:
        found = tokens.find(connection, token, site.now)
        if found is None or found.role != "join" or found.campaign_id is None:
            return None
        campaign = get_campaign(connection, found.campaign_id)
        return people.join(
            connection,
            found.campaign_id,
            participant,
            site.policy(campaign),
            campaign.settings.dedicated,
            site.now,
            details,
            site.options.session_seconds,
        )

    session = await site.store.awrite(exchange)
    if session is None:
        raise Problem(401, "unknown", GONE)
    return session


@router.post("/session")
async def start_session(request: Request, response: Response, login: Login) -> dict[str, str]:
    """Exchange the owner's one-time token for a session cookie."""
    with limited(request) as site:
        session = await login_owner(site, login.token)
    auth.remember(response, site, auth.OWNER_COOKIE, session)
    return {"csrf": auth.csrf_of(session)}


@router.delete("/session")
async def end_session(request: Request, response: Response, owner: OwnerNeeded) -> dict[str, bool]:
    """Log out; the session stops working everywhere."""
    site = site_of(request)
    mine = owner.token_hash
    await site.store.awrite(lambda c: tokens.revoke_owner_tokens(c, site.now, mine))
    auth.forget(response, auth.OWNER_COOKIE)
    return {"done": True}


@router.post("/worker/session")
async def start_worker_session(
    request: Request, response: Response, login: Login
) -> dict[str, str]:
    """Exchange a worker's personal token for a session cookie."""
    with limited(request) as site:
        session = await login_worker(site, login.token)
    auth.remember(response, site, auth.WORKER_COOKIE, session)
    return {"csrf": auth.csrf_of(session)}


@router.post("/join")
async def join(request: Request, wish: Join) -> dict[str, str]:
    """Join a campaign by its open link; returns a bearer token for the worker API."""
    details = {"study": wish.study, "session": wish.session}
    address = client_address(request.scope)
    with limited(request) as site:
        token = await join_campaign(site, address, wish.token, wish.participant, details)
    return {"token": token}


@router.post("/login-link")
async def login_link(request: Request, owner: OwnerNeeded) -> dict[str, str]:
    """Make a link that logs the owner in on another device: once, within some minutes."""
    del owner
    site = site_of(request)

    def make(connection: Connection) -> str:
        note(connection, site.now, "login link", None)
        return tokens.issue(connection, "once", site.now, name="link", seconds=LINK_SECONDS)

    return {"link": f"/login?token={await site.store.awrite(make)}"}


@router.get("/tokens")
async def list_tokens(request: Request, owner: OwnerNeeded) -> list[dict[str, Any]]:
    """List the owner's tokens and sessions that work now, without their secrets."""
    site = site_of(request)
    mine = owner.token_hash[: tokens.ID_LENGTH]
    rows = await site.store.aread(lambda c: tokens.listed(c, site.now))
    return [{**row, "this": row["id"] == mine} for row in rows]


@router.post("/tokens")
async def make_token(request: Request, wish: Named, owner: OwnerNeeded) -> dict[str, str]:
    """Make an owner token for scripts; it is shown this once."""
    del owner
    site = site_of(request)
    token = await site.store.awrite(lambda c: tokens.issue(c, "owner", site.now, name=wish.name))
    return {"token": token, "id": tokens.hashed(token)[: tokens.ID_LENGTH]}


@router.delete("/tokens/{token_id}")
async def end_token(request: Request, token_id: str, owner: OwnerNeeded) -> dict[str, int]:
    """Revoke an owner token by its id."""
    del owner
    site = site_of(request)
    if len(token_id) != tokens.ID_LENGTH or not token_id.isalnum():
        raise Problem(404, "missing", "There is no such token.")
    count = await site.store.awrite(lambda c: tokens.revoke_owner_tokens(c, site.now, token_id))
    if not count:
        raise Problem(404, "missing", "There is no such token.")
    return {"revoked": count}
