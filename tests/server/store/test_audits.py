"""Audits of live campaigns: starting, handing out, recording, finishing, verifying."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import PlanPolicy
from crowdtree.server.store import Next, NotFound, Refused, Store, tokens
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits.report import (
    audit_report,
    audit_summary,
    certificate,
    unsure_items,
)
from crowdtree.server.store.audits.stored import AuditCache, latest_audit
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import audits, checks, items, labels
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.queries.export import label_rows
from crowdtree.server.store.replay.verify import verify
from tests.storelab import filled, maintain, work
from tests.weblab import Clock

ONE_VOTE = PlanPolicy(ct.design(ct.example("table1")), "curtailed")


class Lab:
    """A campaign whose items are labelled."""

    def __init__(
        self, url: str = "sqlite://", n: int = 40, policy: Any = ONE_VOTE, **settings: Any
    ) -> None:
        self.clock = Clock()
        self.store = Store(url, clock=self.clock, rng=0)
        self.number, self.workers = filled(self.store, n, policy, **settings)
        work(self.store, self.workers)
        self.classes = self.store.read(lambda c: get_campaign(c, self.number)).classes

    def start(self, bound: float | None = 0.2, **options: Any) -> Any:
        options.setdefault("seed", 3)
        return self.store.write(
            lambda c: checking.start(c, self.number, bound, self.clock(), **options)
        )

    def next(self, who: str = "ann") -> Any:
        return self.store.write(
            lambda c: checking.hand_out(c, self.store.audits, self.number, who, self.clock())
        )

    def record(self, item: int, truth: str | None, who: str = "ann") -> None:
        args = (self.store.audits, self.number, who, who, item, truth)
        self.store.write(lambda c: checking.record(c, *args, self.clock()))

    def label(self, item: int) -> str:
        query = sa.select(labels.c.label).where(labels.c.item_id == item)
        return self.classes[self.store.read(lambda c: c.execute(query).scalar_one())]

    def wrong(self, item: int) -> str:
        return next(name for name in self.classes if name != self.label(item))

    def check(self, n: int = 10**6, who: str = "ann") -> int:
        """Check items, all right, until there is none or `n` are done."""
        done = 0
        while done < n and (item := self.next(who)["number"]) is not None:
            self.record(item, self.label(item), who)
            done += 1
        return done

    def summary(self) -> Any:
        return self.store.read(lambda c: audit_summary(c, self.number))

    def verified(self) -> list[str]:
        return self.store.read(lambda c: verify(c, self.number))["differences"]

    def sql(self, statement: Any) -> None:
        self.store.write(lambda c: c.execute(statement))

    def maintain(self) -> Any:
        maintain(self.store)
        return self.store.read(lambda c: get_campaign(c, self.number))


@pytest.fixture
def made() -> Any:
    labs: list[Lab] = []

    def make(*args: Any, **options: Any) -> Lab:
        labs.append(Lab(*args, **options))
        return labs[-1]

    yield make
    for one in labs:
        one.store.close()


def test_checks_reach_the_bound_and_the_certificate_verifies(url: str, made: Any) -> None:
    lab = made(url)
    lab.start()
    first = lab.next()
    assert first["number"] == lab.next()["number"], "who reloads gets the same item"
    done = lab.check()
    found = lab.summary()
    assert lab.next()["reason"] == "done"
    assert (found["claims"]["state"], found["claims"]["checks"]) == ("reached", done)
    assert found["claims"]["upper"] <= 0.2
    assert found["people"] == {"ann": done}
    data = lab.store.read(lambda c: certificate(c, lab.store.audits, lab.number))
    again = ct.verify_audit(json.dumps(data).encode(), name="audit.json")
    assert again.to_dict() == found["claims"]
    assert lab.verified() == []


def test_the_mean_loss_is_certified_where_mistakes_cost_something(url: str, made: Any) -> None:
    loss = {"pairs": {"c1": {"c2": 20}}}
    costly = PlanPolicy(ct.design(ct.example("table1").replace(loss=loss)), "curtailed")
    lab = made(url, policy=costly)
    lab.start()
    first = lab.next()["number"]
    lab.record(first, lab.wrong(first))
    lab.check()
    report = lab.store.read(lambda c: audit_report(c, lab.store.audits, lab.number))
    cost = report["claims"]["loss"]
    assert 0 < cost["low"] < cost["upper"] <= 20
    assert "certified mean loss at most" in report["sentence"]
    data = lab.store.read(lambda c: certificate(c, lab.store.audits, lab.number))
    again = ct.verify_audit(json.dumps(data).encode(), name="audit.json")
    assert again.mean_loss.upper == pytest.approx(cost["upper"])
    assert lab.verified() == []
    lab.sql(audits.update().values(labels=sa.func.replace(audits.c.labels, "20.0", "30.0")))
    assert lab.verified()


def test_a_loss_that_no_label_can_have_is_left_out(made: Any) -> None:
    one_mistake = [[0.0] * 5 for _ in range(5)]
    one_mistake[0][4] = 1.0
    problem = ct.example("table1").replace(loss=one_mistake)
    lab = made(n=1, policy=PlanPolicy(ct.design(problem), "curtailed"))
    campaign = lab.store.read(lambda c: get_campaign(c, lab.number))
    assert checking._loss_of(campaign, [0, 1]) is None
    assert checking._loss_of(campaign, [0, 4]) is not None


def test_nothing_to_audit_and_no_bound_take_one_line(made: Any) -> None:
    lab = made(n=3)
    with pytest.raises(CrowdtreeError, match="give a bound"):
        lab.start(None)
    with pytest.raises(CrowdtreeError, match="bound: expected a number between 0 and 1"):
        lab.start(2.0)
    number, _ = filled(lab.store, 2, ONE_VOTE)
    with pytest.raises(CrowdtreeError, match="has no labels to check yet"):
        lab.store.write(lambda c: checking.start(c, number, 0.1, 0.0))
    with pytest.raises(NotFound, match="has no audit"):
        lab.store.read(lambda c: certificate(c, lab.store.audits, number))
    assert lab.next()["reason"] == "not started"
    found = lab.store.read(lambda c: audit_report(c, lab.store.audits, number))
    assert (found["started"], found["forecast"], found["sentence"]) == (False, None, "")


def test_several_people_get_distinct_items_and_a_left_one_comes_again(made: Any) -> None:
    lab = made()
    lab.start()
    people = [f"p{k}" for k in range(5)]
    held = {who: lab.next(who)["number"] for who in people}
    assert len(set(held.values())) == 5
    for who in people[:0:-1]:  # the first one leaves; results wait for hers
        lab.record(held[who], lab.label(held[who]), who)
    assert lab.summary()["claims"]["checks"] == 0
    lab.clock.now += checking.HOLD_SECONDS + 1
    assert lab.next("p4")["number"] == held["p0"]
    with pytest.raises(Refused, match="somebody else"):
        lab.record(held["p0"], lab.label(held["p0"]), "p0")
    lab.record(held["p0"], lab.label(held["p0"]), "p4")
    assert lab.summary()["claims"]["checks"] == 5
    assert lab.verified() == []


def test_results_are_final(made: Any) -> None:
    lab = made()
    lab.start()
    item = lab.next()["number"]
    with pytest.raises(CrowdtreeError, match="is not a class"):
        lab.record(item, "no such class")
    lab.record(item, lab.label(item))
    lab.record(item, lab.label(item))  # sent again
    assert lab.summary()["claims"]["checks"] == 1
    for truth, who in ((lab.wrong(item), "ann"), (None, "ann"), (lab.label(item), "bob")):
        with pytest.raises(Refused, match="cannot be changed"):
            lab.record(item, truth, who)
    other = lab.store.read(
        lambda c: c.execute(
            sa.select(items.c.id).where(items.c.id.not_in(sa.select(checks.c.item_id))).limit(1)
        ).scalar_one()
    )
    with pytest.raises(Refused, match="not being checked"):
        lab.record(other, lab.label(other))
    assert lab.summary()["claims"]["checks"] == 1


def test_cannot_tell_counts_as_wrong_and_is_listed(made: Any) -> None:
    lab = made()
    lab.start()
    item = lab.next()["number"]
    lab.record(item, None)
    found = lab.summary()
    assert (found["claims"]["wrong"], found["unsure"]) == (1, 1)
    assert lab.store.read(lambda c: unsure_items(c, lab.number))[0][0] == item
    lab.start(0.3)  # also in the next audit
    assert lab.summary()["claims"]["wrong"] == 1
    rows = lab.store.read(lambda c: label_rows(c, lab.number, lab.classes))
    checked = [(row["checked"], row["truth"]) for row in rows if row["checked"]]
    assert checked == [(True, None)]
    assert lab.verified() == []


def test_starting_again_covers_new_labels_and_keeps_the_checks(made: Any) -> None:
    lab = made(n=20, automatically=False)
    lab.start()
    lab.check(4)
    rows = [{"task": f"j{k}", "payload": "{}", "gold": None} for k in range(20)]
    lab.store.write(lambda c: campaigns.add_items(c, lab.number, rows))
    work(lab.store, lab.workers)
    found = lab.summary()
    assert (found["claims"]["items"], found["labelled"]) == (20, 40)
    lab.start()
    claims = lab.summary()["claims"]
    assert (claims["items"], claims["known"], claims["checks"]) == (40, 4, 0)
    lab.check()
    assert lab.summary()["claims"]["state"] == "reached"
    rows_now = lab.store.read(lambda c: label_rows(c, lab.number, lab.classes))
    assert sum(row["checked"] for row in rows_now) == 4 + lab.summary()["claims"]["checks"]
    assert all(row["truth"] == row["label"] for row in rows_now if row["checked"])
    assert lab.verified() == []


def test_a_failed_transaction_leaves_no_trace(made: Any) -> None:
    """The cached audit went ahead of the database; it is computed anew."""
    lab = made()
    lab.start()
    lab.check(2)

    def fail(connection: Any) -> None:
        checking.hand_out(connection, lab.store.audits, lab.number, "ann", lab.clock())
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        lab.store.write(fail)
    lab.check(3, "bob")
    lab.store.audits = AuditCache()  # another process
    lab.check(3)
    assert lab.summary()["claims"]["checks"] == 8
    assert lab.verified() == []


def test_many_threads_check_at_once(url: str, made: Any) -> None:
    lab = made(url, n=60)
    lab.start(0.1)
    threads = [threading.Thread(target=lab.check, args=(8, f"p{k}")) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lab.summary()
    assert found["claims"]["checks"] == sum(found["people"].values())
    assert lab.verified() == []


# ------------------------------------------------------------------------------ finishing


def test_a_campaign_finishes_only_when_the_bound_is_certified(made: Any) -> None:
    lab = made(max_wrong_labels=0.2)
    found = lab.maintain()
    assert (found.status, found.status_reason) == ("running", "waiting for checks")
    assert latest_audit_of(lab).bound == 0.2  # started by the server
    lab.check(3)
    assert lab.maintain().status == "running"
    lab.check()
    assert lab.maintain().status == "finished"
    assert lab.verified() == []


def test_a_new_audit_knows_a_result_that_is_being_recorded(postgres: Any, made: Any) -> None:
    lab = made(postgres.migrated())
    lab.start()
    item = lab.next()["number"]
    found = (lab.store.audits, lab.number, "ann", "ann", item, lab.label(item), lab.clock())
    again = threading.Thread(target=lab.start)
    with lab.store.engine.connect() as other, other.begin():
        checking.record(other, *found)
        again.start()
        again.join(1.0)  # it waits for the result; without the lock it would be done by now
    again.join()
    assert latest_audit_of(lab).claims["known"] == 1


def latest_audit_of(lab: Lab) -> Any:
    return lab.store.read(lambda c: latest_audit(c, lab.number))


def test_a_bound_out_of_reach_is_said(made: Any) -> None:
    lab = made(n=20, max_wrong_labels=0.05)
    lab.maintain()
    for _ in range(2):
        item = lab.next()["number"]
        lab.record(item, lab.wrong(item))
    found = lab.maintain()
    assert (found.status, found.revision) == ("running", 1)  # people are asked again
    assert lab.next()["reason"] == "asking again"  # until there are labels to check


def test_another_bound_is_taken_while_it_waits(made: Any) -> None:
    lab = made(n=40, max_wrong_labels=0.02)
    lab.maintain()
    item = lab.next()["number"]
    lab.record(item, None)
    change = {"finish.max_wrong_labels": 0.5}
    lab.store.write(
        lambda c: campaigns.change_settings(c, lab.number, ONE_VOTE, change, lab.clock())
    )
    assert lab.maintain().status_reason == "waiting for checks"
    assert latest_audit_of(lab).bound == 0.5
    assert lab.summary()["claims"]["wrong"] == 1  # it stays known
    lab.start(0.01)  # the owner wants to know more
    lab.check(4)
    assert lab.maintain().status == "running"
    assert latest_audit_of(lab).bound == 0.5  # that one was out of reach
    lab.check()
    assert lab.maintain().status == "finished"


def test_a_campaign_that_waits_for_checks_can_be_paused_and_resumed(made: Any) -> None:
    lab = made(n=5, max_wrong_labels=0.3)
    assert lab.maintain().status_reason == "waiting for checks"
    for status in ("paused", "running"):
        lab.store.write(lambda c, s=status: campaigns.set_status(c, lab.number, s, lab.clock()))
    assert lab.maintain().status_reason == "waiting for checks"
    assert lab.store.ask(Next(lab.workers[0]))["reason"] == "finished"  # for workers it is over


def test_without_the_setting_campaigns_finish_as_before(made: Any) -> None:
    assert made(n=3).maintain().status == "finished"


# ------------------------------------------------------------------------------ people


def test_links_for_checking_are_revocable(made: Any) -> None:
    lab = made(n=5)
    lab.start()
    token, link = lab.store.write(
        lambda c: checking.invite_auditor(c, lab.number, "Ann", lab.clock())
    )
    who = tokens.hashed(token)
    assert lab.store.read(lambda c: checking.auditor_of(c, who, 0.0)) == (lab.number, "Ann")
    assert lab.store.read(lambda c: checking.listed_auditors(c, lab.number)) == [link]
    with pytest.raises(NotFound):
        lab.store.write(lambda c: checking.revoke_auditor(c, lab.number + 1, link["id"], 1.0))
    lab.store.write(lambda c: checking.revoke_auditor(c, lab.number, link["id"], 1.0))
    with pytest.raises(Refused, match="not valid"):
        lab.store.read(lambda c: checking.auditor_of(c, who, 2.0))
    assert lab.store.read(lambda c: checking.listed_auditors(c, lab.number)) == []
    with pytest.raises(CrowdtreeError, match="name of the person"):
        lab.store.write(lambda c: checking.invite_auditor(c, lab.number, " ", 0.0))


# ------------------------------------------------------------------------------ tampering

TAMPERED = {
    "a result": checks.update().where(checks.c.draw == 1).values(correct=0),
    "a result and its truth": checks.update()
    .where(checks.c.draw == 1)
    .values(correct=0, truth=sa.case((checks.c.label == 0, 1), else_=0)),
    "no result": checks.update()
    .where(checks.c.draw == 1)
    .values(correct=None, truth=None, at=None, person=""),
    "a check is gone": checks.delete().where(checks.c.draw == 2),
    "the last check is gone": checks.delete().where(checks.c.draw == 5),
    "the order": checks.update().where(checks.c.draw == 3).values(after=1),
    "the checked label": checks.update().where(checks.c.draw == 1).values(label=99),
    "the seed": audits.update().values(seed=4),
    "the bound": audits.update().values(bound=0.3),
    "the confidence": audits.update().values(confidence=0.5),
    "the claims": audits.update().values(
        claims=sa.func.replace(audits.c.claims, '"wrong": 0', '"wrong": 1')
    ),
    "a label": labels.update().where(labels.c.id == 1).values(label=(labels.c.label + 1) % 4),
    "a stated error": labels.update().where(labels.c.id == 1).values(posterior_error=0.4),
    "the frozen labels": audits.update().values(
        labels=sa.func.replace(audits.c.labels, '["i1", ', '["i1x", ')
    ),
    "known items": audits.update().values(known='{"i1": "x"}'),
}


def test_verify_finds_what_was_changed(made: Any) -> None:
    lab = made(n=30)
    lab.start(0.05)
    lab.check(6)
    assert lab.verified() == []
    for what, statement in TAMPERED.items():
        with lab.store.engine.connect() as connection:
            connection.execute(statement)
            found = verify(connection, lab.number)["differences"]
            connection.rollback()
        where = "posterior error" if what == "a stated error" else "audit"  # found by the replay
        assert any(where in text for text in found), what
    assert lab.verified() == []


def test_a_later_label_is_not_covered_though_the_clock_went_back(made: Any) -> None:
    lab = made(n=30)
    lab.start(0.05)
    with lab.store.engine.connect() as connection:
        old = connection.execute(sa.select(labels).order_by(labels.c.id).limit(1)).one()
        row = {**old._mapping, "label": (old.label + 1) % len(lab.classes), "at": old.at - 1}
        connection.execute(labels.delete().where(labels.c.id == old.id))
        connection.execute(labels.insert().values({**row, "id": old.id + 1000}))
        found = verify(connection, lab.number)["differences"]
        connection.rollback()
    assert found, "the label does not follow from the answers"
    assert not [text for text in found if "was audited as" in text]


def test_a_label_that_changes_after_its_check_makes_the_audit_out_of_date(made: Any) -> None:
    lab = made()
    lab.start()
    item = lab.next()["number"]
    lab.record(item, lab.label(item))
    assert lab.summary()["changed"] == 0
    changed = (labels.c.label + 1) % len(lab.classes)
    lab.sql(labels.update().where(labels.c.item_id == item).values(label=changed))
    assert lab.summary()["changed"] == 1
    lab.start()
    found = lab.summary()
    claims = found["claims"]
    assert (found["changed"], claims["known"], claims["wrong"]) == (0, 1, 1), "its truth is known"
    # labels from a clock that is ahead are covered, not newer
    lab.sql(labels.update().values(at=lab.clock() + 100))
    lab.start()
    assert lab.summary()["changed"] == 0
    # labels that were not checked, made again after the start
    lab.clock.now += 200
    lab.sql(labels.update().where(labels.c.item_id != item).values(at=lab.clock() + 1))
    assert lab.summary()["changed"] == 39
    assert not [text for text in lab.verified() if text.startswith("audit")]
