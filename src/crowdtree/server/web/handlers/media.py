"""Uploaded pictures, sounds and videos, which only the owner, workers and auditors can load.

The file extension decides the type, from a short list without anything that a browser would
execute (no SVG, no HTML); the response headers forbid sniffing and scripts as well.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Path as InPath
from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, RedirectResponse, Response

from crowdtree.io.private import open_private
from crowdtree.server.media import MediaFiles, file_of, find
from crowdtree.server.store import NotFound
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.tokens import Role
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import (
    AUDITOR_COOKIE,
    WORKER_COOKIE,
    owner_or_none,
    token_from,
    works_for,
)
from crowdtree.server.web.errors import HttpError
from crowdtree.server.web.routing import Id, Routes
from crowdtree.server.web.services.items import MEDIA_TYPES
from crowdtree.server.web.state import AppState, state_of

routes = Routes("media")
PLAIN = r"^[\w-][\w. -]{0,198}\.[A-Za-z0-9]{2,4}$"
HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "private, max-age=3600",
}


SEERS: tuple[tuple[str, Role], ...] = ((WORKER_COOKIE, "worker"), (AUDITOR_COOKIE, "auditor"))
"""Who sees the items of a campaign, besides the owner."""


def _media(state: AppState) -> MediaFiles:
    if state.media is None:
        raise HttpError(404, "missing", "This server stores no media; use https addresses.")
    return state.media


def _type(name: str) -> str:
    kind = MEDIA_TYPES.get(name.rpartition(".")[2].lower())
    if kind is None:
        raise HttpError(415, "type", f"{name[:60]}: use one of {', '.join(MEDIA_TYPES)}.")
    return kind


@routes.api("POST /api/campaigns/{campaign_id}/media", "editor", status_code=201)
async def upload(
    request: Request,
    campaign_id: Id,
    name: Annotated[str, Query(max_length=210)],
) -> JsonObject:
    """Upload one file, its bytes as the body; items name it in image, audio or video."""
    state = state_of(request)
    if not re.fullmatch(PLAIN, name):
        words = "name it with letters, digits, spaces and - _ and a file extension"
        raise HttpError(422, "input", f"{name[:60]}: {words}.")
    kind = _type(name)
    campaign = await state.store.aread(lambda c: get_campaign(c, campaign_id))
    media = _media(state)
    part = await run_in_threadpool(media.receive, campaign_id)
    size = 0
    try:
        with open_private(part) as file:
            async for chunk in request.stream():
                size += len(chunk)
                await run_in_threadpool(file.write, chunk)
        if not size:
            raise HttpError(422, "input", f"{name}: the file is empty.")
        await run_in_threadpool(media.keep, part, file_of(campaign, name), kind)
        await state.store.aread(lambda c: get_campaign(c, campaign_id))
    except NotFound:  # a draft that was discarded meanwhile
        await run_in_threadpool(media.remove, campaign_id)
        raise
    finally:
        part.unlink(missing_ok=True)
    return {"name": name, "bytes": size}


@routes.api("GET /media/{campaign_id}/{name}", response_class=FileResponse)
async def load(
    request: Request, campaign_id: Id, name: Annotated[str, InPath(pattern=PLAIN)]
) -> Response:
    """Load an uploaded file, for the owner, the workers and the auditors of its campaign.

    If media are in a bucket, this redirects to a signed address, which works for some minutes.
    """
    state = state_of(request)
    owner = await owner_or_none(request) is not None
    if not owner and not await _sees(request, state, campaign_id):
        raise HttpError(404, "missing", "There is no such file.")
    media, kind = _media(state), _type(name)
    campaign = await state.store.aread(lambda c: get_campaign(c, campaign_id))
    # the owner's name may say what an item is
    own = owner or campaign.settings.tasks.show_item_names
    found = await run_in_threadpool(find, media, campaign, name, kind, own)
    if found is None:
        raise HttpError(404, "missing", "There is no such file.")
    if isinstance(found, str):
        return RedirectResponse(found, 307, headers={"cache-control": "no-store"})
    return FileResponse(found, media_type=kind, headers=HEADERS)


async def _sees(request: Request, state: AppState, campaign_id: int) -> bool:
    for cookie, role in SEERS:
        token, _ = token_from(request, cookie)
        if token is not None and await works_for(state, token, campaign_id, role):
            return True
    return False
