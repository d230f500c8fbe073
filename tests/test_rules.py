"""Serving rules: items that wait for more workers, undo of gold, money, reasons to have no task."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.store import ExpireLeases, Next, Settings, Store, Submit
from crowdtree.store.background.maintenance import Maintenance
from crowdtree.store.background.stalled import AWAY_SECONDS, StalledItems
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.db.tables import labels, workers
from crowdtree.store.owner import campaigns, people, tokens
from crowdtree.store.queries.progress import progress
from crowdtree.store.replay.verify import verify
from weblab import CSV, Clock, Lab, lab

ONE = "task,text\na,one\n"
PATIENCE = 3600.0


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


def policy(kind: str) -> Any:
    problem = ct.example("table1")
    if kind == "adaptive":
        return AdaptivePolicy(problem, target_error=0.0, max_answers=30, strict=False)
    return PlanPolicy(ct.staff(ct.design(problem), workers=8), kind)  # type: ignore[arg-type]


class Desk:
    """A store with one campaign, a clock in hand, and people who come and go."""

    def __init__(self, store: Store, clock: Clock, kind: str, n_items: int = 3, **settings: Any):
        self.store, self.clock, self.policy = store, clock, policy(kind)
        made = Settings(give_up_seconds=PATIENCE, **settings)
        self.number = store.write(lambda c: campaigns.create(c, "x", self.policy, made, clock()))
        rows = [{"task": f"i{k}", "payload": "{}", "gold": None} for k in range(n_items)]
        store.write(lambda c: campaigns.add_items(c, self.number, rows))
        store.write(lambda c: campaigns.set_status(c, self.number, "running", clock()))
        self.dedicated = made.dedicated
        self.watch = StalledItems(clock)
        self.keys = itertools.count()

    def person(self) -> str:
        made = self.store.write(
            lambda c: people.invite(c, self.number, "", self.policy, self.dedicated, self.clock())
        )
        return tokens.hashed(made[1])

    def work(self, who: str, value: int = 1) -> str:
        """Answer whatever there is; returns why there is nothing more."""
        while True:
            found = self.store.ask(Next(who))
            if found["task"] is None:
                return str(found["reason"])
            lease = found["task"]["lease"]
            self.store.ask(Submit(who, lease, "answer", value, f"k{next(self.keys)}"))
            self.store.questions.cache.scanned.clear()  # look again at once

    def look(self) -> int:
        """Let the watch look once; returns how many items it set aside."""
        self.store.write(lambda _: None)  # on SQLite a question is told before its commit
        found = self.store.read(self.watch.look)
        return sum(self.store.write(lambda c, f=f: self.watch.apply(c, f)) for f in found)

    @property
    def waiting(self) -> int:
        facts = self.store.read(lambda c: progress(c, self.number, self.clock()))
        return int(facts["waiting_for_workers"])

    def verified(self) -> None:
        found = self.store.read(lambda c: verify(c, self.number))
        assert found["differences"] == []

    def labels(self) -> list[Any]:
        rows = sa.select(labels.c.reason, labels.c.label, labels.c.answers).order_by(labels.c.id)
        return list(self.store.read(lambda c: c.execute(rows).all()))


@pytest.mark.parametrize("kind", ["curtailed", "margin", "adaptive"])
def test_an_item_that_nobody_can_answer_waits_is_shown_and_is_set_aside(
    url: str, kind: str
) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        desk = Desk(store, clock, kind)
        assert desk.look() == 0
        assert desk.waiting == 0  # new items wait for nobody: the first to come gets them
        ann = desk.person()
        # No is the answer that never leads to a leaf after one question.
        assert desk.work(ann, 0) == ("all answered" if kind == "adaptive" else "wait")
        assert desk.waiting == 0  # not looked yet
        assert desk.look() == 0
        assert desk.waiting == 3
        clock.now += PATIENCE - 1
        assert desk.look() == 0
        clock.now += 1
        assert desk.look() == 3
        assert desk.waiting == 0
        found = desk.labels()
        assert [row.reason for row in found] == ["no workers"] * 3
        assert all(row.label is not None and row.answers > 0 for row in found)
        desk.verified()
        store.write(Maintenance(clock).round)
        assert store.read(lambda c: get_campaign(c, desk.number)).status == "finished"


def test_an_item_waits_no_more_when_somebody_comes(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        desk = Desk(store, clock, "margin")
        desk.work(desk.person())
        desk.look()
        assert desk.waiting == 3
        bob = desk.person()  # here, and may answer
        desk.look()
        assert desk.waiting == 0
        clock.now += AWAY_SECONDS + 1  # and gone
        desk.look()
        assert desk.waiting == 3
        clock.now += PATIENCE - 10
        lease = store.ask(Next(bob))["task"]  # back in time: one is in their hands
        assert lease is not None
        desk.look()
        assert desk.waiting == 2
        clock.now += 11
        assert desk.look() == 2
        assert store.ask(Submit(bob, lease["lease"], "answer", 1, "b"))["fate"] == "counted"
        desk.verified()


@pytest.mark.parametrize("how", ["paused", "blocked", "enough"])
def test_people_who_may_not_answer_do_not_count(url: str, how: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        settings = {"answers_per_worker": 3} if how == "enough" else {}
        desk = Desk(store, clock, "curtailed", **settings)
        ann, bob = desk.person(), desk.person()
        desk.work(ann)
        desk.look()
        assert desk.waiting == 0
        if how == "enough":
            more = workers.update().where(workers.c.id == 2).values(answers=3)
            store.write(lambda c: c.execute(more))
        else:
            store.write(
                lambda c: people.set_worker_status(c, desk.number, 2, how, clock())  # type: ignore[arg-type]
            )
        desk.look()
        assert desk.waiting == 3
        assert bob


def test_a_question_without_its_dedicated_worker_waits(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        desk = Desk(store, clock, "none", dedicated=True)
        for _ in range(3):
            desk.work(desk.person(), 0)
        desk.look()
        assert desk.waiting == 3


def test_time_that_a_campaign_or_the_server_rested_does_not_count(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        desk = Desk(store, clock, "margin")
        desk.work(desk.person())
        desk.look()
        store.write(lambda c: campaigns.set_status(c, desk.number, "paused", clock()))
        assert desk.waiting == 0
        clock.now += 10 * PATIENCE
        store.write(lambda c: campaigns.set_status(c, desk.number, "running", clock()))
        assert desk.look() == 0
        assert desk.waiting == 3
        clock.now += 10 * PATIENCE
        desk.watch = StalledItems(clock)  # the server was off: nobody could have come
        assert desk.look() == 0
        clock.now += AWAY_SECONDS
        assert desk.look() == 3


def test_for_ever_is_for_ever(url: str) -> None:
    clock = Clock()
    with Store(url, clock=clock, rng=0).opened() as store:
        desk = Desk(store, clock, "margin")
        store.write(
            lambda c: campaigns.change_settings(
                c, desk.number, desk.policy, {"give_up_seconds": None}, clock()
            )
        )
        desk.work(desk.person())
        desk.look()
        clock.now += 1e9
        assert desk.look() == 0
        assert desk.waiting == 3


def test_the_server_watches_by_itself(app: Lab) -> None:
    number = app.campaign(ONE, settings={"give_up_seconds": 60})
    app.worker(number).work("no")
    site: Any = app.client.app.state.site  # type: ignore[attr-defined]
    from crowdtree.web.chores import check_stalled

    app.client.portal.call(check_stalled, site)  # type: ignore[union-attr]
    assert app.get(f"/api/campaigns/{number}").json()["waiting_for_workers"] == 1
    page = app.get(f"/c/{number}").text
    assert "1 item waits for more workers" in page
    app.clock.now += 1000
    app.client.portal.call(check_stalled, site)  # type: ignore[union-attr]
    found = app.get(f"/api/campaigns/{number}").json()
    assert (found["waiting_for_workers"], found["items"]["set_aside"]) == (0, 1)


# ------------------------------------------------------------------------------ why nothing


def test_a_worker_is_told_why_there_is_nothing_to_do(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=8)
    ann, bob = app.worker(number), app.worker(number)
    ann.work("no")
    assert ann.next()["reason"] == "wait"  # others answer first, then comes the next question
    settings = {"one_question_per_item": True, "completion_code": "C0DE"}
    number = app.campaign(ONE, example="table1", workers=8, settings=settings)
    ann, bob = app.worker(number), app.worker(number)
    ann.work("no")
    found = ann.next()
    assert found["reason"] == "all answered"
    assert found["end"]["completion_code"] == "C0DE"
    assert bob.next()["task"]
    app.post(f"/api/campaigns/{number}/finish")
    assert ann.next()["reason"] == "finished"


def test_a_skip_is_an_answer_when_it_comes_to_what_is_left(app: Lab) -> None:
    number = app.campaign(ONE, settings={"one_question_per_item": True})
    worker = app.worker(number)
    worker.call("skip", lease=worker.next()["task"]["lease"], key="s")
    assert worker.next()["reason"] == "all answered"


# ------------------------------------------------------------------------------ undo of gold

GOLD = CSV + "".join(f"g{k},gold,c4\n" for k in range(30))


def gold_worker(app: Lab, **settings: Any) -> tuple[int, Any]:
    number = app.campaign(
        GOLD, example="table1", workers=8, settings={"gold_rate": 1.0, **settings}
    )
    return number, app.worker(number)


def record(app: Lab, number: int, worker: Any) -> Any:
    app.store.write(Maintenance(app.clock).round)
    rows = app.get(f"/api/campaigns/{number}/workers").json()
    return next(row for row in rows if row["id"] == worker.id)


@pytest.mark.parametrize("folded", [True, False])
def test_undo_of_gold_unlearns_it(app: Lab, folded: bool) -> None:
    number, worker = gold_worker(app)
    for _ in range(4):
        worker.work("yes")
    before = record(app, number, worker)
    assert (before["gold_asked"], before["gold_right"]) == (4, 4)
    worker.work("no")
    if folded:
        wrong = record(app, number, worker)
        assert (wrong["gold_asked"], wrong["gold_right"]) == (5, 4)
        assert wrong["skill"] < before["skill"]
    assert worker.call("undo", key="u").status_code == 200
    after = record(app, number, worker)
    for name in ("gold_asked", "gold_right", "agreed", "judged", "answers"):
        assert after[name] == before[name]
    assert after["skill"] == pytest.approx(before["skill"], abs=1e-12)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
    again = worker.work("yes")
    assert again["fate"] == "counted"
    assert record(app, number, worker)["gold_right"] == 5
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_undo_of_gold_lifts_the_pause_that_it_brought(app: Lab) -> None:
    number, worker = gold_worker(app, pause_below=0.94, pause_after=2)
    worker.work("yes")
    worker.work("no")
    assert record(app, number, worker)["status"] == "paused"
    lease = worker.call("undo", key="u").json()["task"]["lease"]
    assert record(app, number, worker)["status"] == "active"
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/pause")
    assert worker.answer(lease, "no").status_code == 200
    assert worker.call("undo", key="v").status_code == 200
    assert record(app, number, worker)["status"] == "paused"  # by the owner: that stays


def test_learning_anew_keeps_what_labels_taught(app: Lab) -> None:
    items = "task,text,gold\na,one,\ng,gold,c4\n"
    number = app.campaign(items, example="table1", workers=0, settings={"gold_rate": 0.0})
    worker = app.worker(number)
    assert worker.work("yes")["fate"] == "counted"  # labels the item, and teaches
    before = record(app, number, worker)
    assert before["judged"] == 1
    app.post(f"/api/campaigns/{number}/finish")
    other = "task,text,gold\nb,two,\n"
    app.client.post(
        f"/api/campaigns/{number}/items",
        content=other.encode(),
        headers={**app.owner, "content-type": "text/csv"},
    )
    record(app, number, worker)
    app.client.patch(
        f"/api/campaigns/{number}/settings", json={"gold_rate": 1.0}, headers=app.owner
    )
    app.post(f"/api/campaigns/{number}/start")
    assert worker.next()["task"]["item"]["task"] == "g"
    worker.work("no")
    assert record(app, number, worker)["skill"] < before["skill"]
    worker.call("undo", key="u")
    after = record(app, number, worker)
    assert (after["judged"], after["agreed"], after["gold_asked"]) == (1, 1, 0)
    assert after["skill"] == pytest.approx(before["skill"], abs=1e-12)


def test_a_skip_of_gold_teaches_nothing(app: Lab) -> None:
    number, worker = gold_worker(app)
    before = record(app, number, worker)
    worker.call("skip", lease=worker.next()["task"]["lease"], key="s")
    worker.call("undo", key="u")
    after = record(app, number, worker)
    assert (after["skill"], after["gold_asked"]) == (before["skill"], 0)


# ------------------------------------------------------------------------------ money


def change(app: Lab, number: int, **settings: Any) -> Any:
    return app.client.patch(f"/api/campaigns/{number}/settings", json=settings, headers=app.owner)


def spent(app: Lab, number: int) -> float:
    return float(app.get(f"/api/campaigns/{number}").json()["spent"])


@pytest.mark.parametrize("later", [{"price": 0.2}, {"price": 0.05}, {"budget": 0.5}])
def test_the_cap_holds_when_price_or_budget_change_while_questions_are_out(
    app: Lab, later: dict[str, float]
) -> None:
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
def test_what_would_pass_the_cap_is_refused(app: Lab, later: dict[str, float]) -> None:
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


def test_the_cap_holds_to_the_cent(app: Lab) -> None:
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


def test_questions_that_are_out_count_against_the_budget(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.25})
    workers = [app.worker(number) for _ in range(3)]
    assert [worker.next()["task"] is not None for worker in workers] == [True, True, False]
    assert workers[2].next()["reason"] == "budget"
    app.clock.now += 601
    app.store.ask(ExpireLeases())  # nobody answered: their price is free again
    assert workers[2].next()["task"]


def test_an_overdue_answer_that_cannot_be_paid_is_kept_unpaid(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.1})
    slow, fast = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    assert fast.work()["fate"] == "counted"
    assert slow.answer(lease).json()["fate"] == "over budget"
    assert spent(app, number) == 0.1
    assert slow.call("undo", key="u").status_code == 409
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_skips_and_undone_answers_cost_nothing(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 1.0})
    worker = app.worker(number)
    worker.call("skip", lease=worker.next()["task"]["lease"], key="s")
    assert spent(app, number) == 0
    worker.work()
    assert spent(app, number) == 0.1
    worker.call("undo", key="u")
    assert spent(app, number) == 0
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_an_undo_takes_no_money_that_others_were_promised(app: Lab) -> None:
    number = app.campaign(settings={"price": 0.1, "budget": 0.1})
    first, second = app.worker(number), app.worker(number)
    first.call("skip", lease=first.next()["task"]["lease"], key="s")
    lease = second.next()["task"]["lease"]  # gets what the skip left
    assert first.call("undo", key="u").status_code == 409
    assert second.answer(lease).json()["fate"] == "counted"
    assert second.call("undo", key="v").status_code == 200  # its own money comes back
    assert second.answer(lease, key="w").json()["fate"] == "counted"
    assert spent(app, number) == 0.1
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_a_late_answer_is_paid_only_in_time(app: Lab) -> None:
    """Surplus and late answers are paid if their lease had not expired."""
    number = app.campaign(ONE, example="table1", workers=0, settings={"price": 0.1})
    quick, slow = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    assert quick.work("yes")["fate"] == "counted"
    assert slow.answer(lease).json() == {"fate": "late", "late": True}
    assert spent(app, number) == 0.1
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_the_number_of_skips_is_fixed_at_the_start(app: Lab) -> None:
    number = app.campaign(start=False)
    assert change(app, number, most_skips=5).status_code == 200
    app.post(f"/api/campaigns/{number}/start")
    refused = change(app, number, most_skips=2)
    assert (refused.status_code, "after the start" in refused.text) == (422, True)
    assert change(app, number, most_skips=5, gold_rate=0.1).status_code == 200


# ------------------------------------------------------------------------------ who gets what


def gold_share(app: Lab, rate: float, turns: int = 100) -> int:
    items = "task,text,gold\n" + "".join(f"i{k},x,\n" for k in range(turns))
    items += "".join(f"g{k},x,c4\n" for k in range(turns))
    number = app.campaign(items, example="table1", workers=8, settings={"gold_rate": rate})
    worker = app.worker(number)
    asked = []
    for _ in range(turns):
        task = worker.next()["task"]
        asked.append(task["item"]["task"])
        worker.answer(task["lease"])
    return sum(name.startswith("g") for name in asked)


def test_gold_comes_at_its_rate(app: Lab) -> None:
    """Four standard deviations around the chosen share; with a seed, so it is always the same."""
    assert gold_share(app, 0.0) == 0
    found = gold_share(app, 0.3)
    assert abs(found - 30) < 4 * (100 * 0.3 * 0.7) ** 0.5
    assert gold_share(app, 1.0) > 80  # not all: few are left that this worker has not seen


def test_gold_is_not_given_where_there_is_nothing_else(app: Lab) -> None:
    items = "task,text,gold\na,x,\n" + "".join(f"g{k},x,c4\n" for k in range(50))
    number = app.campaign(items, settings={"gold_rate": 0.5, "one_question_per_item": True})
    worker = app.worker(number)
    while (found := worker.next())["task"]:
        worker.answer(found["task"]["lease"])
    assert found["reason"] == "all answered"
    assert all(worker.next()["task"] is None for _ in range(20))


def test_the_previous_question_is_preferred_to_an_older_one(app: Lab) -> None:
    number = app.campaign("task,text\na,x\nb,x\n", example="table1", workers=8)
    policy = PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=8))
    bob, eve, dan = (app.worker(number) for _ in range(3))
    for _ in range(int(policy.plan.votes[0]) // 2):
        app.worker(number).work("no")
    lease = bob.next()["task"]["lease"]
    other = eve.next()["task"]  # opens b: its first question waits, and is the older row
    assert other["item"]["task"] == "b"
    bob.answer(lease, "no")  # a goes on to another question
    root = other["question"]["name"]
    mine = sa.select(workers.c.last_question).where(workers.c.id == dan.id)
    before = app.store.read(lambda c: c.execute(mine).scalar_one())
    assert ct.example("table1").questions[before] == root  # who is new begins where all begin
    assert dan.next()["task"]["question"]["name"] == root
    zoe = app.worker(number)
    second = int(policy.plan.tree.question[policy.plan.tree.children[0, 0]])
    change_last = workers.update().where(workers.c.id == zoe.id).values(last_question=second)
    app.store.write(lambda c: c.execute(change_last))
    task = zoe.next()["task"]
    assert (task["item"]["task"], task["question"]["name"]) == (
        "a",
        ct.example("table1").questions[second],
    )


def test_paused_and_blocked_workers_get_nothing_and_their_answers_stay(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=8)
    worker = app.worker(number)
    worker.work("no")
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/pause")
    assert worker.next() == {"task": None, "reason": "worker paused"}
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/resume")
    assert worker.next()["reason"] == "wait"
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/block")
    assert worker.call("next").status_code == 401
    assert len(app.get(f"/api/campaigns/{number}/answers").text.splitlines()) == 2


def test_what_a_blocked_worker_holds_is_free_for_others(app: Lab) -> None:
    number = app.campaign(items=ONE, settings={"price": 0.1, "budget": 0.1})
    bad, good = app.worker(number), app.worker(number)
    assert bad.next()["task"]
    assert good.next()["reason"] == "budget"
    app.post(f"/api/campaigns/{number}/workers/{bad.id}/block")
    app.store.ask(ExpireLeases())
    assert good.next()["task"]
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_a_campaign_goes_on_where_it_must_not_finish_by_itself(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=0, settings={"finish_by_itself": False})
    assert app.worker(number).work("yes")["fate"] == "counted"
    app.store.write(Maintenance(app.clock).round)
    found = app.get(f"/api/campaigns/{number}").json()
    assert (found["items"]["labelled"], found["status"]) == (1, "running")


def test_what_is_known_of_a_worker_weighs_in_the_label(app: Lab) -> None:
    """The skill at the time is stored with the answer and moves the stated error."""
    errors = []
    for skill in (-1.0, 0.0, 2.0):
        number = app.campaign(ONE, example="table1", workers=0)
        worker = app.worker(number)
        known = workers.update().where(workers.c.id == worker.id).values(skill=skill)
        app.store.write(lambda c, s=known: c.execute(s))
        worker.work("yes")
        row = app.get(f"/api/campaigns/{number}/labels?format=jsonl").json()
        errors.append(row["posterior_error"])
        assert app.store.read(lambda c, n=number: verify(c, n))["differences"] == []
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]


def test_nobody_is_paused_before_enough_is_known(app: Lab) -> None:
    number, worker = gold_worker(app, pause_below=0.99, pause_after=3)
    for count in (1, 2, 3):
        worker.work("no")  # wrong each time
        status = "active" if count < 3 else "paused"
        found = record(app, number, worker)
        assert (found["gold_asked"], found["status"]) == (count, status)


def test_whoever_was_asked_is_paid_though_somebody_else_was_faster(app: Lab) -> None:
    number = app.campaign(ONE, example="table1", workers=0, settings={"price": 0.1, "budget": 1.0})
    slow, other = app.worker(number), app.worker(number)
    lease = slow.next()["task"]["lease"]
    app.clock.now += 601
    app.store.ask(ExpireLeases())
    again = other.next()["task"]["lease"]
    assert slow.answer(lease, "no").json() == {"fate": "counted", "late": True}
    assert spent(app, number) == pytest.approx(0.1)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
    assert other.next()["task"]["lease"] != again  # nobody needs that one any more
    assert other.answer(again, "no").json() == {"fate": "surplus", "late": False}
    assert spent(app, number) == pytest.approx(0.2)
    assert app.store.read(lambda c: verify(c, number))["differences"] == []


def test_what_is_out_counts_when_an_answer_comes_in(app: Lab) -> None:
    """An answer opens no question beyond those that are out and may decide the vote."""
    number = app.campaign(ONE, example="table1", workers=8)
    out = []
    while task := (worker := app.worker(number)).next()["task"]:
        out.append((worker, task["lease"]))
    assert len(out) > 1
    worker, lease = out.pop()
    assert worker.answer(lease, "no").json()["fate"] == "counted"
    assert app.worker(number).next()["reason"] == "wait"
    assert app.store.read(lambda c: verify(c, number))["differences"] == []
