"""The templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import io as files

WEB = Path(files.__file__).parents[1] / "server" / "web"


@pytest.mark.parametrize("page", sorted((WEB / "templates").glob("*.html")), ids=lambda p: p.name)
def test_no_template_needs_more_than_the_strict_policy_allows(page):
    text = page.read_text()
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert not re.search(r"(src|href)=\"(?:https?:)?//", text)


def test_only_what_the_server_made_is_shown_unescaped():
    safe = {
        match
        for page in (WEB / "templates").glob("*.html")
        for match in re.findall(r"\{\{ *([\w.]+)\|safe", page.read_text())
    }
    assert safe == {
        *("drawn", "menu.chart", "tree", "flow", "instructions", "html", "shown.html", "row.html"),
        "consent",
        *(f"parts.{name}" for name in ("actions", "notes", "labels", "divided", "questions")),
        *("parts.workers", "parts.places", "parts.audit", "parts.monitor", "part", "chart"),
    }
