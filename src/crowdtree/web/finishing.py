"""Ending campaigns in the background."""

from __future__ import annotations

from crowdtree.store.finish import Finisher
from crowdtree.web.site import Site

__all__ = ["finish_some"]


async def finish_some(site: Site) -> None:
    """End what is to be ended; a large campaign takes several rounds."""
    finisher = Finisher(site.store.clock)
    while await site.store.awrite(finisher.round):
        pass
