"""Items in, labels and answers out."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from sqlalchemy.engine import Connection
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from crowdtree.errors import CrowdtreeError
from crowdtree.files import exports
from crowdtree.files.items import read_items
from crowdtree.store import Store
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.owner import campaigns
from crowdtree.store.queries.export import AnswerRow, answer_rows, label_rows, pieces
from crowdtree.web.auth import OwnerNeeded
from crowdtree.web.errors import Problem
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
    if file.seek(0, os.SEEK_END):
        read = sum(1 for _ in read_items(file, kind, classes))
    if not read:
        raise CrowdtreeError("items: the file has no items")
    piece: list[dict[str, Any]] = []
    for row in read_items(file, kind, classes):
        piece.append(row)
        if len(piece) == ROWS_AT_ONCE:
            added += _add(store, number, piece)
            piece = []
    added += _add(store, number, piece)
    return {"read": read, "added": added}


def _add(store: Store, number: int, rows: list[dict[str, Any]]) -> int:
    made = list(rows)
    return store.write(lambda c: campaigns.add_items(c, number, made))


@router.get("/{number}/labels", response_class=Response)
async def labels(
    request: Request, number: Number, owner: OwnerNeeded, format: Format = "csv"
) -> Response:
    """Download the labels so far: task, label, posterior error, status, reason, path."""
    del owner
    site = site_of(request)
    names = (await site.store.aread(lambda c: get_campaign(c, number))).problem["classes"]
    return await _download(site, number, label_rows, names, exports.LABELS, format, "labels")


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
    columns = exports.ANSWERS if log else exports.CROWD_KIT
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
        content = await asyncio.to_thread(lambda: exports.parquet(found(), columns))
        return Response(content, media_type="application/vnd.apache.parquet", headers=head)
    write, kind = {
        "csv": (exports.csv_lines, "text/csv; charset=utf-8"),
        "jsonl": (exports.json_lines, "application/x-ndjson"),
    }[format]
    lines = iterate_in_threadpool(write(found(), columns))
    return StreamingResponse(lines, media_type=kind, headers=head)
