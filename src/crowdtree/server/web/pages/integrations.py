"""Integrations: webhooks of a campaign, tokens and sessions of the owner."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.store.db.activity import EVENTS
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, render
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.sessions import list_tokens
from crowdtree.server.webhooks.hooks import WebhookReport, reported_hooks

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)


@router.get("/c/{number}/webhooks")
async def webhooks(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the webhooks of a campaign and their last messages."""
    state = state_of(request)

    def look(connection: Connection) -> tuple[Campaign, list[WebhookReport]]:
        return get_campaign(connection, number), reported_hooks(connection, number)

    campaign, rows = await state.store.aread(look)
    return render(
        request,
        "webhooks.html",
        owner=owner,
        campaign=campaign,
        rows=rows,
        now=state.now,
        events=EVENTS,
        private=state.options.private_webhooks,
    )


@router.get("/access")
async def access(request: Request, owner: OwnerNeeded) -> Response:
    """Show the owner's tokens, sessions and unused links."""
    state = state_of(request)
    rows = await list_tokens(state, owner.id, owner.token_hash)
    kinds = {kind: [r for r in rows if r["kind"] == kind] for kind in ("token", "session", "link")}
    base = state.options.url
    return render(request, "access.html", owner=owner, kinds=kinds, now=state.now, base=base)
