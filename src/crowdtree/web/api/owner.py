"""What an owner does: create, start, pause, finish, look, invite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from starlette.responses import StreamingResponse

from crowdtree.store import checked_settings
from crowdtree.store.db.audit import AuditEntry, audited
from crowdtree.store.db.campaign_row import CampaignStatus, get_campaign
from crowdtree.store.db.campaign_row import list_campaigns as campaign_rows
from crowdtree.store.owner import campaigns, people, webhooks
from crowdtree.store.queries.items import item_trace
from crowdtree.store.queries.progress import Progress, progress
from crowdtree.store.queries.workers import WorkerFacts, listed_workers
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.building import Wish
from crowdtree.web.hooks import check_url
from crowdtree.web.site import Site, event_line, site_of

__all__ = ["router"]

router = APIRouter(prefix="/api/campaigns", tags=["owner"])
Number = Annotated[int, Path(ge=1, le=2**53)]
EVENT_SECONDS = 1.0
STATUS_AFTER: dict[str, CampaignStatus] = {
    "start": "running",
    "resume": "running",
    "pause": "paused",
    "finish": "finishing",
}
WORKER_STATUS: dict[str, people.WorkerStatus] = {
    "pause": "paused",
    "resume": "active",
    "block": "blocked",
}


class Created(BaseModel):
    """A campaign to create."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)] = ""
    policy: Wish
    settings: dict[str, Any] = {}


class Invited(BaseModel):
    """A worker to invite."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=200)] = ""


class Hooked(BaseModel):
    """A webhook to add."""

    model_config = ConfigDict(extra="forbid")
    url: Annotated[str, Field(min_length=8, max_length=1000)]


@router.get("")
async def list_campaigns(request: Request, owner: OwnerNeeded) -> list[dict[str, Any]]:
    """List the campaigns."""
    del owner
    return [row.to_dict() for row in await site_of(request).store.aread(campaign_rows)]


@router.post("", status_code=201)
async def create(request: Request, wish: Created, owner: OwnerNeeded) -> dict[str, Any]:
    """Create a campaign from a problem or a plan."""
    del owner
    site = site_of(request)
    settings = checked_settings(wish.settings)
    policy = await site.plans.policy_of(wish.policy)
    number = await site.store.awrite(
        lambda c: campaigns.create(c, wish.name, policy, settings, site.now)
    )
    return {"id": number}


@router.get("/{number}")
async def look(request: Request, number: Number, owner: OwnerNeeded) -> dict[str, Any]:
    """Say how a campaign is going."""
    del owner
    site = site_of(request)
    return dict(await site.store.aread(lambda c: progress(c, number, site.now)))


@router.get("/{number}/definition")
async def definition(request: Request, number: Number, owner: OwnerNeeded) -> dict[str, Any]:
    """Read a campaign's problem, policy and settings."""
    del owner
    return (await site_of(request).store.aread(lambda c: get_campaign(c, number))).to_dict()


@router.patch("/{number}/settings")
async def change(
    request: Request, number: Number, changes: dict[str, Any], owner: OwnerNeeded
) -> dict[str, Any]:
    """Change some settings."""
    del owner
    site = site_of(request)

    def apply(connection: Connection) -> dict[str, Any]:
        policy = site.policy(get_campaign(connection, number))
        return campaigns.change_settings(connection, number, policy, changes, site.now).model_dump()

    return await site.store.awrite(apply)


@router.get("/{number}/events", response_class=StreamingResponse)
async def events(request: Request, number: Number, owner: OwnerNeeded) -> StreamingResponse:
    """Stream the progress as server-sent events, at most one a second."""
    del owner
    site = site_of(request)
    await site.store.aread(lambda c: get_campaign(c, number))
    return StreamingResponse(_stream(request, site, number), media_type="text/event-stream")


async def _stream(request: Request, site: Site, number: int) -> AsyncIterator[str]:
    changed = asyncio.Event()
    watchers = site.waiters.changes[number]
    watchers.add(changed)
    try:
        while not (site.stopping or await request.is_disconnected()):
            changed.clear()
            yield event_line(
                "progress", await site.store.aread(lambda c: progress(c, number, site.now))
            )
            await asyncio.sleep(EVENT_SECONDS)
            try:
                await asyncio.wait_for(changed.wait(), 10)
            except TimeoutError:
                continue
    finally:
        watchers.discard(changed)


@router.get("/{number}/workers")
async def list_workers(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> list[dict[str, Any]]:
    """List workers with their record and reliability, up to 1000 after a worker's id."""
    del owner
    site = site_of(request)

    def read(connection: Connection) -> list[WorkerFacts]:
        problem = site.policy(get_campaign(connection, number)).problem
        return listed_workers(connection, number, problem, after)

    return [dict(row) for row in await site.store.aread(read)]


@router.post("/{number}/workers/invite", status_code=201)
async def invite(
    request: Request, number: Number, wish: Invited, owner: OwnerNeeded
) -> dict[str, Any]:
    """Invite a worker: a personal token and link, shown this once."""
    del owner
    site = site_of(request)

    def apply(connection: Connection) -> tuple[int, str]:
        campaign = get_campaign(connection, number)
        dedicated = campaign.settings.dedicated
        policy = site.policy(campaign)
        return people.invite(connection, number, wish.name, policy, dedicated, site.now)

    worker, token = await site.store.awrite(apply)
    return {"id": worker, "token": token, "link": f"/w/{token}"}


@router.post("/{number}/workers/{worker}/{verb}")
async def change_worker(
    request: Request,
    number: Number,
    worker: Annotated[int, Path(ge=1, le=2**53)],
    verb: Literal["pause", "resume", "block", "link"],
    owner: OwnerNeeded,
) -> dict[str, Any]:
    """Pause, resume or block a worker, or make a new personal link."""
    del owner
    site = site_of(request)
    if verb == "link":
        token = await site.store.awrite(lambda c: people.new_link(c, number, worker, site.now))
        return {"id": worker, "token": token, "link": f"/w/{token}"}
    status = WORKER_STATUS[verb]
    await site.store.awrite(lambda c: people.set_worker_status(c, number, worker, status, site.now))
    return {"id": worker, "status": status}


@router.post("/{number}/join-link", status_code=201)
async def join_link(request: Request, number: Number, owner: OwnerNeeded) -> dict[str, str]:
    """Make the open join link; the one before stops working."""
    del owner
    site = site_of(request)

    def apply(connection: Connection) -> str:
        get_campaign(connection, number)
        return people.join_link(connection, number, site.now)

    token = await site.store.awrite(apply)
    return {"token": token, "link": f"/join/{token}"}


@router.get("/{number}/items/{item}")
async def trace(
    request: Request,
    number: Number,
    item: Annotated[int, Path(ge=1, le=2**53)],
    owner: OwnerNeeded,
) -> dict[str, Any]:
    """Read an item with every answer to it and its label."""
    del owner
    return dict(await site_of(request).store.aread(lambda c: item_trace(c, number, item)))


@router.get("/{number}/webhooks")
async def list_webhooks(
    request: Request, number: Number, owner: OwnerNeeded
) -> list[dict[str, Any]]:
    """List the webhooks, without their secrets."""
    del owner
    store = site_of(request).store
    return [dict(row) for row in await store.aread(lambda c: webhooks.listed_hooks(c, number))]


@router.post("/{number}/webhooks", status_code=201)
async def add_webhook(
    request: Request, number: Number, wish: Hooked, owner: OwnerNeeded
) -> dict[str, Any]:
    """Add a webhook for labelled items and the end; the secret is shown this once."""
    del owner
    site = site_of(request)
    url = check_url(wish.url, site.options.private_webhooks)
    return dict(await site.store.awrite(lambda c: webhooks.add_hook(c, number, url, site.now)))


@router.get("/{number}/webhooks/{hook}/deliveries")
async def list_deliveries(
    request: Request,
    number: Number,
    hook: Annotated[int, Path(ge=1, le=2**53)],
    owner: OwnerNeeded,
) -> list[dict[str, Any]]:
    """List the last messages of a webhook; `error` is empty for those that arrived."""
    del owner
    store = site_of(request).store
    rows = await store.aread(lambda c: webhooks.hook_deliveries(c, number, hook))
    return [dict(row) for row in rows]


@router.post("/{number}/webhooks/{hook}/retry")
async def retry_webhook(
    request: Request,
    number: Number,
    hook: Annotated[int, Path(ge=1, le=2**53)],
    owner: OwnerNeeded,
) -> dict[str, bool]:
    """Send what is due at once, also where it was given up."""
    del owner
    site = site_of(request)
    await site.store.awrite(lambda c: webhooks.retry_hook(c, number, hook, site.now))
    return {"done": True}


@router.delete("/{number}/webhooks/{hook}")
async def remove_webhook(
    request: Request,
    number: Number,
    hook: Annotated[int, Path(ge=1, le=2**53)],
    owner: OwnerNeeded,
) -> dict[str, bool]:
    """Remove a webhook."""
    del owner
    site = site_of(request)
    await site.store.awrite(lambda c: webhooks.remove_hook(c, number, hook, site.now))
    return {"done": True}


@router.get("/{number}/audit")
async def audit(request: Request, number: Number, owner: OwnerNeeded) -> list[dict[str, Any]]:
    """List what the owner and the server did, the last 500."""
    del owner

    def read(connection: Connection) -> list[AuditEntry]:
        get_campaign(connection, number)
        return audited(connection, number)

    return [dict(row) for row in await site_of(request).store.aread(read)]


@router.post("/{number}/{verb}")
async def move(
    request: Request,
    number: Number,
    verb: Literal["start", "pause", "resume", "finish"],
    owner: OwnerNeeded,
) -> dict[str, Any]:
    """Start, pause, resume or finish."""
    del owner
    site = site_of(request)
    status = STATUS_AFTER[verb]

    def apply(connection: Connection) -> Progress:
        if verb == "finish" and get_campaign(connection, number).status == "finished":
            return progress(connection, number, site.now)
        campaigns.set_status(connection, number, status, site.now)
        return progress(connection, number, site.now)

    return dict(await site.store.awrite(apply))
