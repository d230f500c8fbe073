"""Pages for people: rendered on the server, small scripts, no build step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter

__all__ = ["routers", "templates"]


def templates() -> Any:
    """Make the template environment; everything is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent.parent / "templates"
    return Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined
    )


def routers() -> list[APIRouter]:
    """List the routers of the pages."""
    from crowdtree.web.pages import entry

    return [entry.router]
