"""Items in, labels and answers out."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Literal

from fastapi import APIRouter, Request
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from crowdtree.io import exports
from crowdtree.server.web.auth import OWNER_ONLY
from crowdtree.server.web.errors import HttpError
from crowdtree.server.web.requests import Number, Reply, State, state_of
from crowdtree.server.web.routing import GuardedRoute
from crowdtree.server.web.services.exports import Export, certified_labels, export
from crowdtree.server.web.services.items import add_from_file
from crowdtree.server.web.state import AppState

router = APIRouter(
    route_class=GuardedRoute, prefix="/api/campaigns", tags=["transfer"], dependencies=OWNER_ONLY
)
Format = Literal["csv", "jsonl", "parquet"]
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
KINDS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
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
async def add_items(request: Request, number: Number) -> Reply:
    """Add items from a CSV, XLSX or JSON-lines body, a million rows or more; all are checked first.

    Items whose `task` exists are left unchanged, so sending a file again is harmless. `set_aside`
    counts those that were set aside: `POST /api/campaigns/{number}/reopen` asks about them again.
    `conflicts` lists the lines whose item is there with other content, `missing` files that items
    show and that were never uploaded. `warnings` says what may be wrong, in words.
    """
    state = state_of(request)
    kind = KINDS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if kind is None:
        raise HttpError(415, "type", "Send text/csv, application/x-ndjson or an XLSX workbook.")
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as spool:
        async for chunk in request.stream():
            spool.write(chunk)
        media = state.media
        return await asyncio.to_thread(add_from_file, state.store, number, spool, kind, media)


@router.get("/{number}/labels", response_class=Response)
async def labels(
    state: State, number: Number, format: Format = "csv", columns: bool = True
) -> Response:
    """Download the labels so far, one row per item; docs/files.md explains the columns.

    Those of the item file follow, unless `columns` is false. The header `x-crowdtree-columns` says
    which of them were renamed.
    """
    return await _download(state, number, "labels", format, columns)


@router.get("/{number}/answers", response_class=Response)
async def answers(
    state: State, number: Number, format: Format = "csv", log: bool = False
) -> Response:
    """Download the answers that were not excluded, as crowd-kit reads them.

    With `log`, everything that workers sent.
    """
    return await _download(state, number, "log" if log else "answers", format)


@router.get("/{number}/workers/export", response_class=Response)
async def workers(state: State, number: Number, format: Format = "csv") -> Response:
    """Download the workers with what they are to be paid for: accepted answers, earned, code."""
    return await _download(state, number, "workers", format)


@router.get("/{number}/payments", response_class=Response)
async def payments(state: State, number: Number, format: Format = "csv") -> Response:
    """Download what each worker earned: accepted answers, amount, bonus that was sent, code."""
    return await _download(state, number, "payments", format)


@router.get("/{number}/reports", response_class=Response)
async def reports(state: State, number: Number, format: Format = "csv") -> Response:
    """Download what workers reported about items, without what they took back."""
    return await _download(state, number, "reports", format)


async def _download(
    state: AppState, number: int, what: Export, format: Format, columns: bool = True
) -> Response:
    made = await asyncio.to_thread(export, state.store, number, what, columns)
    name = "answers" if what == "log" else what
    head = {"content-disposition": f'attachment; filename="{name}-{number}.{format}"'}
    if what == "labels":
        found = await asyncio.to_thread(certified_labels, state.store, number)
        if found is not None:
            head["x-crowdtree-audit"] = found.sentence.encode("ascii", "replace").decode()
    if made.note:
        head["x-crowdtree-columns"] = made.note.encode("ascii", "backslashreplace").decode()
    chunks = await asyncio.to_thread(exports.exported, made.pieces, made.columns, format)
    if format == "parquet":  # made at once
        return Response(next(chunks), media_type=TYPES[format], headers=head)
    lines = iterate_in_threadpool(chunks)
    return StreamingResponse(lines, media_type=TYPES[format], headers=head)
