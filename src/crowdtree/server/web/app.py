"""The application: routes, limits, headers, and background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from crowdtree.server.store import ExpireLeases, Store
from crowdtree.server.web import pages
from crowdtree.server.web.api import (
    audits,
    corrections,
    duplicates,
    items,
    media,
    owner,
    people,
    prolific,
    sessions,
    system,
    transfer,
    worker,
)
from crowdtree.server.web.errors import add_handlers
from crowdtree.server.web.headers import Guard
from crowdtree.server.web.limits import BodyLimit
from crowdtree.server.web.pages.base import error_page
from crowdtree.server.web.state import HERE, AppState, Options
from crowdtree.server.web.stopping import before_stopping
from crowdtree.server.webhooks.delivery import Deliveries

log = logging.getLogger("crowdtree.server.web")
SWEEP_SECONDS = 1.0


class Application(FastAPI):
    """The framework behind the guard, whose headers failures have as well."""

    def build_middleware_stack(self) -> ASGIApp:
        """Put the guard before everything else."""
        state: AppState = self.state.crowdtree
        media = state.media.origin if state.media else ""
        guarded = Guard(super().build_middleware_stack(), media)
        hosts = state.options.trusted_hosts
        return TrustedHostMiddleware(guarded, allowed_hosts=hosts) if hosts else guarded


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
    _add_routes(app, state)
    add_handlers(app, error_page)
    app.add_middleware(BodyLimit)
    return app


def _version() -> str:
    try:
        return version("crowdtree")
    except PackageNotFoundError:
        return "0"


def _add_routes(app: FastAPI, state: AppState) -> None:
    for module in (
        *(worker, sessions, people, transfer, media, audits, corrections, prolific, duplicates),
        *(items, owner, system),
    ):
        app.include_router(module.router)
    state.templates = pages.templates()
    for router in pages.routers():
        app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(HERE) / "static"), name="static")


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
