"""Pictures, sounds and films that an owner uploads, and only they and their workers can load.

The name's ending decides the type, from a short list without anything that a browser would run
(no SVG, no HTML); the answer forbids sniffing and scripts all the same.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.owner import tokens
from crowdtree.web.auth import WORKER_COOKIE, OwnerNeeded, owner_or_none, token_from
from crowdtree.web.errors import Problem
from crowdtree.web.site import Site, site_of

__all__ = ["TYPES", "router"]

router = APIRouter(tags=["media"])
Number = Annotated[int, InPath(ge=1, le=2**53)]
PLAIN = r"^[\w-][\w. -]{0,198}\.[A-Za-z0-9]{2,4}$"
TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "ogv": "video/ogg",
}
HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "private, max-age=3600",
}


def _folder(site: Site, number: int) -> Path:
    if site.options.media is None:
        raise Problem(404, "missing", "This server keeps no media; use https addresses.")
    return site.options.media / str(number)


def _type(name: str) -> str:
    kind = TYPES.get(name.rpartition(".")[2].lower())
    if kind is None:
        raise Problem(415, "type", f"{name[:60]}: use one of {', '.join(TYPES)}.")
    return kind


@router.post("/api/campaigns/{number}/media", status_code=201)
async def upload(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    name: Annotated[str, Query(max_length=210)],
) -> dict[str, Any]:
    """Upload one file, its bytes as the body; items name it in image, audio or video."""
    del owner
    site = site_of(request)
    if not re.fullmatch(PLAIN, name):
        words = "give it a name of letters, digits, spaces and - _ with an ending"
        raise Problem(422, "input", f"{name[:60]}: {words}.")
    _type(name)
    await site.store.aread(lambda c: get_campaign(c, number))
    folder = _folder(site, number)
    await run_in_threadpool(folder.mkdir, parents=True, exist_ok=True)
    part = folder / f".{secrets.token_hex(8)}.part"
    size = 0
    try:
        with part.open("wb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                await run_in_threadpool(file.write, chunk)
        if not size:
            raise Problem(422, "input", f"{name}: the file is empty.")
        await run_in_threadpool(os.replace, part, folder / name)
    finally:
        part.unlink(missing_ok=True)
    return {"name": name, "bytes": size}


@router.get("/media/{number}/{name}", response_class=FileResponse)
async def load(
    request: Request, number: Number, name: Annotated[str, InPath(pattern=PLAIN)]
) -> FileResponse:
    """Load an uploaded file, for the owner and the workers of its campaign."""
    site = site_of(request)
    if not await _may(request, site, number):
        raise Problem(404, "missing", "There is no such file.")
    path = _folder(site, number) / name
    if not await run_in_threadpool(path.is_file):
        raise Problem(404, "missing", "There is no such file.")
    return FileResponse(path, media_type=_type(name), headers=HEADERS)


async def _may(request: Request, site: Site, number: int) -> bool:
    token, _ = token_from(request, WORKER_COOKIE)
    if token is not None:
        found = await site.store.aread(lambda c: tokens.find(c, token, site.now))
        if found is not None and found.role == "worker" and found.campaign_id == number:
            return True
    return await owner_or_none(request) is not None
