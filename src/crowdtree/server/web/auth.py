"""Authentication of owners, workers and auditors, by bearer token or by cookie.

A cookie alone does not authorise a change: the request must also carry the session's CSRF token, in
the header ``X-CSRF-Token`` (scripts) or the field ``csrf`` (forms), and must not come from another
site. Bearer tokens need none of that, because browsers do not send them on their own.

Cookies are sent along when somebody follows a link from a mail or another site (SameSite=Lax), so
that the link leads where it points. That reads a page, which changes nothing; whatever else
another site makes a browser load with the owner's cookie is refused.

What an owner may do is in :mod:`crowdtree.server.web.roles`; :func:`owner_needed` looks there.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response

from crowdtree.server.store import tokens
from crowdtree.server.store.db.activity import ORIGIN, Origin
from crowdtree.server.store.owner import owners
from crowdtree.server.store.tokens import OwnerRole
from crowdtree.server.web.errors import HttpError
from crowdtree.server.web.limits import client_address
from crowdtree.server.web.requests import state_of
from crowdtree.server.web.roles import SAFE, refused
from crowdtree.server.web.services import sessions
from crowdtree.server.web.services.sessions import LoginRole
from crowdtree.server.web.state import AppState

OWNER_COOKIE = "crowdtree_owner"
WORKER_COOKIE = "crowdtree_worker"
AUDITOR_COOKIE = "crowdtree_auditor"
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
FOUND = "crowdtree.credential"
"""Where a request keeps the owner's credential that was found."""
LOGIN = "Log in as the owner first."


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
    found = request.cookies.get(cookie)
    return (found[:MAX_TOKEN] if found else None), True


def check_csrf(request: Request, token: str, field: str | None = None) -> None:
    """Refuse a request that another site may have sent in the user's name."""
    if request.method in SAFE:
        return
    origin = request.headers.get("origin")
    if origin is not None and not _is_ours(request, origin):
        raise HttpError(403, "csrf.site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HttpError(403, "csrf.site")
    given = request.headers.get("x-csrf-token") or field or ""
    if not secrets.compare_digest(given.encode(), csrf_of(token).encode()):
        raise HttpError(403, "csrf")


def _is_ours(request: Request, origin: str) -> bool:
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


def _embedded_elsewhere(request: Request) -> bool:
    """Whether another site loads something with a cookie, other than by a link that is followed."""
    head = request.headers
    followed = (head.get("sec-fetch-mode"), head.get("sec-fetch-dest")) == FOLLOWED_LINK
    return head.get("sec-fetch-site") in OTHER_SITES and not followed


async def _owner_credential(request: Request, token: str | None) -> tokens.Credential | None:
    """Find the owner's credential of a request, once per request."""
    if token is None:
        return None
    if FOUND not in request.scope:
        request.scope[FOUND] = await sessions.find_credential(state_of(request), token)
    found: tokens.Credential | None = request.scope[FOUND]
    return found if found is not None and found.role == "owner" else None


async def known_owner(request: Request) -> None:
    """Refuse whoever is not an owner of the role that the route takes.

    The CSRF token may be in the body and is checked later.
    """
    token, _ = token_from(request, OWNER_COOKIE)
    found = await _owner_credential(request, token)
    if found is None:
        raise HttpError(401, "login", LOGIN)
    path = str(getattr(request.scope.get("route"), "path", ""))
    problem = refused(found.owner_role, found.read_only, request.method, path)
    if problem is not None:
        raise HttpError(403, "role", problem)
    ORIGIN.set(Origin(found.owner, client_address(request.scope)))


async def known_auditor(request: Request) -> None:
    """Refuse whoever is not an auditor."""
    await auditor_hash(request)
    token, _ = token_from(request, AUDITOR_COOKIE)
    found = await sessions.find_credential(state_of(request), token or "")
    if found is None or found.role != "auditor":
        raise HttpError(401, "unknown.none")


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
            form = await request.form()
            field = str(form.get("csrf", ""))
        check_csrf(request, token, field)
    role: OwnerRole = "viewer" if found.read_only else found.owner_role
    return Owner(found.token_hash, csrf_of(token), found.owner_id, found.owner, role)


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "")
    return kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data"))


async def owner_needed(request: Request) -> Owner:
    """Find the owner behind a request, or refuse; also one whose role does not suffice."""
    owner = await owner_or_none(request)
    if owner is None:
        raise HttpError(401, "login", LOGIN)
    await known_owner(request)
    return owner


async def worker_hash(request: Request) -> str:
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


OWNER_ONLY = [Depends(owner_needed)]
"""Dependencies of routers and routes that only the owner may use."""
OwnerNeeded = Annotated[Owner, Depends(owner_needed)]
WorkerHash = Annotated[str, Depends(worker_hash)]
AuditorHash = Annotated[str, Depends(auditor_hash)]


async def log_in(request: Request, response: Response, token: str, role: LoginRole) -> str:
    """Exchange a token of a link for a session, and set its cookie."""
    state = state_of(request)
    session = await sessions.log_in(state, client_address(request.scope), token, role)
    remember(response, state, COOKIES[role], session)
    return session


def remember(response: Response, state: AppState, cookie: str, token: str) -> None:
    """Set a session cookie."""
    response.set_cookie(
        cookie,
        token,
        max_age=int(state.options.session_seconds),
        httponly=True,
        samesite="lax",  # strict would show the login page to whoever follows a link
        secure=state.options.secure_cookies,
        path="/",
    )


def forget(response: Response, cookie: str) -> None:
    """Remove a session cookie."""
    response.delete_cookie(cookie, path="/", httponly=True)
