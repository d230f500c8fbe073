"""The short way for what workers ask all the time: next, answer and skip.

The framework's way through routing, dependencies and checks takes more processor time than the
engine and the database driver together. Here the same models check the body, the same function
finds the worker and the same calls are made. Whatever is not plain (another content type, a body
that does not fit, no token) goes the long way with its body, so that there is one place that says
what is wrong.
"""

from __future__ import annotations

import json

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdtree.errors import CrowdtreeError
from crowdtree.web.api import worker
from crowdtree.web.auth import worker_hash
from crowdtree.web.errors import Problem, refusal
from crowdtree.web.site import Site

__all__ = ["Hot"]

HOT: dict[str, type[BaseModel]] = {
    "/api/worker/next": worker.Asked,
    "/api/worker/answer": worker.Answered,
    "/api/worker/skip": worker.Skipped,
}


class Hot:
    """Serve a worker's next, answer and skip; everything else goes on."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        found = HOT.get(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        messages, body = await _body(receive)
        request = Request(scope)
        try:
            if not request.headers.get("content-type", "").startswith("application/json"):
                raise Problem(415, "json", "")
            given = found.model_validate_json(body)
            who = await worker_hash(request)
        except (ValidationError, Problem):
            await self.app(scope, _again(messages, receive), send)
            return
        await self._serve(given, who, scope, receive, send)

    async def _serve(
        self, given: BaseModel, who: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            if isinstance(given, worker.Asked):
                gone = Request(scope, receive).is_disconnected
                made = await worker.found_question(self.site, given, who, gone)
            elif isinstance(given, worker.Answered):
                made = await worker.taken_answer(self.site, given, who)
            else:
                assert isinstance(given, worker.Skipped)
                made = await worker.taken_skip(self.site, given, who)
        except CrowdtreeError as error:
            refused: Response = refusal(error)
            await refused(scope, receive, send)
            return
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()
        headers = [
            (b"content-length", str(len(text)).encode()),
            (b"content-type", b"application/json"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


async def _body(receive: Receive) -> tuple[list[Message], bytes]:
    """Read the whole body; it is small, or :class:`crowdtree.web.limits.BodyLimit` objects."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages, b"".join(message.get("body", b"") for message in messages)


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Give the messages that were read already once more, then go on."""
    left = iter(messages)

    async def replay() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return replay
