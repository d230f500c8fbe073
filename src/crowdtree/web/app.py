"""The application: routes, limits, headers, and the housekeeping beside them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from crowdtree.store import ExpireLeases, Store
from crowdtree.web.errors import add_handlers
from crowdtree.web.headers import Guard
from crowdtree.web.limits import BodyLimit
from crowdtree.web.site import HERE, Options, Site

__all__ = ["create_app"]

log = logging.getLogger("crowdtree.web")
SWEEP_SECONDS = 1.0


def create_app(store: Store, options: Options | None = None, **changes: Any) -> FastAPI:
    """Make the application on a store.

    Parameters
    ----------
    store
        The database, with its clock and its random numbers.
    options
        How the server runs; or single ones by name.

    Examples
    --------
    >>> with Store("sqlite://").opened() as store:
    ...     create_app(store).title
    'crowdtree'
    """
    site = Site(store, options or Options(**changes))
    app = FastAPI(
        title="crowdtree",
        version=_version(),
        lifespan=_lifespan,
        docs_url=None,
        redirect_slashes=False,  # it would go where the Host header says
        redoc_url=None,
        openapi_url="/api/openapi.json" if site.options.docs else None,
    )
    app.state.site = site
    _add_routes(app, site)
    add_handlers(app)
    _add_short_way(app, site)
    app.add_middleware(BodyLimit)
    app.add_middleware(Guard)
    if site.options.trusted_hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(site.options.trusted_hosts))
    return app


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("crowdtree")
    except PackageNotFoundError:
        return "0"


def _add_routes(app: FastAPI, site: Site) -> None:
    from crowdtree.web import pages
    from crowdtree.web.api import media, owner, sessions, system, transfer, worker

    for room in (worker, sessions, transfer, media, owner, system):
        app.include_router(room.router)
    site.templates = pages.templates()
    for router in pages.routers():
        app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(HERE) / "static"), name="static")


def _add_short_way(app: FastAPI, site: Site) -> None:
    from crowdtree.web.hot import Hot

    app.add_middleware(Hot, site=site)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    site: Site = app.state.site
    site.loop = asyncio.get_running_loop()
    listener = site.listen(site.loop)
    site.store.listeners.append(listener)
    chores = [asyncio.create_task(chore) for chore in _chores(site)]
    try:
        yield
    finally:
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        site.store.listeners.remove(listener)
        site.plans.close()


def _chores(site: Site) -> list[Any]:
    from crowdtree.web import chores, hooks

    return [
        _every(SWEEP_SECONDS, lambda: site.store.aask(ExpireLeases())),
        _every(SWEEP_SECONDS, lambda: chores.maintain(site)),
        _every(SWEEP_SECONDS, lambda: hooks.deliver(site)),
    ]


async def _every(seconds: float, chore: Any) -> None:
    """Do a chore again and again; a failure is logged and the next round tries again."""
    while True:
        try:
            await chore()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.warning("a chore failed: %s", error)
        await asyncio.sleep(seconds)
