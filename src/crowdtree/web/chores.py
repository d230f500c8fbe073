"""Housekeeping in the background."""

from __future__ import annotations

from crowdtree.web.site import Site

__all__ = ["keep_house"]


async def keep_house(site: Site) -> None:
    """Judge workers and end campaigns; a large one takes several rounds."""
    while await site.store.awrite(site.housekeeper.round):
        pass
