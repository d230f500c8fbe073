"""The worker's page: one item, one question, three buttons; and its preview for owners.

In a preview, items and questions are chosen at random and nothing is stored, so that it takes no
question from a worker and leaves no trace.
"""

from __future__ import annotations

import random
import secrets
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import Request
from sqlalchemy.engine import Connection
from starlette.responses import JSONResponse, Response

from crowdtree.io.items import is_address, visible
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import items
from crowdtree.server.store.queries.workers import WorkerState
from crowdtree.server.store.serving import commands
from crowdtree.server.store.serving.commands import HandedOut
from crowdtree.server.store.serving.workers import (
    Learner,
    feedback,
    learner,
    next_lesson,
    training_of,
)
from crowdtree.server.store.types import AnyPolicy, ItemStatus, JsonObject
from crowdtree.server.web.auth import WORKER_COOKIE, WorkerHash, csrf_of
from crowdtree.server.web.handlers import work
from crowdtree.server.web.handlers.work import NextRequest, PracticeRequest, WorkerReport
from crowdtree.server.web.language import keep_language, speech_of
from crowdtree.server.web.pages import render
from crowdtree.server.web.routing import Id, Read, Routes, State
from crowdtree.server.web.words import markdown

routes = Routes()
EXAMPLE = {"text": "One of your items will be here."}
"""What is shown where there are no items yet."""
TRAINED = "crowdtree_practised"
"""Cookie with the number of training items that the preview has shown, as nothing is stored."""
PREVIEW = "/c/{campaign_id}/preview"


@routes.page("GET /work")
def page(tx: Read, who: WorkerHash) -> Response:
    """Show the worker's page."""
    campaign, worker = work.worker_of(tx.connection, who, tx.state)
    standing = work.standing_of(tx.connection, who, tx.state)
    csrf = csrf_of(tx.request.cookies.get(WORKER_COOKIE, ""))
    me = work.report_of(campaign, worker)
    return _work_page(tx.request, "work.html", campaign, me, standing, csrf=csrf, where="/work")


def _work_page(
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
        template,
        say=say,
        me=me,
        standing=standing,
        instructions=_html(say.own("instructions", me["instructions"])),
        consent=_html(say.own("consent", me["consent"])),
        examples={name: _html(text) for name, text in me["examples"].items() if text.strip()},
        reasons=work.REPORT_REASONS,
        csrf=csrf,
        where=where,
    )
    keep_language(request, made)
    return made


def _html(text: str) -> str:
    return markdown(text) if text.strip() else ""


@routes.page("POST /work/next")
async def next_question(
    request: Request, state: State, given: NextRequest, who: WorkerHash
) -> JsonObject:
    """Hand out a question with its item rendered."""
    return _rendered(dict(await work.next_question(request, state, given, who)))


@routes.page("GET /work/training")
def training(tx: Read, who: WorkerHash) -> JsonObject:
    """Show the next training item, rendered."""
    return _rendered(dict(training_of(tx.connection, who, tx.now)))


def _rendered(found: JsonObject) -> JsonObject:
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


def media_address(value: str, campaign_id: int) -> str:
    """The address of a picture, a sound or a video.

    >>> media_address("https://example.org/a.png", 1), media_address("a b.png", 1)
    ('https://example.org/a.png', '/media/1/a%20b.png')
    """
    return value if is_address(value) else f"/media/{campaign_id}/{quote(value)}"


# ------------------------------------------------------------------------------- preview


@routes.page(f"GET {PREVIEW}", "viewer")
def preview(tx: Read, campaign_id: Id) -> Response:
    """Show the worker's page, marked as a preview."""
    campaign = tx.campaign(campaign_id)
    nobody = {"id": f"preview-{secrets.token_hex(4)}", "name": "", "status": "active"}
    me = work.report_of(campaign, {**_previewed_state(), **nobody, "consent": ""})
    where = f"/c/{campaign_id}/preview"
    made = _work_page(
        tx.request,
        "preview.html",
        campaign,
        me,
        _previewed_state(),
        csrf=tx.owner.csrf,
        where=where,
    )
    made.delete_cookie(TRAINED, path=where)
    return made


@routes.page(f"POST {PREVIEW}/work/next", "viewer")
def preview_question(tx: Read, campaign_id: Id) -> JsonObject:
    """Show a random question about a random item, after the training."""
    campaign = tx.campaign(campaign_id)
    me = _learner(tx, campaign)
    if me.trained < len(me.lessons):
        return {"task": None, "reason": "training", "more": False}
    return _rendered(dict(_random_question(tx.connection, campaign, tx.policy(campaign))))


@routes.page(f"GET {PREVIEW}/work/training", "viewer")
def preview_training(tx: Read, campaign_id: Id) -> JsonObject:
    """Show the next training item."""
    return _rendered(dict(next_lesson(tx.connection, _learner(tx, tx.campaign(campaign_id)))))


@routes.page(f"POST {PREVIEW}/api/worker/training", "viewer")
def preview_practice(tx: Read, campaign_id: Id, given: PracticeRequest) -> Response:
    """Show the right answer to a training item."""
    me = _learner(tx, tx.campaign(campaign_id))
    response = JSONResponse(dict(feedback(tx.connection, me, given.number, given.outcome)))
    response.set_cookie(
        TRAINED,
        str(max(me.trained, given.number)),
        path=f"/c/{campaign_id}/preview",
        samesite="lax",
        secure=tx.state.options.secure_cookies,
        httponly=True,
    )
    return response


def _learner(tx: Read, campaign: Campaign) -> Learner:
    """The owner as somebody who has practised as often as the preview has shown."""
    count = tx.request.cookies.get(TRAINED, "")
    trained = int(count) if count.isdecimal() and len(count) < 4 else 0
    return learner(tx.connection, campaign, trained)


@routes.page(f"GET {PREVIEW}/api/worker/state", "viewer")
def preview_state(tx: Read, campaign_id: Id) -> JsonObject:
    """Tell the page that the work goes on."""
    tx.campaign(campaign_id)
    return dict(_previewed_state())


@routes.page(f"POST {PREVIEW}/api/worker/answer", "viewer")
@routes.page(f"POST {PREVIEW}/api/worker/skip", "viewer")
@routes.page(f"POST {PREVIEW}/api/worker/report", "viewer")
@routes.page(f"POST {PREVIEW}/api/worker/consent", "viewer")
@routes.page(f"POST {PREVIEW}/api/worker/release", "viewer")
def preview_nothing(tx: Read, campaign_id: Id) -> JsonObject:
    """Take what a worker would send, and forget it."""
    tx.campaign(campaign_id)
    return {"fate": "counted", "late": False}


def _previewed_state() -> WorkerState:
    """How a worker stands who has done nothing, in a campaign that runs."""
    return {
        "campaign": "running",
        "worker": "active",
        "answers": 0,
        "skips": 0,
        "accepted": 0,
        "earned": 0.0,
    }


def _random_question(connection: Connection, campaign: Campaign, policy: AnyPolicy) -> HandedOut:
    """A question about an item, as workers get it."""
    problem, question = policy.problem, random.choice(policy.questions_used())
    return {
        "task": {
            "lease": f"0.{secrets.token_hex(8)}",
            "seconds": campaign.settings.tasks.max_seconds_per_question,
            "item": _random_item(connection, campaign),
            "question": {"name": problem.questions[question], "text": problem.text(question)},
        },
        "reason": "",
        "more": True,
    }


def _random_item(connection: Connection, campaign: Campaign) -> JsonObject:
    """An item near a random id; gold items are shown like others."""
    mine = sa.and_(items.c.campaign_id == campaign.id, items.c.status != ItemStatus.WITHDRAWN)
    low, high = connection.execute(
        sa.select(sa.func.min(items.c.id), sa.func.max(items.c.id)).where(mine)
    ).one()
    if low is None:
        return {"task": "", **EXAMPLE}
    row = connection.execute(
        sa.select(items.c.task, items.c.payload)
        .where(mine, items.c.id >= random.randint(low, high))
        .order_by(items.c.id)
        .limit(1)
    ).one()
    return commands.shown_item(campaign, row.task, row.payload)
