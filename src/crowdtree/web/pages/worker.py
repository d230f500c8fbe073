"""The worker's page: one item, one question, three buttons."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from crowdtree.files.items import MEDIA
from crowdtree.store import Undo
from crowdtree.web.api import worker as api
from crowdtree.web.auth import WORKER_COOKIE, WorkerHash, csrf_of
from crowdtree.web.pages.base import PageRoute, render
from crowdtree.web.pages.markdown import markdown
from crowdtree.web.site import site_of

__all__ = ["media_address", "router", "shown_item"]

router = APIRouter(route_class=PageRoute)


@router.get("/work")
async def page(request: Request, who: WorkerHash) -> Response:
    """Show the worker's page."""
    me = await api.me(request, who)
    examples = {name: markdown(text) for name, text in me["examples"].items() if text.strip()}
    return render(
        request,
        "work.html",
        me=me,
        csrf=csrf_of(request.cookies.get(WORKER_COOKIE, "")),
        instructions=markdown(me["instructions"]) if me["instructions"].strip() else "",
        examples=examples,
    )


@router.post("/work/next")
async def next_question(request: Request, asked: api.Asked, who: WorkerHash) -> dict[str, Any]:
    """Hand out a question, its item ready to be shown."""
    site = site_of(request)
    return _ready(await api.found_question(site, asked, who, request.is_disconnected))


@router.post("/work/undo")
async def undo(request: Request, given: api.Undone, who: WorkerHash) -> dict[str, Any]:
    """Take back the last answer, and show the question again."""
    found = await site_of(request).store.aask(Undo(who, given.key))
    return _ready(dict(found))


def _ready(found: dict[str, Any]) -> dict[str, Any]:
    if found.get("task"):
        task = found["task"]
        found = {**found, "task": {**task, "item": shown_item(task["item"])}}
    return found


def shown_item(item: dict[str, Any]) -> dict[str, Any]:
    """Choose what people see of an item: columns that nobody named for showing stay hidden.

    >>> shown_item({"task": "1", "text": "hello", "secret": "x"})
    {'task': '1', 'text': 'hello'}
    """
    shown: dict[str, Any] = {"task": str(item["task"])}
    if item.get("text") not in (None, ""):
        shown["text"] = str(item["text"])
    if item.get("markdown"):
        shown["html"] = markdown(str(item["markdown"]))
    if item.get("alt"):
        shown["alt"] = str(item["alt"])
    return shown | {name: str(item[name]) for name in MEDIA if item.get(name)}


def media_address(value: str, campaign: int) -> str:
    """Say where the browser finds a picture, a sound or a film.

    >>> media_address("https://example.org/a.png", 1), media_address("a b.png", 1)
    ('https://example.org/a.png', '/media/1/a%20b.png')
    """
    return value if value.startswith("https://") else f"/media/{campaign}/{quote(value)}"
