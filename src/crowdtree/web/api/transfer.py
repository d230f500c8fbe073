"""Items in, labels and answers out."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from crowdtree.files import exports
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.queries.export import AnswerRow, LabelRow, answer_rows, label_rows, pieces
from crowdtree.store.types import JsonObject
from crowdtree.web.auth import OWNER_ONLY
from crowdtree.web.errors import HttpError
from crowdtree.web.requests import Number, state_of
from crowdtree.web.services.items import add_from_file
from crowdtree.web.state import AppState

__all__ = ["router"]

router = APIRouter(prefix="/api/campaigns", tags=["transfer"], dependencies=OWNER_ONLY)
Format = Literal["csv", "jsonl", "parquet"]
Reader = Callable[[Connection, int, list[str], int], Sequence[LabelRow | AnswerRow]]
"""Reads rows of a campaign after an id."""
KINDS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
}
IN_MEMORY = 2**20


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
async def add_items(request: Request, number: Number) -> dict[str, int]:
    """Add items from a CSV or JSON-lines body, a million rows or more; all are checked first.

    Items whose `task` exists are left unchanged, so sending a file again is harmless.
    """
    state = state_of(request)
    kind = KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if kind is None:
        raise HttpError(415, "type", "Send text/csv or application/x-ndjson.")
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        async for chunk in request.stream():
            spool.write(chunk)
        found = await asyncio.to_thread(add_from_file, state.store, number, spool, kind)
        return {"read": found["read"], "added": found["added"]}


@router.get("/{number}/labels", response_class=Response)
async def labels(request: Request, number: Number, format: Format = "csv") -> Response:
    """Download the labels so far: task, label, posterior error, status, reason, path."""
    state = state_of(request)
    names = (await state.store.aread(lambda c: get_campaign(c, number))).classes
    return await _download(state, number, label_rows, names, exports.LABELS, format, "labels")


@router.get("/{number}/answers", response_class=Response)
async def answers(
    request: Request,
    number: Number,
    format: Format = "csv",
    log: bool = False,
) -> Response:
    """Download the answers that counted, as crowd-kit reads them; with `log`, everything."""
    state = state_of(request)
    names = (await state.store.aread(lambda c: get_campaign(c, number))).questions
    read = answer_rows if log else standing_answers
    columns = exports.ANSWERS if log else exports.CROWD_KIT
    return await _download(state, number, read, names, columns, format, "answers")


def standing_answers(
    connection: Connection, number: int, names: list[str], after: int
) -> list[AnswerRow]:
    """Read the standing answers, without skips and undone ones."""
    return answer_rows(connection, number, names, after, standing=True)


async def _download(
    state: AppState,
    number: int,
    read: Reader,
    names: list[str],
    columns: list[str],
    format: Format,
    what: str,
) -> Response:
    def found() -> Iterator[list[JsonObject]]:
        def rows(after: int) -> list[JsonObject]:
            return [dict(row) for row in state.store.read(lambda c: read(c, number, names, after))]

        return pieces(rows)

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
