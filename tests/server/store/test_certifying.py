"""Campaigns that finish with a certificate: correcting labels, asking again, saying when not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import PlanPolicy
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.wrong_table import WrongTable
from crowdtree.server.store import Next, Store, Submit
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits.checking import calibrate
from crowdtree.server.store.audits.report import audit_summary, certificate
from crowdtree.server.store.audits.stored import latest_audit, read_audits
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import audits, labels
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.queries.export import label_rows
from crowdtree.server.store.queries.progress import list_revisions
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.webhooks.hooks import add_hook
from tests.storelab import filled, maintain
from tests.weblab import Clock, delivered

PROBLEM = ct.Problem(
    ["a", "b", "c"], None, list("pqrs"), [[0, 0, 1], [0, 1, 1], [0, 1, 0], [1, 0, 0]], 0.05
)


def adaptive(**options: Any) -> ct.AdaptivePolicy:
    return ct.AdaptivePolicy(PROBLEM, 0.05, max_answers=10, strict=False, **options)


class Crowd:
    """A campaign whose workers err with `error`, and a person who checks without errors."""

    def __init__(
        self, url: str = "sqlite://", n: int = 60, policy: Any = None, error: float = 0.25,
        **settings: Any,
    ) -> None:  # fmt: skip
        self.clock = Clock()
        self.store = Store(url, clock=self.clock, rng=0)
        settings = {"revise": False, "max_wrong_labels": 0.08, **settings}
        self.number, self.workers = filled(self.store, n, policy or adaptive(), **settings)
        self.rng, self.error, self.keys = np.random.default_rng(1), error, 0

    def truth(self, task: str) -> str:
        return PROBLEM.classes[int(task[1:]) % 3]

    def work(self, most: int = 10**6) -> int:
        """Answer until there is nothing left; returns how many answers."""
        done, idle = 0, 0
        while idle < len(self.workers) and done < most:
            idle = 0
            for who in self.workers:
                task = self.store.ask(Next(who))["task"]
                if task is None:
                    idle += 1
                    continue
                question = PROBLEM.questions.index(task["question"]["name"])
                cls = PROBLEM.classes.index(self.truth(task["item"]["task"]))
                value = int(PROBLEM.outcome[question, cls])
                value = 1 - value if self.rng.random() < self.error else value
                self.keys += 1
                self.store.ask(Submit(who, task["lease"], "answer", value, f"k{self.keys}"))
                done += 1
        return done

    def check(self, most: int = 10**6, truth: Any = None) -> int:
        """Check items as they are; returns how many."""
        done = 0
        while done < most:
            found = self.store.write(
                lambda c: checking.hand_out(c, self.store.audits, self.number, "ann", self.clock())
            )
            if found["number"] is None:
                break
            said = (truth or self.truth)(found["item"]["task"])
            args = (self.store.audits, self.number, "ann", "ann", found["number"], said)
            self.store.write(lambda c, args=args: checking.record(c, *args, self.clock()))
            done += 1
        return done

    def maintain(self) -> Any:
        self.clock.now += 1
        maintain(self.store)
        return self.campaign

    @property
    def campaign(self) -> Any:
        return self.store.read(lambda c: get_campaign(c, self.number))

    @property
    def audit(self) -> Any:
        return self.store.read(lambda c: latest_audit(c, self.number))

    def summary(self) -> Any:
        return self.store.read(lambda c: audit_summary(c, self.number))

    def rows(self) -> list[Any]:
        return self.store.read(lambda c: label_rows(c, self.number, list(PROBLEM.classes)))

    def wrong(self) -> float:
        rows = self.rows()
        return sum(row["label"] != self.truth(row["task"]) for row in rows) / len(rows)

    def verified(self) -> list[str]:
        return self.store.read(lambda c: verify(c, self.number))["differences"]

    def sent(self) -> list[Any]:
        """Messages to webhooks that are due; they arrive."""
        return delivered(self.store, self.clock)

    def revisions(self) -> list[Any]:
        return self.store.read(lambda c: list_revisions(c, self.number))


@pytest.fixture
def made() -> Any:
    crowds: list[Crowd] = []

    def make(*args: Any, **options: Any) -> Crowd:
        crowds.append(Crowd(*args, **options))
        return crowds[-1]

    yield make
    for one in crowds:
        one.store.close()


@pytest.mark.slow
def test_a_campaign_asks_again_until_its_bound_is_certified(url: str, made: Any) -> None:
    """People err five times as often as assumed: the first labels cannot be certified."""
    lab = made(url, n=80)
    lab.work()
    assert lab.wrong() > 0.1
    assert lab.maintain().reason is CampaignReason.WAITING_FOR_CHECKS
    first = lab.audit
    assert 1 - first.confidence == pytest.approx(0.0375)
    while lab.check(2) and lab.maintain().revision == 0:  # a few at a time, as people do
        assert lab.campaign.reason is CampaignReason.WAITING_FOR_CHECKS
    assert (lab.campaign.status, lab.campaign.revision) == ("running", 1)
    assert lab.verified() == []
    before = {row["task"]: row for row in lab.rows()}
    checked = {task for task, row in before.items() if row["checked"]}
    revision = lab.revisions()[-1]
    assert (revision["actor"], revision["reason"]["audit"]) == ("server", first.id)
    policy = lab.campaign.make_policy()
    assert policy.target_error <= 0.05
    assert policy.calibration.power(5) < 1, "the checks say that answers are worth less"
    assert lab.maintain().status == "running"  # items are replayed and open again
    lab.work(20)
    assert lab.verified() == []
    for _ in range(8):
        lab.work()
        if lab.maintain().status == "finished":
            break
        lab.check(15)
        assert lab.verified() == []
    assert lab.campaign.status == "finished", lab.campaign.status_reason
    assert lab.audit.id > first.id
    assert lab.audit.claims["corrected"] <= 0.08
    assert 1 - lab.audit.confidence < 0.0375
    assert lab.wrong() <= 0.08
    now = {row["task"]: row for row in lab.rows()}
    assert all(now[task]["reason"] == "checked" for task in checked)
    assert all(now[task]["answers"] == before[task]["answers"] for task in checked)
    assert all(now[task]["label"] == lab.truth(task) for task in checked)
    assert lab.verified() == []
    data = lab.store.read(lambda c: certificate(c, lab.store.audits, lab.number))
    assert ct.verify_audit(json.dumps(data).encode(), name="audit.json").correct


def test_wrong_labels_are_corrected_and_the_certificate_counts_them(made: Any) -> None:
    lab = made(n=30, error=0.1, max_wrong_labels=0.2)
    lab.store.write(lambda c: add_hook(c, lab.number, "https://example.org", 0.0))
    lab.work()
    lab.maintain()
    lab.check()
    done = lab.maintain()
    assert done.status == "finished"
    sent = lab.sent()
    assert sent[-1]["type"] == "campaign.finished"
    (told,) = [body for body in sent if body["type"] == "certificate.reached"]
    assert told["data"]["wanted"] == 0.2
    assert told["data"]["certified"] <= 0.2
    assert told["data"]["text"].startswith("Asked for at most 20 % wrong labels")
    claims = lab.audit.claims
    wrong = [row for row in lab.rows() if row["checked"] and row["reason"] != "checked"]
    assert not wrong
    assert lab.summary()["changed"] == 0, "a correction does not make the audit out of date"
    assert claims["corrected"] == pytest.approx(claims["upper"] - claims["wrong"] / 30)
    assert lab.verified() == []


def test_what_was_checked_is_known_whatever_the_label_becomes(made: Any) -> None:
    lab = made(n=30, error=0.2, max_wrong_labels=None, automatically=False)
    lab.work()
    lab.store.write(lambda c: checking.start(c, lab.number, 0.2, lab.clock(), seed=1))
    lab.check(10)
    number = lab.store.write(lambda c: calibrate(c, lab.store.audits, lab.number, lab.clock()))
    assert number == 1
    assert lab.revisions()[-1]["reason"]["text"] == "calibrated by 10 checked items"
    assert lab.campaign.make_policy().calibration.items <= 10
    lab.maintain()
    lab.work()
    lab.store.write(lambda c: checking.start(c, lab.number, 0.2, lab.clock(), seed=2))
    assert lab.audit.claims["known"] == 10
    assert 1 - lab.audit.confidence == pytest.approx(0.05), "nothing is to be certified by itself"
    assert lab.verified() == []


def test_calibrating_without_checks_takes_one_line(made: Any) -> None:
    lab = made(n=5, max_wrong_labels=None)
    with pytest.raises(CrowdtreeError, match="no item has been checked yet"):
        lab.store.write(lambda c: calibrate(c, lab.store.audits, lab.number, 0.0))


def nobody_is_right(task: str) -> str:
    return PROBLEM.classes[(int(task[1:]) + 1) % 3]


@pytest.mark.parametrize(
    ("why", "options"),
    [
        ("the budget is spent", {"price": 1.0, "budget": 1000.0}),
        (
            "each worker answers only one question",
            {"policy": PlanPolicy(ct.design(PROBLEM)), "one_question_per_worker": True},
        ),
    ],
)
def test_a_bound_out_of_reach_is_said_in_a_sentence(made: Any, why: str, options: Any) -> None:
    lab = made(n=10, error=0.0, **options)
    lab.store.write(lambda c: add_hook(c, lab.number, "https://example.org", 0.0))
    lab.work()
    assert lab.maintain().reason is CampaignReason.WAITING_FOR_CHECKS
    if "budget" in options:
        change = (lab.number, adaptive(), {"money.budget": float(lab.keys)}, lab.clock())
        lab.store.write(lambda c: campaigns.change_settings(c, *change))
    lab.check(3, nobody_is_right)
    found = lab.maintain()
    assert found.status == "running"
    assert f"cannot be reached with these people and questions: {why}" in found.status_reason
    assert "certified so far: at most" in found.status_reason
    (told,) = [body for body in lab.sent() if body["type"] == "certificate.out_of_reach"]
    assert told["data"]["text"] == found.status_reason
    assert lab.maintain().status_reason == found.status_reason
    assert lab.sent() == [], "it is said once"
    lab.check(truth=nobody_is_right)  # every wrong label that is found is corrected
    assert lab.maintain().status == "finished"
    assert lab.verified() == []


def test_it_gives_up_asking_after_a_few_rounds(made: Any) -> None:
    lab = made(n=12, error=0.0, max_wrong_labels=0.05)
    lab.work()
    reasons = set()
    for _ in range(20):
        lab.maintain()
        lab.work()
        reasons.add(lab.maintain().status_reason)
        lab.check(1, nobody_is_right)
    said = next(text for text in reasons if "cannot be reached" in text)
    assert "after asking again 3 times the answers leave an estimated" in said
    assert sum("audit" in entry["reason"] for entry in lab.revisions()) == 3
    assert lab.verified() == []


def test_a_limit_of_checks_makes_it_ask_again(made: Any) -> None:
    lab = made(n=40, error=0.0, max_wrong_labels=0.05, max_checks=5)
    lab.work()
    lab.maintain()
    lab.check(4)
    assert lab.maintain().reason is CampaignReason.WAITING_FOR_CHECKS
    lab.check(1)
    assert lab.maintain().revision >= 1  # or more, if no item is asked about again


def test_a_plan_goes_on_adaptively(made: Any) -> None:
    lab = made(n=30, policy=PlanPolicy(ct.design(PROBLEM)), error=0.3, max_wrong_labels=0.1)
    lab.work()
    lab.maintain()
    while lab.campaign.revision == 0 and lab.check(1):
        lab.maintain()
    assert isinstance(lab.campaign.make_policy(), ct.AdaptivePolicy)
    assert lab.work() > 0
    lab.maintain()
    assert lab.verified() == []


def test_the_answers_are_watched_on_after_an_audit_revision(made: Any) -> None:
    lab = made(n=40, revise=True, error=0.25)
    watching = Runner(lab.store, [WrongTable])
    lab.work()
    watching.settle()
    for _ in range(30):
        lab.maintain()
        lab.work()
        watching.settle()
        lab.check(3)
    fresh = Runner(lab.store, [WrongTable])  # another process reads the log again
    fresh.settle()
    assert not fresh.rules[0].failures
    assert not watching.rules[0].failures
    assert lab.verified() == []


def test_verify_finds_a_checked_label_that_no_check_gave(made: Any) -> None:
    lab = made(n=20, error=0.1, max_wrong_labels=0.3)
    lab.work()
    lab.maintain()
    lab.check()
    lab.maintain()
    assert lab.verified() == []
    forged = labels.update().where(labels.c.reason == "checked")
    lab.store.write(lambda c: c.execute(forged.values(label=(labels.c.label + 1) % 3)))
    assert any("has label" in text for text in lab.verified())
    lab.store.write(lambda c: c.execute(audits.update().values(corrects=0)))
    assert any("audit" in text for text in lab.verified())


def test_every_run_takes_its_share_of_the_risk(made: Any) -> None:
    lab = made(n=20, error=0.0, max_wrong_labels=0.3, automatically=False)
    lab.work()
    for _ in range(3):
        lab.store.write(lambda c: checking.start(c, lab.number, None, lab.clock()))
        lab.check(1)
    lab.store.write(lambda c: checking.start(c, lab.number, None, lab.clock()))
    risks = [1 - row.confidence for row in lab.store.read(lambda c: read_audits(c, lab.number))]
    assert risks == pytest.approx([0.0375, 0.009375, 0.00234375, 0.0005859375])
    assert sum(risks) < 0.05


def test_unsure_checks_stay_wrong(made: Any) -> None:
    lab = made(n=10, error=0.0, max_wrong_labels=0.15)
    lab.work()
    lab.maintain()
    unsure = iter([None])
    lab.check(truth=lambda task: next(unsure, lab.truth(task)))
    lab.maintain()
    claims = lab.audit.claims
    assert claims["wrong"] == 1
    assert claims["corrected"] == claims["upper"] >= 0.1
    reasons = [row["reason"] for row in lab.rows() if row["checked"] and row["truth"] is None]
    assert reasons == ["target"]
    assert lab.verified() == []
    assert lab.store.read(lambda c: c.execute(sa.select(audits.c.corrects)).scalar_one()) == 1
