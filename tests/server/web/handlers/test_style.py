"""The stylesheet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import io as files
from crowdtree.show.plots.style import css_variables

WEB = Path(files.__file__).parents[1] / "server" / "web"


def test_the_stylesheet_takes_every_colour_from_the_tokens():
    css = (WEB / "static" / "crowdtree.css").read_text()
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", css) == []
    used = set(re.findall(r"var\((--[a-z-]+)\)", css))
    known = set(re.findall(r"(--ct-[a-z-]+):", css_variables()))
    assert used
    assert used <= known
