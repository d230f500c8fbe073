"""Items: add and list them; the page of an item with its history, label by hand and columns."""

from __future__ import annotations

import io
import json
import re
import tempfile
from typing import IO, Annotated, Literal

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.io.items import KEYS, MEDIA, item_format
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.queries.export import worker_name
from crowdtree.server.store.queries.items import (
    PAGE,
    ItemTrace,
    item_trace,
    page_of_items,
    some_items,
    votes_so_far,
)
from crowdtree.server.store.queries.progress import progress
from crowdtree.server.store.types import ITEM_STATUSES, JsonObject
from crowdtree.server.web.errors import HttpError
from crowdtree.server.web.handlers.work_pages import media_address, shown_item
from crowdtree.server.web.pages import go
from crowdtree.server.web.routing import Id, Read, Reply, Routes, State
from crowdtree.server.web.services.campaigns import correct_labels, reopen_items, withdraw_items
from crowdtree.server.web.services.items import (
    MAX_NAMED,
    MEDIA_TYPES,
    add_from_file,
    edit_item,
    missing_media,
    missing_of_item,
    never_uploaded,
)
from crowdtree.server.web.state import state_of

routes = Routes("owner")
adding = Routes("transfer")
API, PAGES = "/api/campaigns/{campaign_id}/items", "/c/{campaign_id}"
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
TYPES = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
MEDIA_KINDS = {ending: kind.partition("/")[0] for ending, kind in MEDIA_TYPES.items()}
IN_MEMORY = 2**20
MAX_LISTED = 1000
MAX_PASTED = 400
FIRST_COLUMNS = ("text", "image")
"""Columns that can be filled in on the page of an item that does not have them."""
PREFIX = "column."
"""Beginning of the names of the fields of columns."""
Status = Literal["", "new", "open", "labelled", "set aside", "gold", "withdrawn"]
Words = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]

# --------------------------------------------------------------------------------- adding


@adding.api(
    f"POST {API}",
    "editor",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                name: {"schema": {"type": "string"}}
                for name in ("text/csv", "application/x-ndjson")
            },
        }
    },
)
async def add(request: Request, campaign_id: Id) -> Reply:
    """Add items from a CSV, XLSX or JSON-lines body, a million rows or more; all are checked first.

    Items whose `task` exists are left unchanged, so sending a file again is harmless. `set_aside`
    counts those that were set aside: `POST /api/campaigns/{campaign_id}/reopen` asks about them
    again. `conflicts` lists the lines whose item is there with other content, `missing` files that
    items show and that were never uploaded. `warnings` says what may be wrong, in words.
    """
    state = state_of(request)
    kind = TYPES.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if kind is None:
        raise HttpError(415, "type", "Send text/csv, application/x-ndjson or an XLSX workbook.")
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        async for chunk in request.stream():
            spool.write(chunk)
        where = (state.store, campaign_id)
        return await run_in_threadpool(add_from_file, *where, spool, kind, state.media)


@routes.page(f"POST {PAGES}/items", "editor")
async def add_by_form(request: Request, campaign_id: Id) -> Response:
    """Add items from a file or from pasted lines."""
    state = state_of(request)
    form = await request.form()
    upload, pasted = form.get("items"), form.get("pasted")
    file: IO[bytes]
    if isinstance(upload, UploadFile) and upload.filename:
        file, kind = upload.file, item_format(upload.filename)
    else:
        if isinstance(pasted, UploadFile):  # long texts are sent as a file
            pasted = (await pasted.read()).decode("utf-8", "replace")
        content, kind = _pasted(str(pasted or ""))
        file = io.BytesIO(content)
    where = (state.store, campaign_id)
    made = await run_in_threadpool(add_from_file, *where, file, kind, state.media)
    other = made["conflicts"]
    same = made["read"] - made["added"] - len(other)
    counts = f"added={made['added']}&same={same}&aside={made['set_aside']}"
    if other:
        unit = "row" if kind == "xlsx" else "line"
        lines = ".".join(map(str, other[:MAX_NAMED]))
        counts += f"&other={len(other)}&unit={unit}&lines={lines}"
    return go(request, f"/c/{campaign_id}/items?{counts}")


def _pasted(text: str) -> tuple[bytes, str]:
    """Read pasted items: a table with a column `task`, or simply one item per line.

    >>> _pasted("a robin\\na trout\\n")
    (b'{"task": "a robin", "text": "a robin"}\\n{"task": "a trout", "text": "a trout"}\\n', 'jsonl')
    >>> _pasted("task,text\\n1,x\\n")
    (b'task,text\\n1,x\\n', 'csv')
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise CrowdtreeError("Choose a file with your items, or paste one item per line.")
    header = {cell.strip().lower() for cell in re.split(r"[,;\t]", lines[0])}
    if len(header) > 1 and header & set(KEYS):
        return text.encode(), "csv"
    if lines[0].startswith("{"):
        return text.encode(), "jsonl"
    rows = ({"task": line[:MAX_PASTED], "text": line} for line in lines)
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), "jsonl"


# -------------------------------------------------------------------------------- listing


@routes.api(f"GET {API}", "viewer")
def list_items(
    tx: Read,
    campaign_id: Id,
    find: Words = "",
    text: Words = "",
    status: Status = "",
    label: Words = "",
    after: Annotated[str, Query(max_length=1000, pattern=r"^[^\x00]*$")] = "",
    most: Annotated[int, Query(ge=1, le=MAX_LISTED)] = PAGE,
) -> Reply:
    """List items with their columns, status and label.

    `find` is the beginning of the name, `text` a part of any column (upper and lower case are the
    same), `label` a class. Pass `next` as `after` to read the next page; it is null at the end.
    """
    wanted = {"find": find, "text": text, "status": status, "label": label, "after": after}
    return page_of_items(tx.connection, campaign_id, most=most, **wanted)


@routes.page(f"GET {PAGES}/items", "viewer", "items.html")
def listed(
    tx: Read,
    campaign_id: Id,
    status: str = "",
    label: str = "",
    find: str = Query("", max_length=200),
    text: str = Query("", max_length=200),
    after: str = Query("", max_length=1000),
) -> Reply:
    """List items, and the form to add more."""
    status = status if status in ITEM_STATUSES else ""
    find, text, after = (word.replace("\x00", "") for word in (find.strip(), text.strip(), after))
    campaign, query, media = tx.campaign(campaign_id), tx.request.query_params, tx.state.media
    classes = campaign.classes
    rows = some_items(
        tx.connection,
        campaign_id,
        status=status,
        label=classes.index(label) if label in classes else None,
        find=find,
        text=text,
        after=after,
    )
    missing: list[str] = []
    if campaign.status == "draft" or "added" in query:
        missing = missing_media(tx.connection, campaign_id, media)
    return {
        "campaign": campaign,
        "rows": [{**row, **_seen(row["item"], campaign_id)} for row in rows],
        "facts": progress(tx.connection, campaign_id, tx.now),
        "more": rows[-1]["cursor"] if len(rows) == PAGE else None,
        "later": bool(after),
        "asked": {"status": status, "label": label, "find": find, "text": text},
        "reasons": REASONS,
        "statuses": {name: STATUSES[name] for name in ITEM_STATUSES},
        "query": query,
        "media": None if media is None else MEDIA_KINDS,
        "missing": never_uploaded(missing),
    }


def _seen(columns: JsonObject, campaign_id: int) -> dict[str, str]:
    """The picture and the words of an item in the list."""
    image = str(columns.get("image") or "")
    words = (str(columns.get(name) or "") for name in ("text", "markdown", "alt"))
    return {
        "picture": media_address(image, campaign_id) if image else "",
        "words": next(filter(None, words), ""),
    }


# ------------------------------------------------------------------------- corrections


def _chosen(form: FormData) -> list[str]:
    """Names of the items that were chosen."""
    tasks = [str(task) for task in form.getlist("task")]
    if not tasks:
        raise CrowdtreeError("Choose at least one item.")
    return tasks


def _reason(form: FormData) -> str:
    return str(form.get("reason", "")).strip()


@routes.page(f"POST {PAGES}/withdraw", "editor")
async def withdraw(request: Request, state: State, campaign_id: Id) -> Response:
    """Withdraw the chosen items."""
    form = await request.form()
    details = (campaign_id, _chosen(form), _reason(form))
    found = await run_in_threadpool(withdraw_items, state.store, *details)
    return go(request, f"/c/{campaign_id}/items?withdrawn={found['withdrawn']}")


@routes.page(f"POST {PAGES}/reopen", "editor")
async def reopen(request: Request, state: State, campaign_id: Id) -> Response:
    """Reopen the chosen items that were set aside or withdrawn."""
    tasks = _chosen(await request.form())
    found = await run_in_threadpool(reopen_items, state.store, campaign_id, tasks)
    state.wake(campaign_id, found["reopened"])
    return go(request, f"/c/{campaign_id}/items?reopened={found['reopened']}")


@routes.page(f"POST {PAGES}/items/{{item}}/label", "editor")
async def label_by_hand(request: Request, state: State, campaign_id: Id, item: Id) -> Response:
    """Give an item a label by hand, or take it back."""
    form = await request.form()
    label, undo = str(form.get("label", "")), form.get("undo") is not None
    if not label and not undo:
        raise CrowdtreeError("Choose a class under “Label by hand”.")
    trace = await state.store.aread(lambda c: item_trace(c, campaign_id, item))
    wanted = {trace["task"]: None if undo else label}
    details = (campaign_id, wanted, _reason(form))
    found = await run_in_threadpool(correct_labels, state.store, *details)
    state.wake(campaign_id, found["opened"])
    return go(request, f"/c/{campaign_id}/items/{item}")


@routes.page(f"POST {PAGES}/items/{{item}}/edit", "editor")
async def edit(request: Request, state: State, campaign_id: Id, item: Id) -> Response:
    """Change the columns of an item that are others than before."""
    form = await request.form()
    columns = {
        name.removeprefix(PREFIX): str(value).replace("\r\n", "\n").strip()
        for name, value in form.items()
        if name.startswith(PREFIX)
    }
    campaign, trace = await state.store.aread(
        lambda c: (get_campaign(c, campaign_id), item_trace(c, campaign_id, item))
    )
    before = {name: str(value).strip() for name, value in trace["payload"].items()}
    if trace["gold"] is not None:
        before["gold"] = campaign.classes[trace["gold"]]
    changes = {name: text for name, text in columns.items() if text != before.get(name, "")}
    if changes:
        details = (campaign_id, item, changes, _reason(form))
        await run_in_threadpool(edit_item, state.store, state.media, *details)
    return go(request, f"/c/{campaign_id}/items/{item}?edited={len(changes)}")


# ------------------------------------------------------------------------------- one item


@routes.api(f"GET {API}/{{item}}", "viewer")
def trace(tx: Read, campaign_id: Id, item: Id) -> Reply:
    """Read an item with every answer to it and its label."""
    return item_trace(tx.connection, campaign_id, item)


@routes.page(f"GET {PAGES}/items/{{item}}", "viewer", "item.html")
def one(tx: Read, campaign_id: Id, item: Id) -> Reply:
    """Show an item with its trace."""
    campaign, trace = tx.campaign(campaign_id), item_trace(tx.connection, campaign_id, item)
    problem, columns = tx.policy(campaign).problem, trace["payload"]
    answers = [
        {
            **line,
            "text": problem.text(line["question"]),
            "who": worker_name(line["worker_id"], line["name"]),
            "words": FATES.get(line["fate"], line["fate"]),
        }
        for line in trace["answers"]
    ]
    shown = shown_item({"task": trace["task"], **columns})
    shown |= {name: media_address(shown[name], campaign_id) for name in MEDIA if name in shown}
    return {
        "campaign": campaign,
        "trace": trace,
        "answers": answers,
        "shown": shown,
        "hidden": {k: v for k, v in columns.items() if k not in (*shown, "markdown", "alt")},
        "path": _path(trace, problem),
        "reasons": REASONS,
        "columns": _columns(columns),
        "missing": missing_of_item(campaign, tx.state.media, columns),
        "query": tx.request.query_params,
    }


def _columns(payload: JsonObject) -> dict[str, str]:
    """The columns that can be edited as text, those that people see first."""
    texts = {k: str(v) for k, v in payload.items() if isinstance(v, str | int | float)}
    return {**{name: texts.get(name, "") for name in FIRST_COLUMNS}, **texts}


def _path(trace: ItemTrace, problem: Problem) -> list[dict[str, object]]:
    """Votes by question, in order, with the texts of the questions."""
    texts = {name: problem.text(q) for q, name in enumerate(problem.questions)}
    votes = votes_so_far(trace, problem.questions)
    return [{**step, "text": texts[step["question"]]} for step in votes]
