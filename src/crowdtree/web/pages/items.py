"""Items: the list, and the page of an item with its history."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Query, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.errors import CrowdtreeError
from crowdtree.files.items import MEDIA
from crowdtree.problem import Problem
from crowdtree.store.db.campaign_row import Campaign, get_campaign
from crowdtree.store.db.states import ITEM_STATUSES
from crowdtree.store.queries.export import worker_name
from crowdtree.store.queries.items import (
    PAGE,
    ItemListing,
    ItemTrace,
    fates_now,
    item_trace,
    some_items,
    votes_so_far,
)
from crowdtree.store.queries.progress import Progress, progress
from crowdtree.store.types import JsonObject
from crowdtree.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.web.pages.base import PageRoute, go, render
from crowdtree.web.pages.worker import media_address, shown_item
from crowdtree.web.requests import Number, state_of
from crowdtree.web.services.corrections import reopen_items
from crowdtree.web.services.items import MEDIA_TYPES

__all__ = ["router"]

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
FATES = {
    "counted": "counted",
    "undone": "taken back",
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
    "no workers": "no workers were left to answer",
}


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
    )


def _seen(columns: JsonObject, number: int) -> dict[str, str]:
    """The picture and the words of an item in the list."""
    image = str(columns.get("image") or "")
    words = (str(columns.get(name) or "") for name in ("text", "markdown", "alt"))
    return {
        "picture": media_address(image, number) if image else "",
        "words": next(filter(None, words), ""),
    }


@router.post("/c/{number}/reopen")
async def reopen(request: Request, number: Number) -> Response:
    """Reopen the chosen items that were set aside."""
    state = state_of(request)
    tasks = [str(task) for task in (await request.form()).getlist("task")]
    if not tasks:
        raise CrowdtreeError("Choose at least one item.")
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
    fates = fates_now(trace["answers"])
    answers = [
        {
            **line,
            "text": problem.text(line["question"]),
            "who": worker_name(line["worker_id"], line["name"]),
            "words": FATES.get(fate, fate),
        }
        for line, fate in zip(trace["answers"], fates, strict=True)
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
    )


def _path(trace: ItemTrace, problem: Problem) -> list[dict[str, object]]:
    """Votes by question, in order, with the texts of the questions."""
    texts = {name: problem.text(q) for q, name in enumerate(problem.questions)}
    votes = votes_so_far(trace, problem.questions)
    return [{**step, "text": texts[step["question"]]} for step in votes]
