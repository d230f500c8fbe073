"""Lists of items: search by name, text, status and label, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.queries.items import some_items
from tests.storelab import Small

PAYLOADS: dict[str, dict[str, Any]] = {
    "a": {"text": 'He said "100 %_/\\" twice\nand left', "place": "Rome"},
    "b": {"text": "Äpfel und Birnen", "price": 12.5},
    "c": {"markdown": "**text**", "tags": ["Snow", "bird"]},
    "d": {"image": "robin.png"},
}


@pytest.fixture
def lab(url: str) -> Iterator[Small]:
    made = Small(rows=0, url=url)
    rows = [{"task": k, "payload": json.dumps(v, ensure_ascii=False)} for k, v in PAYLOADS.items()]
    made.store.write(lambda c: campaigns.add_items(c, made.number, rows))
    yield made
    made.store.close()


def found(lab: Small, **wish: Any) -> list[str]:
    rows = lab.store.read(lambda c: some_items(c, lab.number, **wish))
    return [row["task"] for row in rows]


def test_items_are_found_by_a_text_of_any_column(lab: Small) -> None:
    cases = [
        ("ROME", "a"),
        ('"100 %_/\\" TWICE\nand', "a"),
        ("%", "a"),
        ("_", "a"),
        ("äpfel", "b"),
        ("ÄPFEL", "b"),
        ("12.5", "b"),
        ("snow", "c"),
        ("text", "c"),  # not the names of columns
        ("robin", "d"),
        ("nowhere", ""),
        ("'; DROP TABLE items; --", ""),
    ]
    for text, tasks in cases:
        assert found(lab, text=text) == list(tasks), text


def test_pages_of_a_search_have_every_item_once(lab: Small) -> None:
    rows = [
        {"task": f"n{k:03d}", "payload": json.dumps({"text": "text" if k % 7 else "other"})}
        for k in range(100)
    ]
    lab.store.write(lambda c: campaigns.add_items(c, lab.number, rows))
    expected = [row["task"] for k, row in enumerate(rows) if k % 7]
    for wish in ({"find": "n"}, {"status": "new", "find": "n"}, {}):
        seen: list[str] = []
        after = ""
        while page := lab.store.read(
            lambda c, w=wish, a=after: some_items(c, lab.number, text="TEXT", after=a, most=10, **w)
        ):
            seen += [row["task"] for row in page]
            after = str(page[-1]["cursor"])
        assert [task for task in seen if task != "c"] == expected, wish


def test_columns_are_listed(lab: Small) -> None:
    rows = lab.store.read(lambda c: some_items(c, lab.number, find="d"))
    assert rows[0]["item"] == PAYLOADS["d"]
