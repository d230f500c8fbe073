"""Pages for people: rendered on the server, small scripts, no build step."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crowdtree.server.web.pages import (
    audit,
    campaigns,
    dashboard,
    integrations,
    items,
    login,
    people,
    preview,
    prolific,
    questions,
    reports,
    settings,
    style,
    texts,
    wizard,
    words,
    worker,
    workers,
)

__all__ = ["routers", "templates"]


def templates() -> Environment:
    """Make the template environment; everything is escaped."""
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
    return [
        module.router
        for module in (
            login,
            worker,
            preview,
            campaigns,
            wizard,
            settings,
            questions,
            texts,
            reports,
            integrations,
            people,
            prolific,
            dashboard,
            items,
            workers,
            style,
            audit,
        )
    ]
