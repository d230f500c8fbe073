"""Items: the list, and the page of an item with its history, its label by hand and its columns."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Query, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import FormData
from starlette.responses import Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.io.items import MEDIA
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.queries.export import worker_name
from crowdtree.server.store.queries.items import (
    PAGE,
    ItemListing,
    ItemTrace,
    item_trace,
    some_items,
    votes_so_far,
)
from crowdtree.server.store.queries.progress import Progress, progress
from crowdtree.server.store.types import ITEM_STATUSES, JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, go, render
from crowdtree.server.web.pages.worker import media_address, shown_item
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.corrections import correct_labels, reopen_items, withdraw_items
from crowdtree.server.web.services.items import (
    MEDIA_TYPES,
    edit_item,
    missing_media,
    missing_of_item,
    never_uploaded,
)

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
FATES = {
    "counted": "counted",
    "surplus": "not needed: the vote was over",
    "late": "too late: the item already had its label",
    "duplicate": "sent twice",
    "skipped": "could not tell",
    "gold": "check item",
    "over budget": "not paid: the budget was spent",
    "excluded": "excluded",
}
STATUSES = {
    "new": "to do",
    "open": "in work",
    "labelled": "labelled",
    "set aside": "set aside",
    "gold": "check item",
    "withdrawn": "withdrawn",
}
KINDS = {ending: kind.partition("/")[0] for ending, kind in MEDIA_TYPES.items()}
REASONS = {
    "leaf": "the tree ended here",
    "target": "the label was certain enough",
    "budget": "no answers left for this item",
    "questions": "no question was informative any more",
    "undecided": "more answers were unlikely to decide it; this is the best guess",
    "referred": "an expert costs less than the expected loss of any label; this is the best guess",
    "skipped": "too many people could not tell",
    "finished": "the campaign was finished early",
    "never asked": "the campaign was finished before anybody was asked",
    "everybody answered": "everybody who was here had answered; this is the best guess",
    "no workers": "too few people had answered, and nobody was left",
    "unconfirmed": "nobody known supports the label that the answers give",
    "checked": "an audit has found the true class",
    "corrected": "it was labelled by hand, so nobody is asked any more",
    "withdrawn": "it was withdrawn",
}
FIRST_COLUMNS = ("text", "image")
"""Columns that can be filled in on the page of an item that does not have them."""
PREFIX = "column."
"""Beginning of the names of the fields of columns."""


@router.get("/c/{number}/items")
async def listed(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    status: str = "",
    label: str = "",
    find: str = Query("", max_length=200),
    text: str = Query("", max_length=200),
    after: str = Query("", max_length=1000),
) -> Response:
    """List items, and the form to add more."""
    state = state_of(request)
    status = status if status in ITEM_STATUSES else ""
    find, text, after = (word.replace("\x00", "") for word in (find.strip(), text.strip(), after))

    def look(connection: Connection) -> tuple[Campaign, list[ItemListing], Progress]:
        campaign = get_campaign(connection, number)
        classes = campaign.classes
        place = classes.index(label) if label in classes else None
        rows = some_items(
            connection, number, status=status, label=place, find=find, text=text, after=after
        )
        return campaign, rows, progress(connection, number, state.now)

    campaign, rows, facts = await state.store.aread(look)
    missing: list[str] = []
    if campaign.status == "draft" or "added" in request.query_params:
        missing = await asyncio.to_thread(missing_media, state.store, number, state.media)
    more = rows[-1]["cursor"] if len(rows) == PAGE else None
    asked = {"status": status, "label": label, "find": find, "text": text}
    return render(
        request,
        "items.html",
        owner=owner,
        campaign=campaign,
        rows=[{**row, **_seen(row["item"], number)} for row in rows],
        facts=facts,
        more=more,
        later=bool(after),
        asked=asked,
        reasons=REASONS,
        statuses={name: STATUSES[name] for name in ITEM_STATUSES},
        query=request.query_params,
        media=None if state.media is None else KINDS,
        missing=never_uploaded(missing) if missing else "",
    )


def _seen(columns: JsonObject, number: int) -> dict[str, str]:
    """The picture and the words of an item in the list."""
    image = str(columns.get("image") or "")
    words = (str(columns.get(name) or "") for name in ("text", "markdown", "alt"))
    return {
        "picture": media_address(image, number) if image else "",
        "words": next(filter(None, words), ""),
    }


def _chosen(form: FormData) -> list[str]:
    """Names of the items that were chosen."""
    tasks = [str(task) for task in form.getlist("task")]
    if not tasks:
        raise CrowdtreeError("Choose at least one item.")
    return tasks


@router.post("/c/{number}/withdraw")
async def withdraw(request: Request, number: Number) -> Response:
    """Withdraw the chosen items."""
    form = await request.form()
    reason = str(form.get("reason", "")).strip()
    store = state_of(request).store
    found = await asyncio.to_thread(withdraw_items, store, number, _chosen(form), reason)
    return go(request, f"/c/{number}/items?withdrawn={found['withdrawn']}")


@router.post("/c/{number}/items/{item}/label")
async def label_by_hand(request: Request, number: Number, item: Number) -> Response:
    """Give an item a label by hand, or take it back."""
    state = state_of(request)
    form = await request.form()
    label, reason = str(form.get("label", "")), str(form.get("reason", "")).strip()
    back = form.get("undo") is not None
    if not label and not back:
        raise CrowdtreeError("Choose a class under “Label by hand”.")
    trace = await state.store.aread(lambda c: item_trace(c, number, item))
    wanted = {trace["task"]: None if back else label}
    found = await asyncio.to_thread(correct_labels, state.store, number, wanted, reason)
    state.waiters.wake({number: found["opened"]})
    return go(request, f"/c/{number}/items/{item}")


@router.post("/c/{number}/items/{item}/edit")
async def edit(request: Request, number: Number, item: Number) -> Response:
    """Change the columns of an item that are others than before."""
    state = state_of(request)
    form = await request.form()
    columns = {
        name.removeprefix(PREFIX): str(value).replace("\r\n", "\n").strip()
        for name, value in form.items()
        if name.startswith(PREFIX)
    }
    trace = await state.store.aread(lambda c: item_trace(c, number, item))
    before = {name: str(value).strip() for name, value in trace["payload"].items()}
    if trace["gold"] is not None:
        classes = (await state.store.aread(lambda c: get_campaign(c, number))).classes
        before["gold"] = classes[trace["gold"]]
    changes = {name: text for name, text in columns.items() if text != before.get(name, "")}
    if changes:
        reason = str(form.get("reason", "")).strip()
        await asyncio.to_thread(edit_item, state, number, item, changes, reason)
    return go(request, f"/c/{number}/items/{item}?edited={len(changes)}")


@router.post("/c/{number}/reopen")
async def reopen(request: Request, number: Number) -> Response:
    """Reopen the chosen items that were set aside or withdrawn."""
    state = state_of(request)
    tasks = _chosen(await request.form())
    found = await asyncio.to_thread(reopen_items, state.store, number, tasks)
    state.waiters.wake({number: found["reopened"]})
    return go(request, f"/c/{number}/items?reopened={found['reopened']}")


@router.get("/c/{number}/items/{item}")
async def one(request: Request, number: Number, item: Number, owner: OwnerNeeded) -> Response:
    """Show an item with its trace."""
    state = state_of(request)

    def look(connection: Connection) -> tuple[Campaign, ItemTrace]:
        return get_campaign(connection, number), item_trace(connection, number, item)

    campaign, trace = await state.store.aread(look)
    problem = state.policy(campaign).problem
    answers = [
        {
            **line,
            "text": problem.text(line["question"]),
            "who": worker_name(line["worker_id"], line["name"]),
            "words": FATES.get(line["fate"], line["fate"]),
        }
        for line in trace["answers"]
    ]
    shown = shown_item({"task": trace["task"], **trace["payload"]})
    shown |= {name: media_address(shown[name], number) for name in MEDIA if name in shown}
    hidden = {k: v for k, v in trace["payload"].items() if k not in (*shown, "markdown", "alt")}
    return render(
        request,
        "item.html",
        owner=owner,
        campaign=campaign,
        trace=trace,
        answers=answers,
        shown=shown,
        hidden=hidden,
        path=_path(trace, problem),
        reasons=REASONS,
        columns=_columns(trace),
        missing=await asyncio.to_thread(missing_of_item, state, number, trace["payload"]),
        query=request.query_params,
    )


def _columns(trace: ItemTrace) -> dict[str, str]:
    """The columns that can be edited as text, those that people see first."""
    texts = {k: str(v) for k, v in trace["payload"].items() if isinstance(v, str | int | float)}
    return {**{name: texts.get(name, "") for name in FIRST_COLUMNS}, **texts}


def _path(trace: ItemTrace, problem: Problem) -> list[dict[str, object]]:
    """Votes by question, in order, with the texts of the questions."""
    texts = {name: problem.text(q) for q, name in enumerate(problem.questions)}
    votes = votes_so_far(trace, problem.questions)
    return [{**step, "text": texts[step["question"]]} for step in votes]
