"""The worker's page: one item, one question, three buttons."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from crowdtree.io.items import is_address, visible
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.queries.workers import WorkerState
from crowdtree.server.store.serving.workers import training_of
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.auth import WORKER_COOKIE, WorkerHash, csrf_of
from crowdtree.server.web.pages.base import PageRoute, render
from crowdtree.server.web.pages.language import keep_language, speech_of
from crowdtree.server.web.pages.markdown import markdown
from crowdtree.server.web.requests import disconnection, state_of
from crowdtree.server.web.services import assignments
from crowdtree.server.web.services.assignments import NextRequest, WorkerReport

router = APIRouter(route_class=PageRoute)


@router.get("/work")
async def page(request: Request, who: WorkerHash) -> Response:
    """Show the worker's page."""
    state = state_of(request)
    me = await assignments.report_worker(state, who)
    campaign = await state.store.aread(lambda c: get_campaign(c, me["campaign_id"]))
    standing = await assignments.report_state(state, who)
    csrf = csrf_of(request.cookies.get(WORKER_COOKIE, ""))
    return work_page(request, "work.html", campaign, me, standing, csrf=csrf, where="/work")


def work_page(
    request: Request,
    template: str,
    campaign: Campaign,
    me: WorkerReport,
    standing: WorkerState,
    *,
    csrf: str,
    where: str,
) -> Response:
    """Render the worker's page; `where` is its own address."""
    say = speech_of(request, campaign.settings)
    made = render(
        request,
        template,
        say=say,
        me=me,
        standing=standing,
        instructions=_shown(say.own("instructions", me["instructions"])),
        consent=_shown(say.own("consent", me["consent"])),
        examples={name: _shown(text) for name, text in me["examples"].items() if text.strip()},
        reasons=assignments.REASONS,
        csrf=csrf,
        where=where,
    )
    keep_language(request, made)
    return made


def _shown(text: str) -> str:
    return markdown(text) if text.strip() else ""


@router.post("/work/next")
async def next_question(request: Request, given: NextRequest, who: WorkerHash) -> JsonObject:
    """Hand out a question with its item rendered."""
    state = state_of(request)
    found = await assignments.find_question(state, given, who, partial(disconnection, request))
    return ready(dict(found))


@router.get("/work/training")
async def training(request: Request, who: WorkerHash) -> JsonObject:
    """Show the next training item, rendered."""
    state = state_of(request)
    return ready(dict(await state.store.aread(lambda c: training_of(c, who, state.now))))


def ready(found: JsonObject) -> JsonObject:
    """Render the item of a task, if there is one."""
    if found.get("task"):
        task = found["task"]
        found = {**found, "task": {**task, "item": shown_item(task["item"])}}
    return found


def shown_item(item: JsonObject) -> JsonObject:
    """Make what the page shows of an item; Markdown becomes safe HTML.

    >>> shown_item({"task": "1", "text": "hello", "secret": "x"})
    {'task': '1', 'text': 'hello'}
    """
    shown: JsonObject = {"task": str(item["task"])}
    for name, value in visible(item).items():
        if name == "markdown":
            shown["html"] = markdown(str(value))
        else:
            shown[name] = str(value)
    return shown


def media_address(value: str, campaign: int) -> str:
    """The address of a picture, a sound or a video.

    >>> media_address("https://example.org/a.png", 1), media_address("a b.png", 1)
    ('https://example.org/a.png', '/media/1/a%20b.png')
    """
    return value if is_address(value) else f"/media/{campaign}/{quote(value)}"
