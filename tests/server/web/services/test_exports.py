"""Exports: columns of the items, payments, times."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import polars as pl

import crowdtree as ct
from crowdtree.core.text import iso_time
from crowdtree.server.prolific.ledger import record
from crowdtree.server.store.db.campaign_row import tally
from tests.weblab import Lab

ITEMS = (
    'task,text,Label,price,place\n1,"a, b\nc",x,,Rome\n2,two,,3,\n3,three,,,Oslo\n'
    + '4,four,=1+1,5,"Bath, UK"\n'
)


def table(app: Lab, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(app.get(path).text)))


def labelled(app: Lab, items: str = ITEMS, **settings: object) -> int:
    """A campaign whose items have their label."""
    number = app.campaign(items, settings=settings)
    people = [app.worker(number) for _ in range(4)]
    while any(person.work() for person in people):
        pass
    return number


def test_labels_have_the_columns_of_the_items(app: Lab) -> None:
    number = labelled(app)
    path = f"/api/campaigns/{number}/labels"
    rows = {row["task"]: row for row in table(app, path)}
    assert list(rows["1"])[-4:] == ["text", "item_Label", "price", "place"]
    assert (rows["1"]["text"], rows["1"]["item_Label"]) == ("a, b\nc", "x")
    assert (rows["4"]["item_Label"], rows["4"]["place"]) == ("'=1+1", "Bath, UK")
    note = app.get(path).headers["x-crowdtree-columns"]
    assert note == "columns of the items were renamed: 'Label' is 'item_Label'"
    assert "text" not in table(app, f"{path}?columns=false")[0]
    frame = pl.read_parquet(io.BytesIO(app.get(f"{path}?format=parquet").content))
    assert dict(zip(frame["task"], frame["price"], strict=True))["2"] == "3"


def test_labels_with_columns_can_be_audited(app: Lab) -> None:
    items = "task,item,id,error,probability,referred,text\n1,x,y,z,0,yes,a\n2,x,y,,,,b\n"
    number = labelled(app, items)
    content = app.get(f"/api/campaigns/{number}/labels").content
    assert sorted(ct.load(content, name="labels.csv").items) == ["1", "2"]


def test_times_are_written_by_iso_8601(app: Lab) -> None:
    number = labelled(app)
    now = iso_time(app.clock.now)
    assert {row["time"] for row in table(app, f"/api/campaigns/{number}/labels")} == {now}
    assert {row["time"] for row in table(app, f"/api/campaigns/{number}/answers?log=true")} == {now}
    rows = table(app, f"/api/campaigns/{number}/workers/export")
    assert {(row["joined"], row["seen"]) for row in rows} == {(now, now)}


def test_payments_add_up_to_the_ledger(app: Lab) -> None:
    number = labelled(app, price=0.035, currency="EUR", personal_codes=True)
    sent = {"call": "bonus", "state": "sent", "payment": "p", "before": {}}
    amounts = {"amounts": {"s1": 150, "gone": 5}}
    app.store.write(lambda c: record(c, number, 0.0, sent | amounts))
    rows = table(app, f"/api/campaigns/{number}/payments")
    spent = app.store.read(lambda c: tally(c, number))["spent"]
    assert sum(Decimal(row["amount"]) for row in rows) == Decimal(spent) / 1_000_000 > 0
    assert sum(Decimal(row["bonus"]) for row in rows) == Decimal("1.55")
    assert {row["currency"] for row in rows} == {"EUR"}
    assert sum(int(row["accepted"]) for row in rows) * 35_000 == spent
    assert [row["submission"] for row in rows if not row["worker"]] == ["s1", "gone"]


def test_a_bonus_is_listed_with_its_worker(app: Lab) -> None:
    number = app.campaign()
    token = app.post(f"/api/campaigns/{number}/join-link").json()["token"]
    wish = {"token": token, "participant": "P1", "session": "s1"}
    assert app.post("/api/join", wish, headers={}).status_code == 200
    sent = {"call": "bonus", "state": "sent", "payment": "p", "before": {}, "amounts": {"s1": 150}}
    app.store.write(lambda c: record(c, number, 0.0, sent))
    (row,) = table(app, f"/api/campaigns/{number}/payments")
    assert (row["participant"], row["submission"], row["bonus"]) == ("P1", "s1", "1.50")
