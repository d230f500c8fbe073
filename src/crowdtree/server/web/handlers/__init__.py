"""What the server does when it is asked, one module per subject: its API and its pages."""

from __future__ import annotations

from crowdtree.server.store.tokens import OwnerRole
from crowdtree.server.web.handlers import (
    audits,
    campaigns,
    corrections,
    dashboard,
    drafts,
    exports,
    items,
    media,
    owners,
    prolific,
    sessions,
    settings,
    system,
    texts,
    webhooks,
    work,
    work_pages,
    workers,
)
from crowdtree.server.web.routing import Route, Routes, WorkerRoute

MODULES = (
    *(work, sessions, owners, exports, media, audits, corrections, prolific, webhooks, workers),
    *(items, campaigns, system, work_pages, drafts, settings, texts, dashboard),
)


def all_routes() -> list[Route | WorkerRoute]:
    """List the routes of the API and of the pages; of two that match, the first one counts."""
    return [
        route
        for module in MODULES
        for table in vars(module).values()
        if isinstance(table, Routes)
        for route in table.routes
    ]


def owner_roles() -> dict[str, OwnerRole]:
    """The least role of owners for each of their routes.

    >>> owner_roles()["GET /api/campaigns"], owner_roles()["POST /api/campaigns"]
    ('viewer', 'editor')
    """
    return {
        f"{method} {route.path}": route.role
        for route in all_routes()
        for method in route.methods or ()
        if route.role is not None
    }
