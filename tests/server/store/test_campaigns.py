"""What an owner does with campaigns: names, settings, budgets."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import NotFound, Store
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.owner.people import Visitor, join
from crowdtree.server.store.replay.verify import verify
from tests.serving import Postgres
from tests.storelab import change, filled, plan_policy, spent
from tests.weblab import Lab


def test_names_that_a_database_rejects_are_refused_on_both(url: str) -> None:
    made = plan_policy()
    with Store(url).opened() as store:
        number, _ = filled(store)
        for bad in ("a\x00b", "a" * 201):
            with pytest.raises(CrowdtreeError, match="participant"):
                store.write(
                    lambda c, b=bad: join(c, get_campaign(c, number), made, Visitor(b), 0, 9)
                )
            with pytest.raises(CrowdtreeError, match="worker"):
                store.write(lambda c, b=bad: people.invite(c, number, b, made, False, 0))
            with pytest.raises(CrowdtreeError, match="campaign"):
                store.write(lambda c, b=bad: campaigns.create(c, b, made, Settings(), 0))


@pytest.mark.parametrize("bad", ["a\x00b", "a" * 201, "  ", ""])
def test_a_campaign_is_renamed_only_to_a_name_that_every_database_takes(url: str, bad: str) -> None:
    with Store(url).opened() as store:
        number, _ = filled(store)
        with pytest.raises(CrowdtreeError, match="campaign: expected a name of 1 to 200"):
            store.write(lambda c: campaigns.rename(c, number, bad, 0.0))
        assert store.read(lambda c: get_campaign(c, number)).name == "x"
        store.write(lambda c: campaigns.rename(c, number, "  new name ", 0.0))
        assert store.read(lambda c: get_campaign(c, number)).name == "new name"
        with pytest.raises(NotFound):
            store.write(lambda c: campaigns.rename(c, number + 1, "new name", 0.0))


def test_two_owners_do_not_undo_each_others_settings(postgres: Postgres) -> None:
    made = plan_policy()
    waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with Store(postgres.migrated()).opened() as store:
        number, _ = filled(store, 1)

        def change(connection: Any, **changes: Any) -> None:
            campaigns.change_settings(connection, number, made, changes, 0.0)

        with store.engine.connect() as slow, slow.begin():
            change(slow, **{"tasks.thanks": "one"})
            other = threading.Thread(
                target=lambda: store.write(lambda c: change(c, **{"money.completion_code": "two"}))
            )
            other.start()
            while other.is_alive() and not store.read(lambda c: c.execute(waits).scalar_one()):
                pass
        other.join(30)
        kept = store.read(lambda c: get_campaign(c, number)).settings
        assert (kept.tasks.thanks, kept.money.completion_code) == ("one", "two")


@pytest.mark.parametrize("later", [{"price": 0.2}, {"price": 0.05}, {"budget": 0.5}])
def test_the_budget_holds_when_price_or_budget_change(app: Lab, later: dict[str, float]) -> None:
    first = {"price": 0.1} if "budget" in later else {"price": 0.1, "budget": 1.0}
    number = app.campaign(settings=first)
    workers = [app.worker(number) for _ in range(4)]
    out = [worker.next()["task"]["lease"] for worker in workers]
    assert change(app, number, **later).status_code == 200
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
    for worker, lease in zip(workers, out, strict=True):
        worker.answer(lease)
    for _ in range(40):
        for worker in workers:
            worker.work()
    settings = {**first, **later}
    most = int(settings["budget"] / settings["price"] + 1e-9)
    assert spent(app, number) == pytest.approx(min(most, 20 * 5) * settings["price"])
    assert workers[0].next()["reason"] in ("budget", "paused")
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


@pytest.mark.parametrize("later", [{"price": 0.2}, {"budget": 0.1}])
def test_settings_that_would_exceed_the_budget_are_refused(
    app: Lab, later: dict[str, float]
) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.3})
    workers = [app.worker(number) for _ in range(2)]
    out = [worker.next()["task"]["lease"] for worker in workers]
    refused = change(app, number, **later)
    assert (refused.status_code, "give at least that" in refused.text) == (422, True)
    assert change(app, number, thanks="well done").status_code == 200
    for worker, lease in zip(workers, out, strict=True):
        worker.answer(lease)
    assert spent(app, number) == pytest.approx(0.2)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_the_budget_holds_to_the_cent(app: Lab) -> None:
    """Seven answers at 0.07 make 0.49; an eighth would make 0.56."""
    number = app.campaign(settings={"price": 0.07, "budget": 0.55})
    workers = [app.worker(number) for _ in range(3)]
    for _ in range(6):
        for worker in workers:
            worker.work()
    assert spent(app, number) == 0.49
    number = app.campaign(settings={"price": 0.07, "budget": 0.56})
    workers = [app.worker(number) for _ in range(3)]
    for _ in range(6):
        for worker in workers:
            worker.work()
    assert spent(app, number) == 0.56
    rows = app.get(f"/api/campaigns/{number}/workers").json()
    assert sum(row["earned"] for row in rows) == pytest.approx(0.56)


def test_the_number_of_skips_is_fixed_at_the_start(app: Lab) -> None:
    number = app.campaign(start=False)
    assert change(app, number, max_skips=5).status_code == 200
    app.post(f"/api/campaigns/{number}/start")
    refused = change(app, number, max_skips=2)
    assert (refused.status_code, "after the start" in refused.text) == (422, True)
    assert change(app, number, max_skips=5, gold_rate=0.1).status_code == 200
