"""Teach the search the words of other tools, from a table of the glossary."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

GLOSSARY = Path(__file__).parent.parent / "glossary.md"
HEADING = "## Words of other tools"


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("doctree-read", add_words)
    return {"parallel_read_safe": True}


@cache
def words() -> dict[str, list[tuple[str, str]]]:
    """Words and anchors by page: those of the rows that link there."""
    table = GLOSSARY.read_text(encoding="utf-8").partition(HEADING)[2]
    found = defaultdict(list)
    for terms, meaning in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.M):
        for page, anchor in re.findall(r"\]\(([\w/-]+)\.md(?:#([\w-]+))?\)", meaning):
            found[page] += [(word.strip(), anchor) for word in terms.split(",")]
    return dict(found)


def add_words(app: Any, tree: Any) -> None:
    """Add index entries, which a search lists first, and keywords for several words."""
    from docutils import nodes
    from sphinx import addnodes

    linked = words().get(app.env.docname, [])
    if linked:
        entries = [("single", word, anchor, "main", None) for word, anchor in linked]
        single = {part for word, _ in linked for part in re.findall(r"\w{2,}", word.lower())}
        tree += addnodes.index(entries=entries, inline=False)
        tree += nodes.meta(name="keywords", content=",".join(sorted(single)))
