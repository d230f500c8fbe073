"""The least role for each route of owners: the one table of who may do what.

:func:`crowdtree.server.web.auth.owner_needed` enforces it. A route that is missing here is for
admins only, and a test fails until it has a line. Viewers read, editors change campaigns, admins
manage people and delete data; secrets (keys, addresses of webhooks) are not for viewers.
"""

from __future__ import annotations

from crowdtree.server.store.owner.owners import may
from crowdtree.server.store.tokens import OwnerRole

SAFE = ("GET", "HEAD", "OPTIONS")
ROUTES: dict[str, OwnerRole] = {
    # the owner's own sessions and tokens
    "DELETE /api/session": "viewer",
    "DELETE /api/tokens/{token_id}": "viewer",
    "GET /access": "viewer",
    "GET /api/tokens": "viewer",
    "POST /api/login-link": "viewer",
    "POST /api/tokens": "viewer",
    # reading
    "GET /": "viewer",
    "GET /api/campaigns": "viewer",
    "GET /api/campaigns/{number}": "viewer",
    "GET /api/campaigns/{number}/activity": "viewer",
    "GET /api/campaigns/{number}/answers": "viewer",
    "GET /api/campaigns/{number}/audit": "viewer",
    "GET /api/campaigns/{number}/audit/certificate": "viewer",
    "GET /api/campaigns/{number}/audit/links": "viewer",
    "GET /api/campaigns/{number}/definition": "viewer",
    "GET /api/campaigns/{number}/events": "viewer",
    "GET /api/campaigns/{number}/exclusions": "viewer",
    "GET /api/campaigns/{number}/items": "viewer",
    "GET /api/campaigns/{number}/items/{item}": "viewer",
    "GET /api/campaigns/{number}/labels": "viewer",
    "GET /api/campaigns/{number}/payments": "viewer",
    "GET /api/campaigns/{number}/reports": "viewer",
    "GET /api/campaigns/{number}/revisions": "viewer",
    "GET /api/campaigns/{number}/workers": "viewer",
    "GET /api/campaigns/{number}/workers/export": "viewer",
    "GET /c/{number}": "viewer",
    "GET /c/{number}/activity": "viewer",
    "GET /c/{number}/audit": "viewer",
    "GET /c/{number}/items": "viewer",
    "GET /c/{number}/items/{item}": "viewer",
    "GET /c/{number}/live": "viewer",
    "GET /c/{number}/plan": "viewer",
    "GET /c/{number}/plan/checks": "viewer",
    "GET /c/{number}/plan/tree": "viewer",
    "GET /c/{number}/preview": "viewer",
    "GET /c/{number}/preview/api/worker/state": "viewer",
    "GET /c/{number}/preview/work/training": "viewer",
    "GET /c/{number}/questions": "viewer",
    "GET /c/{number}/reports": "viewer",
    "GET /c/{number}/share": "viewer",
    "GET /c/{number}/texts": "viewer",
    "GET /c/{number}/workers": "viewer",
    "GET /c/{number}/workers/{worker}": "viewer",
    "GET /metrics": "viewer",
    "POST /c/{number}/plan/ready": "viewer",  # works out what the page of the plan shows
    # previews change nothing
    "POST /c/{number}/preview/api/worker/answer": "viewer",
    "POST /c/{number}/preview/api/worker/consent": "viewer",
    "POST /c/{number}/preview/api/worker/release": "viewer",
    "POST /c/{number}/preview/api/worker/report": "viewer",
    "POST /c/{number}/preview/api/worker/skip": "viewer",
    "POST /c/{number}/preview/api/worker/training": "viewer",
    "POST /c/{number}/preview/work/next": "viewer",
    # secrets, and what only leads to changes
    "GET /api/campaigns/{number}/prolific/submissions": "editor",
    "GET /api/campaigns/{number}/signing-key": "editor",
    "GET /api/campaigns/{number}/webhooks": "editor",
    "GET /api/campaigns/{number}/webhooks/{hook}/deliveries": "editor",
    "GET /c/{number}/prolific": "editor",
    "GET /c/{number}/webhooks": "editor",
    "GET /new": "editor",
    # changing campaigns
    "DELETE /api/campaigns/{number}/audit/links/{token_id}": "editor",
    "DELETE /api/campaigns/{number}/webhooks/{hook}": "editor",
    "PATCH /api/campaigns/{number}/items/{item}": "editor",
    "PATCH /api/campaigns/{number}/settings": "editor",
    "POST /api/campaigns": "editor",
    "POST /api/campaigns/{number}/audit": "editor",
    "POST /api/campaigns/{number}/audit/calibrate": "editor",
    "POST /api/campaigns/{number}/audit/links": "editor",
    "POST /api/campaigns/{number}/correct": "editor",
    "POST /api/campaigns/{number}/duplicate": "editor",
    "POST /api/campaigns/{number}/exclude": "editor",
    "POST /api/campaigns/{number}/include": "editor",
    "POST /api/campaigns/{number}/items": "editor",
    "POST /api/campaigns/{number}/join-link": "editor",
    "POST /api/campaigns/{number}/media": "editor",
    "POST /api/campaigns/{number}/prolific/approve": "editor",
    "POST /api/campaigns/{number}/prolific/bonus": "editor",
    "POST /api/campaigns/{number}/prolific/create": "editor",
    "POST /api/campaigns/{number}/prolific/reject": "editor",
    "POST /api/campaigns/{number}/prolific/{move}": "editor",
    "POST /api/campaigns/{number}/reopen": "editor",
    "POST /api/campaigns/{number}/revise": "editor",
    "POST /api/campaigns/{number}/reword": "editor",
    "POST /api/campaigns/{number}/webhooks": "editor",
    "POST /api/campaigns/{number}/webhooks/{hook}/retry": "editor",
    "POST /api/campaigns/{number}/workers/invite": "editor",
    "POST /api/campaigns/{number}/withdraw": "editor",
    "POST /api/campaigns/{number}/workers/{worker}/{verb}": "editor",
    "POST /api/campaigns/{number}/{verb}": "editor",
    "POST /c/{number}/audit": "editor",
    "POST /c/{number}/discard": "editor",
    "POST /c/{number}/duplicate": "editor",
    "POST /c/{number}/items": "editor",
    "POST /c/{number}/items/{item}/edit": "editor",
    "POST /c/{number}/items/{item}/label": "editor",
    "POST /c/{number}/plan": "editor",
    "POST /c/{number}/questions": "editor",
    "POST /c/{number}/reopen": "editor",
    "POST /c/{number}/share": "editor",
    "POST /c/{number}/texts": "editor",
    "POST /c/{number}/withdraw": "editor",
    "POST /new": "editor",
    "POST /preview": "editor",
    # people, and what cannot be undone
    "DELETE /api/people/{person}": "admin",
    "GET /activity": "admin",
    "GET /api/activity": "admin",
    "GET /api/people": "admin",
    "GET /people": "admin",
    "PATCH /api/people/{person}": "admin",
    "POST /api/campaigns/{number}/delete": "admin",
    "POST /api/campaigns/{number}/workers/{worker}/erase": "admin",
    "POST /api/people": "admin",
    "POST /api/people/{person}/link": "admin",
}


def least_role(method: str, path: str) -> OwnerRole:
    """The least role that may use a route.

    >>> least_role("GET", "/api/campaigns"), least_role("POST", "/api/campaigns")
    ('viewer', 'editor')
    >>> least_role("POST", "/a/route/without/a/line")
    'admin'
    """
    return ROUTES.get(f"{method} {path}", "admin")


def refused(role: OwnerRole, read_only: bool, method: str, path: str) -> str | None:
    """Why somebody may not use a route; none if they may. A read-only token reads like a viewer.

    >>> refused("editor", False, "POST", "/api/campaigns")
    >>> refused("viewer", False, "POST", "/api/campaigns")
    'This takes the role editor; yours is viewer. Ask an admin of this server.'
    >>> refused("admin", True, "DELETE", "/api/session")
    'This token only reads. Use one that is not read-only.'
    """
    least = least_role(method, path)
    if read_only and (method not in SAFE or least != "viewer"):
        return "This token only reads. Use one that is not read-only."
    if may(role, least):
        return None
    return f"This takes the role {least}; yours is {role}. Ask an admin of this server."
