"""Routes: what is asked for, the least role that may ask, and one query or command that answers.

A handler parses, makes one query or one command, and returns what is shown. Its first parameter
says what it needs:

========== ================================================================================
``Read``   a snapshot of the database; the handler runs in a thread
``Write``  a transaction of the database, which is on disk before the response; errors of the
           library (:class:`crowdtree.CrowdtreeError`) undo it
otherwise  the application (``State``), the request; the handler itself reads and writes
========== ================================================================================

The token of the caller is checked before the body is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeVar, get_type_hints

from fastapi import Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json
from sqlalchemy.engine import Connection
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.tokens import OwnerRole
from crowdtree.server.store.types import AnyPolicy
from crowdtree.server.web.auth import (
    Owner,
    auditor_hash,
    known_auditor,
    known_owner,
    owner_needed,
    worker_hash,
)
from crowdtree.server.web.errors import SAFE
from crowdtree.server.web.pages import render
from crowdtree.server.web.state import AppState, state_of

Id = Annotated[int, Path(ge=1, le=2**53)]
Reply = Mapping[str, object]
"""What a handler returns as a JSON object, or as the values of a page."""
Handler = Callable[..., Any]
AnyHandler = TypeVar("AnyHandler", bound=Handler)
EVENT_SECONDS = 1.0


class Body(BaseModel):
    """What somebody sends; fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


async def _state(request: Request) -> AppState:
    return state_of(request)


State = Annotated[AppState, Depends(_state)]


class Transaction:
    """A transaction of the database for one request."""

    def __init__(self, request: Request, connection: Connection) -> None:
        self.request, self.connection = request, connection
        self.state = state_of(request)

    @property
    def now(self) -> float:
        """Seconds since 1970, by the store's clock."""
        return self.state.now

    @property
    def owner(self) -> Owner:
        """The owner who asks."""
        found: Owner = self.request.state.owner
        return found

    def campaign(self, campaign_id: int, lock: bool = False) -> Campaign:
        """Read a campaign, or refuse."""
        return get_campaign(self.connection, campaign_id, lock=lock)

    def policy(self, campaign: Campaign) -> AnyPolicy:
        """The policy of a campaign."""
        return self.state.policy(campaign)


class Read(Transaction):
    """A snapshot of the database for one request."""


class Write(Transaction):
    """A transaction that may change the database."""


# ------------------------------------------------------------------------------- routes


class Route(APIRoute):
    """A route that checks the caller's token before it reads the body.

    `role` is the least role of owners who may use it, `is_page` says whether errors are pages.
    """

    role: OwnerRole | None = None
    is_page: bool = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.app: ASGIApp = AsyncExitStackMiddleware(self.app)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler of the framework."""
        handler = super().get_route_handler()
        calls = {dependency.call for dependency in self.dependant.dependencies}

        async def guarded(request: Request) -> Response:
            if request.method not in SAFE:
                if owner_needed in calls:
                    await known_owner(request)
                elif auditor_hash in calls:
                    await known_auditor(request)
            try:
                return await handler(request)
            finally:
                await request.close()  # close uploaded files

        return guarded


class WorkerRoute(APIRoute):
    """A route of workers, without the framework's dependencies.

    They would take more processor time than the engine and the database driver together. The
    endpoint gets what its parameters name: `state`, the `request`, `who` asks (the hash of the
    worker's token, which the store looks up when it does the work), and the body as the model of
    the parameter `given`.
    """

    role: OwnerRole | None = None
    is_page: bool = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        endpoint = self.endpoint
        names = inspect.signature(endpoint).parameters.keys()
        model: type[BaseModel] | None = get_type_hints(endpoint).get("given")

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive, send)
            values: dict[str, object] = {"who": worker_hash(request)}
            if "request" in names:
                values["request"] = request
            if "state" in names:
                values["state"] = request.app.state.crowdtree
            if model is not None:
                values["given"] = _parsed(model, await request.body())
            content = to_json(await endpoint(**values))
            await Response(content, media_type="application/json")(scope, receive, send)

        self.app = app


def _parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False)) from None


class Routes:
    """The routes of a subject.

    Parameters
    ----------
    tag
        Heading in the documentation of the API.
    kind
        How requests are handled.
    """

    def __init__(self, tag: str = "", kind: type[Route] | type[WorkerRoute] = Route) -> None:
        self.tag, self.kind = tag, kind
        self.routes: list[Route | WorkerRoute] = []

    def api(
        self, method_and_path: str, role: OwnerRole | None = None, **options: Any
    ) -> Callable[[AnyHandler], AnyHandler]:
        """Add a route of the API, such as ``GET /api/campaigns``.

        `role` is the least role of owners who may use it; without one, the handler finds out who
        asks.
        """

        def add(handler: AnyHandler) -> AnyHandler:
            self._add(method_and_path, role, _endpoint(handler), handler, **options)
            return handler

        return add

    def page(
        self, method_and_path: str, role: OwnerRole | None = None, template: str = ""
    ) -> Callable[[AnyHandler], AnyHandler]:
        """Add a route of the pages: its errors are pages, and it is not documented.

        The handler returns the values of the template, or without one a response.
        """

        def add(handler: AnyHandler) -> AnyHandler:
            endpoint = _endpoint(handler, template)
            made = self._add(method_and_path, role, endpoint, handler, include_in_schema=False)
            made.is_page = True
            return handler

        return add

    def _add(
        self,
        method_and_path: str,
        role: OwnerRole | None,
        endpoint: Handler,
        handler: Handler,
        **options: Any,
    ) -> Route | WorkerRoute:
        method, path = method_and_path.split(" ")
        made = self.kind(
            path,
            endpoint,
            methods=[method],
            name=handler.__name__,
            tags=[self.tag] if self.tag else None,
            dependencies=None if role is None else [Depends(owner_needed)],
            **options,
        )
        made.role = role
        self.routes.append(made)
        return made


def _endpoint(handler: Handler, template: str = "") -> Handler:
    """Make what the framework calls: in a transaction if wanted, rendered by a template if any."""
    signature = inspect.signature(handler, eval_str=True)
    names = list(signature.parameters)
    first = signature.parameters[names[0]].annotation if names else None
    in_transaction = first in (Read, Write)
    if not in_transaction and not template:
        return handler
    is_async = inspect.iscoroutinefunction(handler)

    async def endpoint(request: Request, **values: Any) -> Any:
        def shown(found: Any) -> Any:
            if not template or isinstance(found, Response):
                return found
            return render(template, owner=request.state.owner, **found)

        store = state_of(request).store
        if first is Write:
            return shown(await store.awrite(lambda c: handler(Write(request, c), **values)))
        if first is Read:
            return await asyncio.to_thread(
                lambda: shown(store.read(lambda c: handler(Read(request, c), **values)))
            )
        if "request" in names:
            values["request"] = request
        if is_async:
            return shown(await handler(**values))
        return await asyncio.to_thread(lambda: shown(handler(**values)))

    rest = [p for name, p in signature.parameters.items() if name != "request"][in_transaction:]
    own = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in rest]
    result = Response if template else signature.return_annotation
    endpoint.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *keywords], return_annotation=result
    )
    endpoint.__doc__ = handler.__doc__
    return endpoint


class Dispatch:
    """Find the route of a request: those without parameters by their path, others in turn."""

    def __init__(self, router: Any) -> None:
        self.router: ASGIApp = router
        self.by_path = {
            (method, route.path): route
            for route in reversed(router.routes)
            if isinstance(route, Route | WorkerRoute) and not route.param_convertors
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        route = self.by_path.get((scope.get("method", ""), scope.get("path", "")))
        if route is None:
            await self.router(scope, receive, send)
            return
        scope.update(route=route, path_params={}, endpoint=route.endpoint)
        await route.app(scope, receive, send)


# ------------------------------------------------------------------------------ requests


def address_of(request: Request, path: str) -> str:
    """The whole address of a path: at the public address, or where the page was opened."""
    base = state_of(request).options.url or request.headers.get("origin") or request.base_url
    return f"{str(base).rstrip('/')}{path}"


async def disconnection(request: Request) -> None:
    """Wait until the client disconnects; its body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def event_response(
    request: Request,
    campaign_id: int,
    name: str,
    read: Callable[[], Awaitable[Mapping[str, object]]],
    poll_seconds: float,
) -> StreamingResponse:
    """Stream what `read` returns as server-sent events when a campaign changes.

    At most one event per second; `poll_seconds` without a change, it is read again, because
    another server process may have changed something. The response itself waits for the client to
    disconnect; nobody else may, because what one receives the other misses.
    """
    state = state_of(request)
    await state.store.aread(lambda c: get_campaign(c, campaign_id))
    events = _events(state, campaign_id, name, read, poll_seconds)
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(
    state: AppState,
    campaign_id: int,
    name: str,
    read: Callable[[], Awaitable[Mapping[str, object]]],
    poll_seconds: float,
) -> AsyncIterator[str]:
    changed = asyncio.Event()
    watchers = state.waiters.changes[campaign_id]
    watchers.add(changed)
    try:
        while not state.stopping:
            changed.clear()
            yield f"event: {name}\ndata: {json.dumps(await read())}\n\n"
            await asyncio.sleep(EVENT_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(poll_seconds):
                    await changed.wait()
    finally:
        watchers.discard(changed)
