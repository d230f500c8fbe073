"""The preview of the worker's page."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.db.tables import metadata
from tests.weblab import Lab

ITEMS = "task,text,image,truth\na,one,gold a.png,robin\n"


BACKGROUND = ("monitors",)
"""Tables that the server writes on its own."""


def rows(app: Lab) -> dict[str, list[Any]]:
    """Everything that is stored because somebody did something."""
    return app.store.read(
        lambda c: {
            name: [tuple(row) for row in c.execute(sa.select(table))]
            for name, table in metadata.tables.items()
            if name not in BACKGROUND
        }
    )


@pytest.mark.parametrize("start", [False, True])
def test_a_preview_shows_items_as_workers_see_them_and_stores_nothing(
    app: Lab, start: bool
) -> None:
    number = app.campaign(ITEMS, start=start, settings={"instructions": "Look *closely*"})
    before = rows(app)
    page = app.get(f"/c/{number}/preview").text
    assert "nothing is recorded" in page
    assert "Look <em>closely</em>" in page
    assert f'data-server="/c/{number}/preview"' in page
    task = app.post(f"/c/{number}/preview/work/next", {"holding": [], "wait": 0}).json()["task"]
    assert task["item"]["text"] == "one"
    assert "gold" not in task["item"]["image"]
    assert "truth" not in task["item"]
    given = {"lease": task["lease"], "key": "k", "answer": "yes"}
    for verb in ("answer", "skip", "report", "consent", "release"):
        assert app.post(f"/c/{number}/preview/api/worker/{verb}", given).status_code == 200
    assert app.get(f"/c/{number}/preview/work/training").json()["task"] is None
    assert app.get(f"/c/{number}/preview/api/worker/state").json()["campaign"] == "running"
    assert rows(app) == before


def test_the_pages_of_workers_and_of_previews_are_the_same_otherwise(app: Lab) -> None:
    number = app.campaign(ITEMS)
    worker = app.worker(number)
    app.client.get(f"/w/{worker.token}")
    real, shown = app.client.get("/work").text, app.get(f"/c/{number}/preview").text
    begin = '<main id="task" hidden>'
    assert real.partition(begin)[2] == shown.partition(begin)[2] != ""


def test_the_training_is_previewed_once_per_load_of_the_page(app: Lab) -> None:
    gold = "task,text,gold,explanation\ng0,Gold 0,c1,It has a tail.\ng1,Gold 1,c4,\ni,One,,\n"
    number = app.campaign(gold, start=False, settings={"practice_items": 2})
    here = f"/c/{number}/preview"
    before = rows(app)
    for _ in range(2):  # loaded again, it begins anew
        assert app.get(here).status_code == 200
        for place in (1, 2):
            assert app.post(f"{here}/work/next").json()["reason"] == "training"
            found = app.get(f"{here}/work/training").json()
            assert (found["total"], found["task"]["number"]) == (2, place)
            assert found["task"]["item"]["text"] == f"Gold {place - 1}"
            answer = {"number": place, "answer": "skip"}
            told = app.post(f"{here}/api/worker/training", answer).json()
            assert (told["correct"], told["of_class"]) == (None, place == 2)
        assert app.get(f"{here}/work/training").json()["task"] is None
        assert app.post(f"{here}/work/next").json()["task"] is not None
    beyond = app.post(f"{here}/api/worker/training", {"number": 3, "answer": "yes"})
    assert beyond.status_code == 409
    assert rows(app) == before


def test_a_draft_without_items_shows_an_example(app: Lab) -> None:
    made = app.post("/api/campaigns", {"policy": {"example": "table1", "workers": 8}})
    found = app.post(f"/c/{made.json()['id']}/preview/work/next").json()
    assert found["task"]["item"]["text"] == "One of your items will be here."


def test_adaptive_policies_have_previews(app: Lab) -> None:
    number = app.campaign(ITEMS, start=False, example="table1", kind="adaptive")
    seen = {
        app.post(f"/c/{number}/preview/work/next").json()["task"]["question"]["name"]
        for _ in range(40)
    }
    assert len(seen) > 1
