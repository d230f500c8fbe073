"""Pages for people: rendered on the server, small scripts, no build step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter

__all__ = ["routers", "templates"]


def templates() -> Any:
    """Make the template environment; everything is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from crowdtree.web.pages import words

    folder = Path(__file__).parent.parent / "templates"
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update({name: getattr(words, name) for name in words.__all__})
    return made


def routers() -> list[APIRouter]:
    """List the routers of the pages."""
    from crowdtree.web.pages import (
        asking,
        campaigns,
        connections,
        dashboard,
        entry,
        items,
        people,
        sharing,
        style,
        wizard,
        worker,
    )

    owned = (campaigns, wizard, sharing, asking, connections, dashboard, items, people)
    rooms = (entry, worker, *owned, style)
    return [room.router for room in rooms]
