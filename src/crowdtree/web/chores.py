"""Housekeeping in the background."""

from __future__ import annotations

from functools import partial

from sqlalchemy.engine import Connection

from crowdtree.store.waiting import Findings
from crowdtree.web.site import Site

__all__ = ["keep_house", "see_what_waits"]


async def keep_house(site: Site) -> None:
    """Judge workers, end campaigns (a large one takes several rounds), see what waits."""
    while await site.store.awrite(site.housekeeper.round):
        pass
    if site.watch.due():
        await see_what_waits(site)


async def see_what_waits(site: Site) -> None:
    """Find items that nobody here may answer, and set aside those that have waited too long."""
    for found in await site.store.aread(site.watch.look):
        await site.store.awrite(partial(_apply, site, found))


def _apply(site: Site, found: Findings, connection: Connection) -> int:
    return site.watch.apply(connection, found)
