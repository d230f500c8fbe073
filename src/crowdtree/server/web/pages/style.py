"""The colours of the pages, shared with the drawings and served as a stylesheet."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter
from starlette.responses import Response

from crowdtree.show.plots.style import css_variables
from crowdtree.show.plots.tree_drawing import tree_css

router = APIRouter()


@cache
def _css() -> str:
    return css_variables() + tree_css().replace("}", "}\n")


@router.get("/tokens.css")
async def tokens() -> Response:
    """Serve the tokens and the style of drawings."""
    return Response(_css(), media_type="text/css", headers={"cache-control": "max-age=3600"})
