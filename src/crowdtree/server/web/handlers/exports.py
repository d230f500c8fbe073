"""Labels, answers, workers, payments and reports of a campaign, to download."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from crowdtree.io import exports
from crowdtree.server.store.queries.export import report_rows
from crowdtree.server.web.routing import Id, Read, Reply, Routes, State
from crowdtree.server.web.services.exports import Export, certified_labels, export
from crowdtree.server.web.state import AppState

routes = Routes("transfer")
Format = Literal["csv", "jsonl", "parquet"]
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
MAX_SHOWN = 200


def _download(what: str) -> Callable[[Any], Any]:
    path = f"GET /api/campaigns/{{campaign_id}}/{what}"
    return routes.api(path, "viewer", response_class=Response)


@_download("labels")
def labels(state: State, campaign_id: Id, format: Format = "csv", columns: bool = True) -> Response:
    """Download the labels so far, one row per item; docs/files.md explains the columns.

    Those of the item file follow, unless `columns` is false. The header `x-crowdtree-columns` says
    which of them were renamed.
    """
    return _file(state, campaign_id, "labels", format, columns)


@_download("answers")
def answers(state: State, campaign_id: Id, format: Format = "csv", log: bool = False) -> Response:
    """Download the answers that were not excluded, as crowd-kit reads them.

    With `log`, everything that workers sent.
    """
    return _file(state, campaign_id, "log" if log else "answers", format)


@_download("workers/export")
def workers(state: State, campaign_id: Id, format: Format = "csv") -> Response:
    """Download the workers with what they are to be paid for: accepted answers, earned, code."""
    return _file(state, campaign_id, "workers", format)


@_download("payments")
def payments(state: State, campaign_id: Id, format: Format = "csv") -> Response:
    """Download what each worker earned: accepted answers, amount, bonus that was sent, code."""
    return _file(state, campaign_id, "payments", format)


@_download("reports")
def reports(state: State, campaign_id: Id, format: Format = "csv") -> Response:
    """Download what workers reported about items, without what they took back."""
    return _file(state, campaign_id, "reports", format)


def _file(
    state: AppState, campaign_id: int, what: Export, format: Format, columns: bool = True
) -> Response:
    made = export(state.store, campaign_id, what, columns)
    name = "answers" if what == "log" else what
    head = {"content-disposition": f'attachment; filename="{name}-{campaign_id}.{format}"'}
    if what == "labels":
        coverage = certified_labels(state.store, campaign_id)
        if coverage is not None:
            head["x-crowdtree-audit"] = coverage.sentence.encode("ascii", "replace").decode()
    if made.note:
        head["x-crowdtree-columns"] = made.note.encode("ascii", "backslashreplace").decode()
    chunks = exports.exported(made.pieces, made.columns, format)
    if format == "parquet":  # made at once
        return Response(next(chunks), media_type=TYPES[format], headers=head)
    lines = iterate_in_threadpool(chunks)
    return StreamingResponse(lines, media_type=TYPES[format], headers=head)


@routes.page("GET /c/{campaign_id}/reports", "viewer", "reports.html")
def page(tx: Read, campaign_id: Id) -> Reply:
    """List the last reports, the newest first."""
    campaign = tx.campaign(campaign_id)
    texts = [entry.get("text") or entry["name"] for entry in campaign.problem["questions"]]
    rows = report_rows(tx.connection, campaign_id, texts, most=MAX_SHOWN, newest=True)
    return {"campaign": campaign, "rows": rows, "more": len(rows) == MAX_SHOWN}
