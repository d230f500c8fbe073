"""Routes that know who asks before they read what is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, get_type_hints

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.responses import Response
from starlette.routing import request_response

from crowdtree.server.web.auth import (
    auditor_hash,
    known_auditor,
    known_owner,
    owner_needed,
    worker_hash,
)
from crowdtree.server.web.roles import SAFE

Check = Callable[[Request], Awaitable[object]]
CHECKS: dict[Callable[..., object], Check] = {
    owner_needed: known_owner,
    worker_hash: worker_hash,
    auditor_hash: known_auditor,
}
"""What a route depends on, and the check that comes before its body is read."""


class GuardedRoute(APIRoute):
    """A route that checks the caller's token before it reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler."""
        handler = super().get_route_handler()
        checks = [CHECKS[call] for call in _calls(self.dependant) if call in CHECKS]

        async def guarded(request: Request) -> Response:
            if request.method not in SAFE:
                for check in checks:
                    await check(request)
            try:
                return await handler(request)
            finally:
                await request.close()  # close uploaded files

        return guarded


class WorkerRoute(APIRoute):
    """A route of workers, without the framework's dependencies, which take long.

    They would take more processor time than the engine and the database driver together. The
    endpoint gets the request, the hash of the worker's token, which the store looks up when it does
    the work, and the body as the model that the parameter `given` names, if there is one.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app = request_response(self.get_route_handler())

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Make the handler."""
        model: type[BaseModel] | None = get_type_hints(self.endpoint).get("given")

        async def handle(request: Request) -> Response:
            values: dict[str, object] = {"who": await worker_hash(request)}
            if model is not None:
                values["given"] = _parsed(model, await request.body())
            content = to_json(await self.endpoint(request, **values))
            return Response(content, media_type="application/json")

        return handle


def _parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False)) from None


def _calls(dependant: Dependant) -> Iterator[Callable[..., object]]:
    for inner in dependant.dependencies:
        if inner.call is not None:
            yield inner.call
        yield from _calls(inner)
