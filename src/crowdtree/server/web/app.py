"""The application: routes, the one middleware, and background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from crowdtree.server.store import ExpireLeases, Store
from crowdtree.server.web.handlers import all_routes
from crowdtree.server.web.middleware import Middleware
from crowdtree.server.web.pages import HERE, respond
from crowdtree.server.web.processes import before_stopping
from crowdtree.server.web.routing import Dispatch
from crowdtree.server.web.state import AppState, Options
from crowdtree.server.webhooks.delivery import Deliveries

log = logging.getLogger("crowdtree.server.web")
SWEEP_SECONDS = 1.0


class Application(FastAPI):
    """The routes of the framework behind the one middleware."""

    def build_middleware_stack(self) -> ASGIApp:
        """Replace the middlewares of the framework."""
        state: AppState = self.state.crowdtree
        media = state.media.origin if state.media else ""
        hosts = state.options.trusted_hosts
        app: ASGIApp = Middleware(Dispatch(self.router), respond, media)
        return TrustedHostMiddleware(app, allowed_hosts=hosts) if hosts else app


def create_app(store: Store, options: Options | None = None, **changes: Any) -> FastAPI:
    """Make the application on a store. It runs no rules: a :class:`Runner` beside it does.

    Parameters
    ----------
    options
        How the server runs; or give single options by name.

    Examples
    --------
    >>> with Store("sqlite://").opened() as store:
    ...     create_app(store).title
    'crowdtree'
    """
    state = AppState(store, options or Options(**changes))
    app = Application(
        title="crowdtree",
        version=_version(),
        lifespan=_lifespan,
        docs_url=None,
        redirect_slashes=False,  # it would redirect to whatever the Host header names
        redoc_url=None,
        openapi_url="/api/openapi.json" if state.options.docs else None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # /metrics has its own
    )
    app.state.crowdtree = state
    app.router.routes.extend(all_routes())
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    return app


def _version() -> str:
    try:
        return version("crowdtree")
    except PackageNotFoundError:
        return "0"


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: AppState = app.state.crowdtree
    state.loop = asyncio.get_running_loop()
    listener = state.listen(state.loop)
    state.store.listeners.append(listener)
    before_stopping(state.stop)
    deliveries = Deliveries(
        state.store, lambda secret: state.secret_key.open(secret), state.options.private_webhooks
    )
    tasks = [asyncio.create_task(task) for task in _tasks(state, deliveries)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await deliveries.close()
        state.store.listeners.remove(listener)
        state.plans.close()


def _tasks(state: AppState, deliveries: Deliveries) -> list[Coroutine[None, None, None]]:
    return [
        _every(SWEEP_SECONDS, lambda: state.store.aask(ExpireLeases())),
        _every(SWEEP_SECONDS, deliveries.start_due),
    ]


async def _every(seconds: float, task: Callable[[], Awaitable[object]]) -> None:
    """Run a task repeatedly; a failure is logged and the next round tries again."""
    while True:
        try:
            await task()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.warning("a background task failed: %s", error)
        await asyncio.sleep(seconds)
