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
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from crowdtree.errors import CrowdtreeError
from crowdtree.web.pages.base import FAULT, refusal, wants_json
from crowdtree.web.studio import Tell, silent

__all__ = ["told"]

Make = Callable[[Tell], Awaitable[str]]
BEAT_SECONDS = 5.0
"""A line at least so often, so that nothing between here and the browser gives up."""
BEGUN = 0.1
"""The share at which what was sent has been read."""


async def told(request: Request, make: Make) -> Response:
    """Do slow work: telling a script how far it is, or making a plain browser wait.

    What is wrong at the very beginning (a file that cannot be read) is refused with its status.
    """
    if not wants_json(request):
        return RedirectResponse(await make(silent), 303)
    job = _Job(make)
    first = await job.begun()
    if "error" in first:
        return JSONResponse(first, job.status)
    return StreamingResponse(job.lines(first), media_type="application/x-ndjson")


class _Job:
    """Work under way, and its news."""

    def __init__(self, make: Make) -> None:
        self.news: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.status = 200
        self.task = asyncio.create_task(self._work(make))

    async def _work(self, make: Make) -> None:
        try:
            where = await make(lambda share, words: self.news.put_nowait(_news(share, words)))
            self.news.put_nowait({"go": where})
        except CrowdtreeError as error:
            self.status, code, message = refusal(error)
            self.news.put_nowait({"error": code, "message": message})
        except Exception:
            self.status = 500
            self.news.put_nowait({"error": "fault", "message": FAULT})
            raise

    async def begun(self) -> dict[str, Any]:
        """Wait until the work is beyond reading what was sent, or over."""
        try:
            while True:
                first = await self.news.get()
                if first.get("share", 1.0) >= BEGUN:
                    return first
        except asyncio.CancelledError:  # whoever asked has gone
            self.task.cancel()
            raise

    async def lines(self, last: dict[str, Any]) -> AsyncIterator[str]:
        """Say how it goes on, until it is over."""
        try:
            while "share" in last:
                yield json.dumps(last) + "\n"
                try:
                    last = await asyncio.wait_for(self.news.get(), BEAT_SECONDS)
                except TimeoutError:
                    continue
            yield json.dumps(last) + "\n"
        finally:
            self.task.cancel()  # whoever asked has gone, or it is done


def _news(share: float, words: str) -> dict[str, Any]:
    return {"share": round(share, 3), "words": words}
