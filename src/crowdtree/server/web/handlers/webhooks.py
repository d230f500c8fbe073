"""Webhooks of a campaign: messages about labels and the end to programs of owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from crowdtree.server.store.db.activity import EVENTS
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, State, Write
from crowdtree.server.webhooks import hooks
from crowdtree.server.webhooks.delivery import check_address

routes = Routes("owner")
BASE = "/api/campaigns/{campaign_id}/webhooks"


class HookRequest(Body):
    """A webhook to add."""

    url: Annotated[str, Field(min_length=8, max_length=1000)]


@routes.api(f"GET {BASE}", "editor")
def list_webhooks(tx: Read, campaign_id: Id) -> Sequence[Reply]:
    """List the webhooks, without their secrets."""
    return hooks.listed_hooks(tx.connection, campaign_id)


@routes.api(f"POST {BASE}", "editor", status_code=201)
async def add_webhook(state: State, campaign_id: Id, given: HookRequest) -> Reply:
    """Add a webhook for labelled items and the end; the secret is shown only once."""
    url = await check_address(given.url, state.options.private_webhooks)
    seal = state.secret_key.seal
    return await state.store.awrite(lambda c: hooks.add_hook(c, campaign_id, url, state.now, seal))


@routes.api(f"GET {BASE}/{{hook}}/deliveries", "editor")
def list_deliveries(tx: Read, campaign_id: Id, hook: Id) -> Sequence[Reply]:
    """List the last messages of a webhook; `error` says why the last attempt failed."""
    return hooks.hook_deliveries(tx.connection, campaign_id, hook)


@routes.api(f"POST {BASE}/{{hook}}/retry", "editor")
def retry_webhook(tx: Write, campaign_id: Id, hook: Id) -> dict[str, bool]:
    """Send pending messages now, also after the webhook was given up."""
    hooks.retry_hook(tx.connection, campaign_id, hook, tx.now)
    return {"done": True}


@routes.api(f"DELETE {BASE}/{{hook}}", "editor")
def remove_webhook(tx: Write, campaign_id: Id, hook: Id) -> dict[str, bool]:
    """Remove a webhook."""
    hooks.remove_hook(tx.connection, campaign_id, hook, tx.now)
    return {"done": True}


@routes.page("GET /c/{campaign_id}/webhooks", "editor", "webhooks.html")
def page(tx: Read, campaign_id: Id) -> Reply:
    """Show the webhooks of a campaign and their last messages."""
    return {
        "campaign": tx.campaign(campaign_id),
        "rows": hooks.reported_hooks(tx.connection, campaign_id),
        "now": tx.now,
        "events": EVENTS,
        "private": tx.state.options.private_webhooks,
    }
