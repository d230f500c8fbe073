"""Who asks: owners, workers and auditors, by bearer token or by the cookie of a session.

A cookie alone does not authorise a change: the request must also carry the session's CSRF token, in
the header ``X-CSRF-Token`` (scripts) or the field ``csrf`` (forms), and must not come from another
site. Bearer tokens need none of that, because browsers do not send them on their own.

Cookies are sent along when somebody follows a link from a mail or another site (SameSite=Lax), so
that the link leads where it points. That reads a page, which changes nothing; whatever else
another site makes a browser load with the owner's cookie is refused.

What an owner may do is declared with each route (:class:`crowdtree.server.web.routing.Routes`).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from sqlalchemy.engine import Connection

from crowdtree.server.store import Refused, tokens
from crowdtree.server.store.db.activity import ORIGIN, Origin, note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import owners, people
from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.store.tokens import OwnerRole
from crowdtree.server.web.errors import SAFE, HttpError
from crowdtree.server.web.middleware import client_address
from crowdtree.server.web.rate_limit import network
from crowdtree.server.web.state import AppState, state_of

OWNER_COOKIE = "crowdtree_owner"
WORKER_COOKIE = "crowdtree_worker"
AUDITOR_COOKIE = "crowdtree_auditor"
LoginRole = Literal["once", "worker", "auditor"]
"""What a login link belongs to: an owner, once, a worker, or an auditor."""
COOKIES: dict[LoginRole, str] = {
    "once": OWNER_COOKIE,
    "worker": WORKER_COOKIE,
    "auditor": AUDITOR_COOKIE,
}
OTHER_SITES = ("cross-site", "same-site")
FOLLOWED_LINK = ("navigate", "document")
"""What a browser says about a page that it opens, not a part of one or a frame."""
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_TOKEN = 200
CREDENTIAL = "crowdtree.credential"
"""Where a request keeps the owner's credential."""
LOGIN = "Log in as the owner first."
USED = "This link was already used or is not valid. Get a new one."

# --------------------------------------------------------------------- tokens and CSRF


def csrf_of(token: str) -> str:
    """Derive the CSRF token of a session, which only the holder of the session can know.

    >>> len(csrf_of("session"))
    64
    """
    return hashlib.sha256(b"csrf:" + token.encode("utf-8", "surrogatepass")).hexdigest()


def bearer(header: str) -> str | None:
    """Read the bearer token of a header ``Authorization``.

    >>> bearer("Bearer abc"), bearer("Basic abc")
    ('abc', None)
    """
    scheme, _, token = header.partition(" ")
    return token.strip()[:MAX_TOKEN] if scheme.lower() == "bearer" and token.strip() else None


def token_from(request: Request, cookie: str) -> tuple[str | None, bool]:
    """Read the token and whether it came in a cookie."""
    token = bearer(request.headers.get("authorization", ""))
    if token is not None:
        return token, False
    value = request.cookies.get(cookie)
    return (value[:MAX_TOKEN] if value else None), True


def check_csrf(request: Request, token: str, field: str | None = None) -> None:
    """Refuse a request that another site may have sent in the user's name."""
    if request.method in SAFE:
        return
    origin = request.headers.get("origin")
    if origin is not None and not _is_own(request, origin):
        raise HttpError(403, "csrf.site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HttpError(403, "csrf.site")
    given = request.headers.get("x-csrf-token") or field or ""
    if not secrets.compare_digest(given.encode(), csrf_of(token).encode()):
        raise HttpError(403, "csrf")


def _is_own(request: Request, origin: str) -> bool:
    """Whether a page of this server sends a request: by the Host, or by the public address.

    A proxy may replace the Host; then only the public address is what the browser sees.
    """
    host = request.headers.get("host")
    if host and urlsplit(origin).netloc == host:
        return True
    public = state_of(request).options.url
    return bool(public) and _origin(origin) == _origin(public)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of an address.

    >>> _origin("https://Label.example:443") == _origin("https://label.example")
    True
    """
    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:  # no number
        port = None
    return parts.scheme, parts.hostname, port


# ------------------------------------------------------------------------------ owners


class Owner(NamedTuple):
    """An owner who is logged in; the id is none for whoever runs the server."""

    token_hash: str
    csrf: str
    id: int | None
    name: str
    role: OwnerRole

    def may(self, least: OwnerRole) -> bool:
        """Whether the owner may do what takes at least a role."""
        return owners.may(self.role, least)


async def find_credential(state: AppState, token: str) -> tokens.Credential | None:
    """Find the role and owner of a token."""
    return await state.store.aread(lambda c: tokens.find(c, token, state.now))


async def _owner_credential(request: Request, token: str | None) -> tokens.Credential | None:
    """Find the owner's credential of a request, once per request."""
    if token is None:
        return None
    if CREDENTIAL not in request.scope:
        request.scope[CREDENTIAL] = await find_credential(state_of(request), token)
    found: tokens.Credential | None = request.scope[CREDENTIAL]
    return found if found is not None and found.role == "owner" else None


def why_refused(
    role: OwnerRole, read_only: bool, method: str, least: OwnerRole = "admin"
) -> str | None:
    """Why somebody may not use a route; none if they may. A read-only token reads like a viewer.

    >>> why_refused("editor", False, "POST", "editor")
    >>> why_refused("viewer", False, "POST", "editor")
    'This takes the role editor; yours is viewer. Ask an admin of this server.'
    >>> why_refused("admin", True, "DELETE", "viewer")
    'This token only reads. Use one that is not read-only.'
    """
    if read_only and (method not in SAFE or least != "viewer"):
        return "This token only reads. Use one that is not read-only."
    if owners.may(role, least):
        return None
    return f"This takes the role {least}; yours is {role}. Ask an admin of this server."


async def known_owner(request: Request) -> None:
    """Refuse whoever is not an owner of the role that the route takes.

    The CSRF token may be in the body and is checked later.
    """
    token, _ = token_from(request, OWNER_COOKIE)
    found = await _owner_credential(request, token)
    if found is None:
        raise HttpError(401, "login", LOGIN)
    least: OwnerRole = getattr(request.scope.get("route"), "role", None) or "admin"
    problem = why_refused(found.owner_role, found.read_only, request.method, least)
    if problem is not None:
        raise HttpError(403, "role", problem)
    ORIGIN.set(Origin(found.owner, client_address(request.scope)))


async def owner_or_none(request: Request) -> Owner | None:
    """Find the owner behind a request, if there is one."""
    token, by_cookie = token_from(request, OWNER_COOKIE)
    if by_cookie and request.method in SAFE and _embedded_elsewhere(request):
        return None
    found = await _owner_credential(request, token)
    if token is None or found is None:
        return None
    if by_cookie:
        field = None
        if request.method not in SAFE and _is_form(request):
            field = str((await request.form()).get("csrf", ""))
        check_csrf(request, token, field)
    role: OwnerRole = "viewer" if found.read_only else found.owner_role
    return Owner(found.token_hash, csrf_of(token), found.owner_id, found.owner, role)


def _embedded_elsewhere(request: Request) -> bool:
    """Whether another site loads something with a cookie, other than by a link that is followed."""
    head = request.headers
    followed = (head.get("sec-fetch-mode"), head.get("sec-fetch-dest")) == FOLLOWED_LINK
    return head.get("sec-fetch-site") in OTHER_SITES and not followed


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "")
    return kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data"))


async def owner_needed(request: Request) -> Owner:
    """Find the owner behind a request, or refuse; also one whose role does not suffice."""
    owner = await owner_or_none(request)
    if owner is None:
        raise HttpError(401, "login", LOGIN)
    await known_owner(request)
    request.state.owner = owner
    return owner


OwnerNeeded = Annotated[Owner, Depends(owner_needed)]

# --------------------------------------------------------------- workers and auditors


def worker_hash(request: Request) -> str:
    """Read and hash the worker's token; the store checks it later."""
    return _hash(request, WORKER_COOKIE)


async def auditor_hash(request: Request) -> str:
    """Read and hash the auditor's token; the store checks it later."""
    return _hash(request, AUDITOR_COOKIE)


def _hash(request: Request, cookie: str) -> str:
    token, by_cookie = token_from(request, cookie)
    if token is None:
        raise HttpError(401, "unknown.none")
    if by_cookie:
        check_csrf(request, token)
    return tokens.hashed(token)


async def known_auditor(request: Request) -> None:
    """Refuse whoever is not an auditor."""
    await auditor_hash(request)
    token, _ = token_from(request, AUDITOR_COOKIE)
    found = await find_credential(state_of(request), token or "")
    if found is None or found.role != "auditor":
        raise HttpError(401, "unknown.none")


async def works_for(
    state: AppState, session: str, campaign_id: int, role: tokens.Role = "worker"
) -> bool:
    """Whether the session of a worker (or of another role) belongs to a campaign."""
    found = await find_credential(state, session)
    return found is not None and (found.role, found.campaign_id) == (role, campaign_id)


async def _worker(request: Request) -> str:
    return worker_hash(request)


WorkerHash = Annotated[str, Depends(_worker)]
AuditorHash = Annotated[str, Depends(auditor_hash)]

# ---------------------------------------------------------------------------- sessions


def remember(response: Response, state: AppState, cookie: str, value: str) -> None:
    """Set a cookie for as long as a session lasts."""
    response.set_cookie(
        cookie,
        value,
        max_age=int(state.options.session_seconds),
        httponly=True,
        samesite="lax",  # strict would show the login page to whoever follows a link
        secure=state.options.secure_cookies,
        path="/",
    )


def forget(response: Response, cookie: str) -> None:
    """Remove a session cookie."""
    response.delete_cookie(cookie, path="/", httponly=True)


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


async def _known(state: AppState, token: str, role: tokens.Role) -> tokens.Credential:
    """Find the role and owner of a token, or refuse; a guessed token writes nothing."""
    found = await find_credential(state, token)
    if found is None or found.role != role:
        raise Refused("login", USED) if role == "once" else Refused("unknown")
    return found


async def log_in(request: Request, response: Response, token: str, role: LoginRole) -> str:
    """Exchange the token of a link for a session, and set its cookie.

    The session of an auditor is the link itself, so that to revoke it ends everything.
    """
    state, address = state_of(request), client_address(request.scope)
    with _limited(state, address):
        found = await _known(state, token, role)
        if role == "once":
            ORIGIN.set(Origin(found.owner, address))
        session = token
        if role != "auditor":
            session = await state.store.awrite(lambda c: _exchange(c, state, token, found))
    remember(response, state, COOKIES[role], session)
    return session


def _exchange(connection: Connection, state: AppState, token: str, found: tokens.Credential) -> str:
    seconds, now = state.options.session_seconds, state.now
    if found.role == "worker":
        return tokens.issue(
            connection,
            "worker",
            now,
            campaign_id=found.campaign_id,
            worker_id=found.worker_id,
            seconds=seconds,
        )
    if not tokens.take_once(connection, token, now):
        raise Refused("login", USED)
    note(connection, now, "login", None)
    owner = found.owner_id
    return tokens.issue(connection, "owner", now, owner_id=owner, name="session", seconds=seconds)


async def find_join_link(state: AppState, address: str, token: str) -> tuple[int, str]:
    """The campaign of a join token, and the query parameter that holds the participant's id."""
    with _limited(state, address):
        campaign_id = (await _known(state, token, "join")).campaign_id
    if campaign_id is None:
        raise Refused("unknown")
    campaign = await state.store.aread(lambda c: get_campaign(c, campaign_id))
    return campaign_id, campaign.settings.people.participant_parameter


async def join_campaign(state: AppState, address: str, token: str, visitor: Visitor) -> str:
    """Become a worker by the open join link; returns a worker session."""
    with _limited(state, address):
        await _known(state, token, "join")
    if not state.join_limit.allows(address):
        raise Refused("slow.joining")
    visitor = replace(visitor, network=network(address))

    def exchange(connection: Connection) -> str:
        found = tokens.find(connection, token, state.now)
        if found is None or found.role != "join" or found.campaign_id is None:
            raise Refused("unknown")
        campaign = get_campaign(connection, found.campaign_id, lock=True)
        policy, seconds = state.policy(campaign), state.options.session_seconds
        return people.join(connection, campaign, policy, visitor, state.now, seconds)

    return await state.store.awrite(exchange)
