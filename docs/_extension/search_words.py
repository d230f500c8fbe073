"""Teach the search the words of other tools, from ``search_words.toml``."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

WORDS = Path(__file__).with_suffix(".toml")


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("doctree-read", add_words)
    return {"parallel_read_safe": True}


@cache
def words() -> dict[str, list[tuple[str, str]]]:
    """Words and anchors by page."""
    found = defaultdict(list)
    for terms, targets in tomllib.loads(WORDS.read_text(encoding="utf-8")).items():
        for target in targets:
            page, _, anchor = target.partition("#")
            found[page] += [(word, anchor) for word in terms.split(", ")]
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
