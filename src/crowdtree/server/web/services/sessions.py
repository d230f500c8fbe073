"""Log in, join, and manage tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from sqlalchemy.engine import Connection

from crowdtree.server.store import Refused, tokens
from crowdtree.server.store.db.activity import ORIGIN, Origin, note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import people
from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.web.rate_limit import network
from crowdtree.server.web.state import AppState

LoginRole = Literal["once", "worker", "auditor"]
"""What a login link belongs to: an owner, once, a worker, or an auditor."""
USED = "This link was already used or is not valid. Get a new one."


class OwnedToken(tokens.OwnerToken):
    """A token or session of an owner; `this` marks the one that asked."""

    this: bool


@contextmanager
def _limited(state: AppState, address: str) -> Iterator[None]:
    """Refuse addresses with too many failed logins; only failures count."""
    if not state.login_limit.allows(address):
        raise Refused("slow.attempts")
    failed = False
    try:
        yield
    except Refused as error:
        failed = error.code in ("login", "unknown")
        raise
    finally:
        if not failed:
            state.login_limit.refund(address)


async def find_credential(state: AppState, token: str) -> tokens.Credential | None:
    """Find the role and owner of a token."""
    return await state.store.aread(lambda c: tokens.find(c, token, state.now))


async def _known(state: AppState, token: str, role: tokens.Role) -> tokens.Credential:
    """Find the role and owner of a token, or refuse; a guessed token writes nothing."""
    found = await find_credential(state, token)
    if found is None or found.role != role:
        raise Refused("login", USED) if role == "once" else Refused("unknown")
    return found


async def log_in(state: AppState, address: str, token: str, role: LoginRole) -> str:
    """Exchange the owner's one-time token or a personal one for a session.

    The session of an auditor is the link itself, so that to revoke it ends everything.
    """
    with _limited(state, address):
        if role == "auditor":
            await _known(state, token, "auditor")
            return token
        if role == "once":
            return await _log_in_owner(state, address, token)
        return await _log_in_worker(state, token)


async def _log_in_owner(state: AppState, address: str, token: str) -> str:
    found = await _known(state, token, "once")
    ORIGIN.set(Origin(found.owner, address))

    def exchange(connection: Connection) -> str | None:
        if not tokens.take_once(connection, token, state.now):
            return None
        note(connection, state.now, "login", None)
        seconds = state.options.session_seconds
        who, now = found.owner_id, state.now
        return tokens.issue(connection, "owner", now, owner_id=who, name="session", seconds=seconds)

    session = await state.store.awrite(exchange)
    if session is None:
        raise Refused("login", USED)
    return session


async def _log_in_worker(state: AppState, token: str) -> str:
    found = await _known(state, token, "worker")
    return await state.store.awrite(
        lambda c: tokens.issue(
            c,
            "worker",
            state.now,
            campaign_id=found.campaign_id,
            worker_id=found.worker_id,
            seconds=state.options.session_seconds,
        )
    )


async def find_join_link(state: AppState, address: str, token: str) -> tuple[int, str]:
    """The campaign of a join token, and the query parameter that holds the participant's id."""
    with _limited(state, address):
        number = (await _known(state, token, "join")).campaign_id
    if number is None:
        raise Refused("unknown")
    campaign = await state.store.aread(lambda c: get_campaign(c, number))
    return number, campaign.settings.people.participant_parameter


async def works_for(
    state: AppState, session: str, number: int, role: tokens.Role = "worker"
) -> bool:
    """Whether the session of a worker (or of another role) belongs to a campaign."""
    found = await find_credential(state, session)
    return found is not None and (found.role, found.campaign_id) == (role, number)


async def is_participant(
    state: AppState, session: str, number: int, participant: str | None
) -> bool:
    """Whether a session is that of this participant already, or of any worker without an id."""
    return await state.store.aread(
        lambda c: people.is_participant(c, session, number, participant, state.now)
    )


async def join_campaign(state: AppState, address: str, token: str, visitor: Visitor) -> str:
    """Become a worker by the open join link; returns a worker session."""
    with _limited(state, address):
        await _known(state, token, "join")
    if not state.join_limit.allows(address):
        raise Refused("slow.joining")
    visitor = replace(visitor, network=network(address))

    def exchange(connection: Connection) -> str | None:
        found = tokens.find(connection, token, state.now)
        if found is None or found.role != "join" or found.campaign_id is None:
            return None
        campaign = get_campaign(connection, found.campaign_id, lock=True)
        policy, seconds = state.policy(campaign), state.options.session_seconds
        return people.join(connection, campaign, policy, visitor, state.now, seconds)

    session = await state.store.awrite(exchange)
    if session is None:
        raise Refused("unknown")
    return session


async def list_tokens(state: AppState, owner: int | None, token_hash: str) -> list[OwnedToken]:
    """List an owner's valid tokens and sessions, without their secrets."""
    this = token_hash[: tokens.ID_LENGTH]
    rows = await state.store.aread(lambda c: tokens.listed(c, state.now, tokens.of_owner(owner)))
    return [{**row, "this": row["id"] == this} for row in rows]
