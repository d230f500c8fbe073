"""Health, metrics, and the colours of the pages."""

from __future__ import annotations

import time
from functools import cache

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import JSONResponse, PlainTextResponse, Response

from crowdtree.server.web.errors import refusal_of
from crowdtree.server.web.metrics import exposition
from crowdtree.server.web.routing import Read, Routes, State
from crowdtree.show.plots.style import css_variables
from crowdtree.show.plots.tree_drawing import tree_css

routes = Routes("system")
STARTED = time.time()


@routes.api("GET /healthz")
async def health() -> dict[str, str]:
    """Report that the process is alive; the database is not asked."""
    return {"status": "ok"}


@routes.api("GET /readyz")
async def ready(state: State) -> Response:
    """Report whether the server can save answers, by writing to the database."""
    problem = await state.readiness.problem()
    return JSONResponse({"status": "ok"}) if problem is None else refusal_of(problem).response()


@routes.api("GET /metrics", "viewer", response_class=PlainTextResponse)
def metrics(tx: Read) -> PlainTextResponse:
    """Count what happened, in Prometheus' text format."""
    waiting, queues = tx.state.waiters.waiting(), tx.state.store.queued()
    text = exposition(tx.connection, waiting, STARTED, queues)
    return PlainTextResponse(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


@cache
def _css() -> str:
    return css_variables() + tree_css().replace("}", "}\n")


@routes.page("GET /tokens.css")
async def stylesheet() -> Response:
    """Serve the colours, shared with the drawings, and the style of drawings."""
    return Response(_css(), media_type="text/css", headers={"cache-control": "max-age=3600"})
