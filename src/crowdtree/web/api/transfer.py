"""Items in, labels and answers out."""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from sqlalchemy.engine import Connection
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from crowdtree.errors import CrowdtreeError
from crowdtree.store import Store
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.owner import campaigns
from crowdtree.store.queries.export import AnswerRow, answer_rows, label_rows, pieces
from crowdtree.web import tables
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.errors import Problem
from crowdtree.web.items import read_items
from crowdtree.web.site import Site, site_of

__all__ = ["add_from_file", "router"]

router = APIRouter(prefix="/api/campaigns", tags=["transfer"])
Number = Annotated[int, Path(ge=1, le=2**53)]
Format = Literal["csv", "jsonl", "parquet"]
KINDS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
}
IN_MEMORY = 2**20
ROWS_AT_ONCE = 2000
LABELS = ["task", "label", "posterior_error", "status", "reason", "answers", "path", "at"]
ANSWERS = ["task", "worker", "label", "question", "kind", "fate", "late", "at"]
CROWD_KIT = ["task", "question", "worker", "label"]


@router.post(
    "/{number}/items",
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
async def add_items(request: Request, number: Number, owner: OwnerNeeded) -> dict[str, int]:
    """Add items from a CSV or JSON-lines body, a million rows or more; all are checked first.

    Items whose `task` is there already are left as they are, so sending a file again is harmless.
    """
    del owner
    site = site_of(request)
    kind = KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if kind is None:
        raise Problem(415, "type", "Send text/csv or application/x-ndjson.")
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        async for chunk in request.stream():
            spool.write(chunk)
        return await asyncio.to_thread(add_from_file, site.store, number, spool, kind)


def add_from_file(store: Store, number: int, file: IO[bytes], kind: str) -> dict[str, int]:
    """Check all rows of a file, then add them a few thousand at a time."""
    classes = store.read(lambda c: get_campaign(c, number)).problem["classes"]
    read = added = 0
    for row in _rows(file, kind, classes):
        del row
        read += 1
    if not read:
        raise CrowdtreeError("items: the file has no items")
    piece: list[dict[str, Any]] = []
    for row in _rows(file, kind, classes):
        piece.append(row)
        if len(piece) == ROWS_AT_ONCE:
            added += _add(store, number, piece)
            piece = []
    added += _add(store, number, piece)
    return {"read": read, "added": added}


def _add(store: Store, number: int, rows: list[dict[str, Any]]) -> int:
    made = list(rows)
    return store.write(lambda c: campaigns.add_items(c, number, made))


def _rows(file: IO[bytes], kind: str, classes: list[str]) -> Iterator[dict[str, Any]]:
    file.seek(0)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        yield from read_items(text, kind, classes)
    except UnicodeDecodeError:
        raise CrowdtreeError("items: the file is not UTF-8 text; save it as UTF-8") from None
    finally:
        text.detach()


@router.get("/{number}/labels", response_class=Response)
async def labels(
    request: Request, number: Number, owner: OwnerNeeded, format: Format = "csv"
) -> Response:
    """Download the labels so far: task, label, posterior error, status, reason, path."""
    del owner
    site = site_of(request)
    names = (await site.store.aread(lambda c: get_campaign(c, number))).problem["classes"]
    return await _download(site, number, label_rows, names, LABELS, format, "labels")


@router.get("/{number}/answers", response_class=Response)
async def answers(
    request: Request,
    number: Number,
    owner: OwnerNeeded,
    format: Format = "csv",
    log: bool = False,
) -> Response:
    """Download the answers that counted, as crowd-kit reads them; with `log`, everything."""
    del owner
    site = site_of(request)
    names = (await site.store.aread(lambda c: get_campaign(c, number))).problem["questions"]
    read = answer_rows if log else standing_answers
    columns = ANSWERS if log else CROWD_KIT
    return await _download(site, number, read, names, columns, format, "answers")


def standing_answers(
    connection: Connection, number: int, names: list[str], after: int
) -> list[AnswerRow]:
    """Read answers without skips, undos and what was taken back."""
    return answer_rows(connection, number, names, after, standing=True)


async def _download(
    site: Site,
    number: int,
    read: Callable[..., Any],
    names: list[str],
    columns: list[str],
    format: Format,
    what: str,
) -> Response:
    def found() -> Iterator[list[dict[str, Any]]]:
        return pieces(lambda after: site.store.read(lambda c: read(c, number, names, after)))

    head = {"content-disposition": f'attachment; filename="{what}-{number}.{format}"'}
    if format == "parquet":
        content = await asyncio.to_thread(lambda: tables.parquet(found(), columns))
        return Response(content, media_type="application/vnd.apache.parquet", headers=head)
    write, kind = {
        "csv": (tables.csv_lines, "text/csv; charset=utf-8"),
        "jsonl": (tables.json_lines, "application/x-ndjson"),
    }[format]
    lines = iterate_in_threadpool(write(found(), columns))
    return StreamingResponse(lines, media_type=kind, headers=head)
