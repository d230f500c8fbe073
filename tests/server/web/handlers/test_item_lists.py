"""The list of items in the API and on the page."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab

ITEMS = (
    "task,text,image,gold\na,A robin,a b.png,\nb,A <trout>,https://example.org/b.png,\ng,x,,c4\n"
)


def test_items_are_listed_page_by_page(app: Lab) -> None:
    number = app.campaign(ITEMS)
    path = f"/api/campaigns/{number}/items"
    first = app.get(f"{path}?most=2").json()
    assert [row["task"] for row in first["items"]] == ["a", "b"]
    assert first["items"][0]["item"] == {"text": "A robin", "image": "a b.png"}
    rest = app.get(f"{path}?most=2&after={first['next']}").json()
    assert [(row["task"], row["gold"]) for row in rest["items"]] == [("g", "c4")]
    assert rest["next"] is None


def test_items_are_searched_and_mistakes_refused(app: Lab) -> None:
    number = app.campaign(ITEMS)
    path = f"/api/campaigns/{number}/items"
    right = {"text=ROBIN": "a", "find=b": "b", "status=gold": "g", "label=c1": "", "text=zz": ""}
    for query, tasks in right.items():
        found = app.get(f"{path}?{query}").json()["items"]
        assert [row["task"] for row in found] == list(tasks), query
    for query in ("status=lost", "label=lost", "most=0", "text=%00", "most=1001"):
        assert app.get(f"{path}?{query}").status_code == 422, query
    assert app.get("/api/campaigns/99/items").status_code == 404


def test_the_page_shows_text_and_pictures(app: Lab) -> None:
    number = app.campaign(ITEMS)
    page = app.get(f"/c/{number}/items").text
    assert f'<img src="/media/{number}/a%20b.png" alt="" loading="lazy"' in page
    assert '<img src="https://example.org/b.png"' in page
    assert "A &lt;trout&gt;" in page
    found = app.get(f"/c/{number}/items?text=robin").text
    assert "A robin" in found
    assert "&lt;trout&gt;" not in found
    assert "No matching items" in app.get(f"/c/{number}/items?text=nowhere").text
