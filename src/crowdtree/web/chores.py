"""Maintenance in the background."""

from __future__ import annotations

from functools import partial

from sqlalchemy.engine import Connection

from crowdtree.store.background.stalled import Findings
from crowdtree.web.site import Site

__all__ = ["check_stalled", "maintain"]


async def maintain(site: Site) -> None:
    """Apply judgements, finish campaigns (in several rounds if large), check stalled items."""
    while await site.store.awrite(site.maintenance.round):
        pass
    if site.stalled.due():
        await check_stalled(site)


async def check_stalled(site: Site) -> None:
    """Find items that no present worker may answer, and set aside those stalled too long."""
    for found in await site.store.aread(site.stalled.look):
        await site.store.awrite(partial(_apply, site, found))


def _apply(site: Site, found: Findings, connection: Connection) -> int:
    return site.stalled.apply(connection, found)
