"""Markdown is rendered safely."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.words import markdown


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "![x](data:text/html;base64,PHNjcmlwdD4=)",
        '[x](https://a "onmouseover=alert(1)")',
        "<svg><style>@import'x'</style></svg>",
        "![x](http://plain.example/track.png)",
    ],
)
def test_markdown_is_sanitised(evil):
    made = markdown(evil)
    assert not re.search(r"<(script|svg|style|iframe)", made)
    assert not re.search(r"<[^>]*\son\w+=", made)
    assert not re.search(r'(href|src)="(?!https:|mailto:)', made)


def test_markdown_is_markdown():
    made = markdown("# Head\n\n- **one**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    for tag in ("<h1>", "<li>", "<strong>", "<table>", "<td>"):
        assert tag in made
