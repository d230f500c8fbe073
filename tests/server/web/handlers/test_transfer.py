"""Items in, labels and answers out."""

from __future__ import annotations

import csv
import io
import json

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import polars as pl

from tests.weblab import Lab


def test_exports_agree_in_all_formats(app: Lab) -> None:
    number = app.campaign()
    workers = [app.worker(number) for _ in range(5)]
    for _ in range(10):
        for worker in workers:
            worker.work()
    for what in ("labels", "answers"):
        path = f"/api/campaigns/{number}/{what}?format="
        lines = [json.loads(line) for line in app.get(path + "jsonl").text.splitlines()]
        frame = pl.read_parquet(io.BytesIO(app.get(path + "parquet").content))
        table = list(csv.DictReader(io.StringIO(app.get(path + "csv").text)))
        assert len(lines) == len(frame) == len(table) > 0
        assert frame["task"].to_list() == [row["task"] for row in lines]
        assert [row["task"] for row in table] == [row["task"] for row in lines]
    assert list(table[0]) == ["task", "question", "worker", "label"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name,text\na,b\n", "task"),
        ("task,text\na\n", "line 2"),
        ("task,text\n,b\n", "line 2"),
        ("task,gold\na,nothing\n", "not a class"),
        ("task,image\na,javascript:x\n", "image"),
        ("task,image\na,../../etc/passwd\n", "image"),
        ("task,text\n", "no items"),
    ],
)
def test_bad_items_are_refused_whole(app: Lab, content: str, says: str) -> None:
    number = app.campaign(start=False)
    found = app.client.post(
        f"/api/campaigns/{number}/items",
        content=content.encode(),
        headers={**app.owner, "content-type": "text/csv"},
    )
    assert found.status_code == 422
    assert says in found.json()["message"]
    assert app.get(f"/api/campaigns/{number}").json()["items"]["total"] == 20


def test_items_sent_twice_are_there_once(app: Lab) -> None:
    number = app.campaign(start=False)
    lines = '{"task": "i0"}\n{"task": 7, "text": "new"}\n'
    found = app.client.post(
        f"/api/campaigns/{number}/items",
        content=lines.encode(),
        headers={**app.owner, "content-type": "application/x-ndjson"},
    )
    assert {k: found.json()[k] for k in ("read", "added", "set_aside")} == {
        "read": 2,
        "added": 1,
        "set_aside": 0,
    }
    assert found.json()["conflicts"] == [1]
    assert found.json()["warnings"] == [
        "line 1: the item exists with other content and stays as it is; edit it in the campaign"
    ]


def test_gold_that_nobody_is_asked_about_is_pointed_out(app: Lab) -> None:
    rows = "task,text,gold\na,x,\ng,y,c4\n"
    number = app.campaign(rows)
    found = app.client.post(
        f"/api/campaigns/{number}/items",
        content=rows.encode(),
        headers={**app.owner, "content-type": "text/csv"},
    ).json()
    assert found["warnings"] == [
        "1 gold item is never asked about: set checks.gold_rate (such as 0.1) or "
        "checks.gold_first above 0"
    ]
    pages = (f"/c/{number}", f"/c/{number}/items", f"/c/{number}/share")
    words = ("never asked about", "nobody is asked about it", "nobody is asked about it")
    for page, said in zip(pages, words, strict=True):
        assert said in app.get(page).text, page
    change = {"checks": {"gold_rate": 0.1}}
    app.client.patch(f"/api/campaigns/{number}/settings", json=change, headers=app.owner)
    for page, said in zip(pages, words, strict=True):
        assert said not in app.get(page).text, page
