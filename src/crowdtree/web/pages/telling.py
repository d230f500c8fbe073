"""Slow work that says how far it is, line by line, in the answer itself.

The answer is JSON lines: ``{"share": 0.4, "words": "..."}`` while it goes on, and at the end
``{"go": "/where"}`` or ``{"error": code, "message": "..."}``. So it works with any number of
server processes: nobody has to ask another one how far it is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from crowdtree.errors import CrowdtreeError
from crowdtree.web.pages.base import refusal, wants_json
from crowdtree.web.studio import Tell, silent

__all__ = ["told"]

Make = Callable[[Tell], Awaitable[str]]
BEAT_SECONDS = 5.0
"""A line at least so often, so that nothing between here and the browser gives up."""


async def told(request: Request, make: Make) -> Response:
    """Do slow work: telling a script how far it is, or making a plain browser wait."""
    if not wants_json(request):
        return RedirectResponse(await make(silent), 303)
    return StreamingResponse(_lines(make), media_type="application/x-ndjson")


async def _lines(make: Make) -> AsyncIterator[str]:
    news: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def work() -> None:
        try:
            where = await make(lambda share, words: news.put_nowait(_news(share, words)))
            news.put_nowait({"go": where})
        except CrowdtreeError as error:
            _, code, message = refusal(error)
            news.put_nowait({"error": code, "message": message})
        except Exception:
            news.put_nowait({"error": "fault", "message": "Something went wrong on the server."})
            raise

    task = asyncio.create_task(work())
    last: dict[str, Any] = {"share": 0.0, "words": "Starting"}
    try:
        while "share" in last:
            yield json.dumps(last) + "\n"
            try:
                last = await asyncio.wait_for(news.get(), BEAT_SECONDS)
            except TimeoutError:
                continue
        yield json.dumps(last) + "\n"
    finally:
        task.cancel()  # whoever asked has gone, or it is done


def _news(share: float, words: str) -> dict[str, Any]:
    return {"share": round(share, 3), "words": words}
