"""Webhooks (delivery follows)."""

from __future__ import annotations

from crowdtree.web.site import Site

__all__ = ["deliver"]


async def deliver(site: Site) -> None:
    """Deliver what is due."""
    del site
