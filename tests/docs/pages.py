"""The hand-written pages, and what they cite."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("python", "commands", "http", "settings", "metrics", "texts")
"""Pages of the reference that are written from the code when the site is built."""


def written_pages() -> dict[str, str]:
    """Texts of the pages that people write, by their path in the repository."""
    made = {DOCS / "reference" / f"{name}.md" for name in GENERATED}
    pages = [*ROOT.glob("*.md"), *(page for page in DOCS.rglob("*.md") if page not in made)]
    found = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages}
    assert len(found) > 40
    return found


def code(text: str) -> Iterator[str]:
    """Code of a page: blocks line by line (continued lines joined), and spans."""
    fence = re.compile(r"^ *(```+)[^\n]*\n(.*?)^ *\1", re.M | re.S)
    for block in fence.finditer(text):
        yield from block[2].replace("\\\n", " ").splitlines()
    for span in re.findall(r"`([^`]+)`", fence.sub("", text)):
        yield " ".join(span.split())


def commands(text: str) -> Iterator[list[str]]:
    """Words of every crowdtree command of a page, without the name of the program."""
    for line in code(text):
        start = re.match(r"^ *(?:[!$] *)?(?:\S*/|ct\\Scripts\\)?crowdtree +(?=[a-z-])(.*)", line)
        if start and "==" not in line:
            call = re.split(r" [|&>;]|  +#|\s#\s", start[1])[0]
            try:
                yield shlex.split(call)
            except ValueError:
                yield call.split()
