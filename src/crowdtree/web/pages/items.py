"""Items: the list, and the page of one with everything that happened to it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from crowdtree.files.items import MEDIA
from crowdtree.store import campaigns, views
from crowdtree.store.exports import item_trace, worker_name
from crowdtree.store.progress import progress
from crowdtree.store.tables import ITEM
from crowdtree.web.api.media import TYPES
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.pages.base import Number, PageRoute, render
from crowdtree.web.pages.worker import media_address, shown_item
from crowdtree.web.site import site_of

__all__ = ["router"]

router = APIRouter(route_class=PageRoute)
FATES = {
    "counted": "counted",
    "undone": "taken back",
    "surplus": "not needed: the vote was over",
    "late": "too late: the item had its label",
    "duplicate": "sent twice",
    "skipped": "could not tell",
    "gold": "check item",
    "over budget": "not paid: the budget was spent",
}
STATUSES = {
    "new": "to do",
    "open": "in work",
    "labelled": "labelled",
    "set aside": "set aside",
    "gold": "check item",
}
KINDS = {ending: kind.partition("/")[0] for ending, kind in TYPES.items()}
REASONS = {
    "leaf": "the tree ended here",
    "target": "sure enough",
    "budget": "no answers left for this item",
    "questions": "no question could tell more",
    "undecided": "more answers would hardly have decided it; this is the best guess",
    "skipped": "too many people could not tell",
    "finished": "the campaign was finished early",
    "never asked": "the campaign was finished before anybody was asked",
    "no workers": "nobody was left who could answer",
}


@router.get("/c/{number}/items")
async def listed(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    status: str = "",
    label: str = "",
    find: str = Query("", max_length=200),
    after: str = Query("", max_length=1000),
) -> Response:
    """List items, and take more."""
    site = site_of(request)
    status = status if status in ITEM.names else ""
    find, after = find.strip().replace("\x00", ""), after.replace("\x00", "")

    def look(connection: Any) -> Any:
        campaign = campaigns.get(connection, number)
        classes = campaign["problem"]["classes"]
        place = classes.index(label) if label in classes else None
        rows = views.some_items(
            connection, number, status=status, label=place, find=find, after=after
        )
        return campaign, rows, progress(connection, number, site.now)

    campaign, rows, facts = await site.store.aread(look)
    more = rows[-1]["cursor"] if len(rows) == views.PAGE else None
    asked = {"status": status, "label": label, "find": find}
    return render(
        request,
        "items.html",
        owner=owner,
        campaign=campaign,
        rows=rows,
        facts=facts,
        more=more,
        asked=asked,
        reasons=REASONS,
        statuses={name: STATUSES[name] for name in ITEM.names},
        query=request.query_params,
        media=None if site.options.media is None else KINDS,
    )


@router.get("/c/{number}/items/{item}")
async def one(request: Request, number: Number, item: Number, owner: OwnerNeeded) -> Response:
    """Show an item with its trace."""
    site = site_of(request)

    def look(connection: Any) -> Any:
        return campaigns.get(connection, number), item_trace(connection, number, item)

    campaign, trace = await site.store.aread(look)
    problem = site.policy(campaign).problem
    undone = _undone(trace["answers"])
    answers = [
        {
            **line,
            "text": problem.text(line["question"]),
            "who": worker_name(line["worker_id"], line["name"]),
            "words": "taken back"
            if line["id"] in undone
            else FATES.get(line["fate"], line["fate"]),
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
    )


def _undone(lines: list[dict[str, Any]]) -> set[int]:
    """Answers that their worker took back: the last one on the same question before an undo."""
    standing: dict[tuple[int, int], int] = {}
    found: set[int] = set()
    for line in lines:
        key = (line["worker_id"], line["question"])
        if line["kind"] == "undo":
            found |= {standing.pop(key)} if key in standing else set()
        else:
            standing[key] = line["id"]
    return found


def _path(trace: dict[str, Any], problem: Any) -> list[dict[str, Any]]:
    """Votes by question, in order: from the label, or counted while the item is open."""
    import json

    if trace["label"] is not None:
        steps = json.loads(trace["label"]["path"])
        texts = {name: problem.text(q) for q, name in enumerate(problem.questions)}
        return [{**step, "text": texts[step["question"]]} for step in steps]
    undone = _undone(trace["answers"])
    runs: list[dict[str, Any]] = []
    for line in trace["answers"]:
        if line["fate"] != "counted" or line["id"] in undone:
            continue
        if not runs or runs[-1]["question"] != line["question"]:
            text = problem.text(line["question"])
            runs.append({"question": line["question"], "text": text, "yes": 0, "no": 0})
        runs[-1]["yes" if line["value"] else "no"] += 1
    return runs
