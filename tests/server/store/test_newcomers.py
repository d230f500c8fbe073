"""Labels rest on several people, and wait until somebody is known; suspects are paused."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import numpy as np
import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.rng import generator
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.policies.walk import Round
from crowdtree.server.reasons import CampaignReason, WorkerReason
from crowdtree.server.rules import finishing
from crowdtree.server.rules.finishing import Finishing
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.stalled_items import AWAY_SECONDS, Findings, StalledItems
from crowdtree.server.rules.trust import HeldLabels, Trust
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import ExpireLeases, Next, Store, Submit, tokens
from crowdtree.server.store.corrections.exclusions import exclude, include
from crowdtree.server.store.corrections.items import correct, reopen
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.campaign_row import get_campaign, tally, touch
from crowdtree.server.store.db.tables import (
    answers,
    credentials,
    exclusions,
    item_events,
    items,
    labels,
    open_questions,
    waiting,
    workers,
)
from crowdtree.server.store.db.tables import campaigns as status_of
from crowdtree.server.store.errors import Refused
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.owner.deleting import erase_worker
from crowdtree.server.store.replay.verify import verify
from crowdtree.simulation import Crowd, simulate
from tests.short import settings_of
from tests.storelab import MAINTENANCE, join_openly, maintain

PROBLEM = ct.Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], 0.1)
ADAPTIVE = AdaptivePolicy(PROBLEM, target_error=0.15, max_answers=10, strict=False)
LEFT_TO_OWNER = CampaignReason.LEFT_TO_OWNER
SHORT = AdaptivePolicy(PROBLEM, target_error=0.15, max_answers=4, strict=False)
PLAN = PlanPolicy(ct.design(PROBLEM), "curtailed")


class Newcomers:
    """A campaign that people join by the open link."""

    def __init__(self, url: str, policy: Any, n: int = 4, gold: int = 0, **settings: Any) -> None:
        self.now = 1000.0
        self.store = Store(url, clock=lambda: self.now, rng=0)
        self.policy = policy
        self.settings = settings_of(revise=False, **settings)
        self.number = self.store.write(
            lambda c: campaigns.create(c, "x", policy, self.settings, self.now)
        )
        rows = [
            {"task": f"i{k}", "payload": "{}", "gold": k % 2 if k < gold else None}
            for k in range(n + gold)
        ]
        self.store.write(lambda c: campaigns.add_items(c, self.number, rows))
        self.store.write(lambda c: campaigns.set_status(c, self.number, "running", self.now))
        self.trusting = Runner(self.store, [Trust, HeldLabels])
        self.maintenance = Runner(self.store, MAINTENANCE)
        self.count = 0

    def join(self) -> str:
        return tokens.hashed(join_openly(self.store, self.number, self.now))

    def invite(self) -> str:
        made = (self.number, "", self.policy, False, self.now)
        return tokens.hashed(self.store.write(lambda c: people.invite(c, *made)[1]))

    def answer(self, who: str, wrong: bool = False, seconds: float = 5.0) -> str | None:
        """Answer a question; items with an even number are of class a. Returns the item."""
        task = self.store.ask(Next(who))["task"]
        if task is None:
            return None
        self.now += seconds
        self.count += 1
        name = str(task["item"]["task"])
        value = int(name[1:]) % 2 ^ wrong
        self.store.ask(Submit(who, task["lease"], "answer", value, f"k{self.count}"))
        return name

    def work(self, *who: str, wrong: bool = False, seconds: float = 5.0) -> int:
        """Let people answer in turn until nobody gets a question."""
        total, idle = 0, 0
        while idle < len(who):
            idle = 0
            for one in who:
                if self.answer(one, wrong, seconds) is None:
                    idle += 1
                else:
                    total += 1
        return total

    def look(self) -> None:
        self.trusting.settle()
        self.maintenance.settle()

    def demote(self, who: str) -> None:
        """Make somebody a stranger again, as :class:`Trust` does when evidence is lost."""
        mine = sa.select(credentials.c.worker_id).where(credentials.c.token_hash == who)

        def apply(connection: sa.Connection) -> None:
            connection.execute(workers.update().where(workers.c.id.in_(mine)).values(known=""))
            touch(connection, self.number)

        self.store.write(apply)

    def rows(self, statement: Any) -> list[Any]:
        return list(self.store.read(lambda c: c.execute(statement).all()))

    @property
    def labelled(self) -> int:
        return len(self.rows(sa.select(labels.c.id).where(labels.c.label.is_not(None))))

    @property
    def held(self) -> int:
        return self.store.read(lambda c: tally(c, self.number)).get("held", 0)

    @property
    def status(self) -> tuple[str, str]:
        found = self.store.read(lambda c: get_campaign(c, self.number))
        return found.status, found.reason

    def agrees(self) -> None:
        assert self.store.read(partial(verify, campaign_id=self.number))["differences"] == []


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_nobody_labels_an_item_alone(url: str, policy: Any) -> None:
    """On 4113173 one person was asked until the item had its label."""
    lab = Newcomers(url, policy)
    with lab.store.opened():
        ann, bob = lab.invite(), lab.invite()
        assert lab.work(ann) == 4
        assert lab.labelled == 0
        lab.agrees()
        lab.work(bob)
        assert lab.labelled == 4
        lab.agrees()
        who = sa.select(answers.c.item_id, sa.func.count(answers.c.worker_id.distinct()))
        assert {n for _, n in lab.rows(who.group_by(answers.c.item_id))} == {2}


@pytest.mark.parametrize("people_per_item", [1, 3])
@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_simulated_campaigns_take_the_same_answers(
    tmp_path: Any, policy: Any, people_per_item: int
) -> None:
    """Everybody answers once about an item, as simulated people do: the same labels come out."""
    run = simulate(PROBLEM, policy, 15, rng=1, people_per_item=people_per_item)
    block = Crowd().block(PROBLEM, int(generator(1).integers(0, 2**63)), 0, 15)
    alone = {"one_question_per_item": True, "people_per_item": people_per_item}
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", policy, n=15, **alone)
    asked: Counter[tuple[int, int]] = Counter()
    yes: Counter[tuple[int, int]] = Counter()
    with lab.store.opened():
        for who in (lab.invite() for _ in range(12)):
            while (task := lab.store.ask(Next(who))["task"]) is not None:
                about = int(task["item"]["task"][1:]), "qr".index(task["question"]["name"])
                where = (np.array([n]) for n in (*about, asked[about]))
                before = np.array([[asked[about] - yes[about]], [yes[about]]])
                value = int(block.answer(Round(*where, lambda b=before: b)).value[0])
                lab.store.ask(Submit(who, task["lease"], "answer", value, f"{about}"))
                asked[about] += 1
                yes[about] += value
        found = lab.rows(
            sa.select(items.c.task, labels.c.label).join(labels, labels.c.item_id == items.c.id)
        )
        assert {int(row.task[1:]): row.label for row in found} == dict(enumerate(run.label_index))
        assert sum(asked.values()) == run.answers.sum()
        lab.agrees()


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_one_person_may_be_enough(url: str, policy: Any) -> None:
    lab = Newcomers(url, policy, people_per_item=1)
    with lab.store.opened():
        lab.work(lab.invite())
        assert lab.labelled == 4
        lab.agrees()


def test_the_rules_of_the_engine_cannot_change_after_the_start(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", PLAN)
    with lab.store.opened():
        for change in ({"labels.people_per_item": 1}, {"table.person_dependence": 0.1}):
            with pytest.raises(CrowdtreeError, match="cannot change after the start"):
                lab.store.write(
                    lambda c, change=change: campaigns.change_settings(
                        c, lab.number, PLAN, change, lab.now
                    )
                )
    few = AdaptivePolicy(PROBLEM, max_answers=1, strict=False)
    with pytest.raises(CrowdtreeError, match="people_per_item: 2 people cannot answer"):
        campaigns.check_policy(few, Settings())


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_a_burst_of_strangers_labels_nothing(url: str, policy: Any) -> None:
    """On 4113173 five anonymous people labelled all items, with gold on."""
    lab = Newcomers(url, policy, n=20, gold=6, gold_rate=0.3, gold_first=2)
    with lab.store.opened():
        strangers = [lab.join() for _ in range(5)]
        assert lab.work(*strangers, wrong=True, seconds=0.1) >= 40
        lab.look()
        assert lab.labelled == 0
        paused = sa.select(workers.c.id).where(workers.c.reason == WorkerReason.SUSPECTED)
        assert lab.rows(paused)
        lab.agrees()
        said = lab.store.read(partial(list_activity, campaign_id=lab.number))
        assert {e["detail"]["rule"] for e in said if e["action"] == "suspect"} <= {"wrong", "alike"}
        friends = [lab.invite() for _ in range(6)]
        lab.work(*friends)
        assert lab.labelled == 20
        lab.agrees()


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_strangers_who_agree_do_not_finish_a_campaign(url: str, policy: Any) -> None:
    """Nobody can tell them from people who are right, so the owner looks at the labels first."""
    lab = Newcomers(url, policy, n=12)
    with lab.store.opened():
        strangers = [lab.join() for _ in range(3)]
        lab.work(*strangers, wrong=True)
        lab.look()
        lab.look()
        assert (lab.labelled, lab.status) == (12, ("running", LEFT_TO_OWNER))
        assert {lab.store.ask(Next(who))["reason"] for who in strangers} == {"finished"}
        with pytest.raises(Refused, match="This work is finished"):
            lab.join()
        said = lab.store.read(partial(list_activity, campaign_id=lab.number))
        assert [entry["action"] for entry in said].count("left to owner") == 1
        lab.invite()
        lab.look()
        assert lab.status == ("running", LEFT_TO_OWNER), "an invitation confirms nothing"
        lab.agrees()
        lab.store.write(lambda c: campaigns.set_status(c, lab.number, "finishing", lab.now))
        lab.look()
        assert lab.status == ("finished", "")
        lab.agrees()


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
@pytest.mark.parametrize("confirmed", ["invited", "gold", "off"])
def test_a_campaign_finishes_by_itself_where_more_than_the_majority_confirms_its_people(
    url: str, policy: Any, confirmed: str
) -> None:
    gold = {"gold": 6, "gold_rate": 0.3, "gold_first": 4} if confirmed == "gold" else {}
    lab = Newcomers(url, policy, n=12, require_trusted_answer=confirmed != "off", **gold)
    with lab.store.opened():
        people = [lab.join() for _ in range(4)] + [lab.invite()] * (confirmed == "invited")
        for _ in range(3):
            lab.work(*people)
            lab.look()
        assert (lab.labelled, lab.status) == (12, ("finished", ""))
        lab.agrees()


@pytest.mark.parametrize("excluded", [False, True], ids=["counted", "excluded"])
def test_answers_about_other_items_confirm_no_label(url: str, excluded: bool) -> None:
    """Invited people gave as many answers as there are labels, but none about the first ones."""
    lab = Newcomers(url, ADAPTIVE, n=12)
    with lab.store.opened():
        strangers = [lab.join(), lab.join()]
        lab.work(*strangers, wrong=True)
        lab.look()
        more = [{"task": f"i{k}", "payload": "{}", "gold": None} for k in range(12, 24)]
        lab.store.write(lambda c: campaigns.add_items(c, lab.number, more))
        lab.look()
        assert lab.status == ("running", "")
        lab.work(lab.invite(), lab.invite())
        if excluded:
            mine = sa.select(workers.c.id).where(workers.c.known == "invited")
            who = [row.id for row in lab.rows(mine)]
            lab.store.write(lambda c: exclude(c, lab.number, who, lab.now))
            lab.look()
            lab.work(*strangers, wrong=True)
        lab.look()
        assert (lab.labelled, lab.status) == (24, ("running", LEFT_TO_OWNER))
        lab.agrees()
        by_hand = {f"i{k}": "ab"[k % 2] for k in range(12)}
        lab.store.write(lambda c: correct(c, lab.number, by_hand, lab.now))
        lab.look()
        assert lab.status[0] == ("running" if excluded else "finished")
        lab.agrees()


def test_labels_are_not_counted_again_while_a_campaign_waits(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server looks every second, however many items there are."""
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", ADAPTIVE, n=12)
    looked: list[object] = []
    for name in ("fetch_ids", "_set_aside_by_people"):
        usual = getattr(finishing, name)

        def seen(connection: Any, what: Any, usual: Any = usual, **values: Any) -> Any:
            looked.append(what)
            return usual(connection, what, **values)

        monkeypatch.setattr(finishing, name, seen)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        for _ in range(3):
            lab.look()
            assert lab.status == ("running", LEFT_TO_OWNER)
            assert looked == [lab.number, finishing.ANY_ON_STRANGERS]


def test_labels_that_the_owner_got_by_finishing_early_need_no_confirmation(url: str) -> None:
    lab = Newcomers(url, ADAPTIVE, n=4)
    with lab.store.opened():
        lab.work(lab.join(), wrong=True)
        lab.store.write(lambda c: campaigns.set_status(c, lab.number, "finishing", lab.now))
        lab.look()
        assert (lab.labelled, lab.status) == (4, ("finished", ""))
        more = [{"task": "i4", "payload": "{}", "gold": None}]
        lab.store.write(lambda c: campaigns.add_items(c, lab.number, more))
        lab.store.write(lambda c: campaigns.set_status(c, lab.number, "running", lab.now))
        lab.work(lab.invite(), lab.invite())
        lab.look()
        assert (lab.labelled, lab.status) == (5, ("finished", ""))
        lab.agrees()


def test_answers_of_an_erased_person_still_confirm_labels(url: str) -> None:
    lab = Newcomers(url, ADAPTIVE, n=12)
    with lab.store.opened():
        lab.work(lab.invite(), lab.invite())
        lab.store.write(lambda c: erase_worker(c, lab.number, 1, lab.now))
        lab.store.write(lambda c: erase_worker(c, lab.number, 2, lab.now))
        lab.look()
        assert (lab.labelled, lab.status) == (12, ("finished", ""))


def test_workers_get_to_the_end_where_the_budget_is_spent_too(url: str) -> None:
    """They were told that the budget is spent, so that they got no code."""
    lab = Newcomers(url, ADAPTIVE, n=12, price=0.01, budget=0.24)
    with lab.store.opened():
        strangers = [lab.join(), lab.join()]
        lab.work(*strangers)
        assert {lab.store.ask(Next(who))["reason"] for who in strangers} == {"budget"}
        lab.look()
        assert lab.status == ("running", LEFT_TO_OWNER)
        assert {lab.store.ask(Next(who))["reason"] for who in strangers} == {"finished"}


def test_nobody_is_paid_for_gold_while_a_campaign_waits(url: str) -> None:
    """Who comes back when everything is labelled is at the end, whatever `gold_first` says."""
    lab = Newcomers(url, ADAPTIVE, n=12, gold_first=3)
    with lab.store.opened():
        late = lab.join()
        lab.work(lab.join(), lab.join())
        lab.look()
        assert lab.status == ("running", LEFT_TO_OWNER)
        more = [{"task": f"i{k}", "payload": "{}", "gold": k % 2} for k in range(20, 28)]
        lab.store.write(lambda c: campaigns.add_items(c, lab.number, more))
        assert lab.store.ask(Next(late))["reason"] == "finished"


def test_the_owner_is_told_once_by_several_processes(url: str) -> None:
    """Each has read the campaign before one of them wrote that it waits."""
    lab = Newcomers(url, ADAPTIVE, n=12)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        lab.trusting.settle()
        before = lab.store.read(partial(get_campaign, campaign_id=lab.number))
        for _ in range(2):
            (rule,) = Runner(lab.store, [Finishing]).rules
            lab.store.write(lambda c, r=rule: r._check_running(c, before))
        assert lab.status == ("running", LEFT_TO_OWNER)
        said = lab.store.read(partial(list_activity, campaign_id=lab.number))
        assert [entry["action"] for entry in said].count("left to owner") == 1


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_labels_are_given_when_their_people_become_known(url: str, policy: Any) -> None:
    """Without gold, two honest strangers are not held up for long, and answer nothing twice."""
    lab = Newcomers(url, policy, n=12)
    with lab.store.opened():
        ann, bob = lab.join(), lab.join()
        assert lab.work(ann, bob) == 24
        assert (lab.labelled, lab.held) == (0, 12)
        lab.agrees()
        lab.look()
        assert (lab.labelled, lab.held) == (12, 0)
        lab.agrees()
        assert len(lab.rows(sa.select(answers.c.id))) == 24


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_somebody_known_is_asked_about_labels_that_wait(url: str, policy: Any) -> None:
    lab = Newcomers(url, policy, n=2)
    with lab.store.opened():
        strangers = lab.join(), lab.join()
        lab.work(*strangers, wrong=True)
        assert (lab.labelled, lab.held) == (0, 2)
        assert {row.known_only for row in lab.rows(sa.select(open_questions))} == {1}
        assert lab.answer(lab.join()) is None
        friends = [lab.invite() for _ in range(6)]
        lab.work(*friends)
        assert (lab.labelled, lab.held) == (2, 0)
        found = lab.rows(
            sa.select(items.c.task, labels.c.label).join(labels, labels.c.item_id == items.c.id)
        )
        assert {int(row.task[1:]) % 2 == row.label for row in found} == {True}
        lab.agrees()


@pytest.mark.parametrize("policy", [ADAPTIVE, PLAN], ids=["adaptive", "plan"])
def test_an_item_that_nobody_known_can_answer_is_stalled(url: str, policy: Any) -> None:
    """It was not, so that a campaign without known people never ended."""
    lab = Newcomers(url, policy, n=2, close_stalled_after_seconds=3600.0)
    with lab.store.opened():
        stalled = Runner(lab.store, [StalledItems])

        def stalled_now() -> int:
            lab.store.write(lambda _: None)  # on SQLite a question is told before its commit
            stalled.tick()
            return len(lab.rows(sa.select(waiting)))

        lab.work(lab.join(), lab.join(), wrong=True)
        lab.join()  # who may not answer
        assert (lab.labelled, lab.held, stalled_now()) == (0, 2, 2)
        lab.answer(lab.invite())
        assert stalled_now() < 2, "somebody known is present, and may answer the other item"
        lab.now += AWAY_SECONDS + 1
        lab.work(lab.join())  # nobody else is present
        assert (lab.held, stalled_now()) == (2, 2)
        lab.now += 3600.0
        assert stalled_now() == 0
        reasons = lab.rows(sa.select(labels.c.reason, labels.c.label.is_not(None)))
        assert reasons == [("no workers", True)] * 2
        lab.look()
        assert lab.status == ("running", LEFT_TO_OWNER), "one item has answers of strangers alone"
        lab.agrees()


def test_a_label_against_which_known_people_speak_does_not_wait_for_all_of_them(url: str) -> None:
    """At the leaf to which strangers have led, more answers to the last question change nothing."""
    problem = ct.Problem(["a", "b", "c"], None, ["q", "r"], [[0, 1, 1], [0, 0, 1]], 0.1)
    lab = Newcomers(url, PlanPolicy(Plan(ct.design(problem), np.array([3, 1])), "curtailed"), n=1)
    with lab.store.opened():
        friends = [lab.invite() for _ in range(6)]
        lab.answer(lab.join(), wrong=True)
        lab.answer(friends[0])
        lab.answer(lab.join(), wrong=True)
        lab.work(*friends[1:])
        lab.look()
        assert (lab.labelled, lab.held) == (1, 0)
        assert len(lab.rows(sa.select(answers.c.id))) == 5, "known people outnumber strangers"
        lab.agrees()


def forgotten(lab: Newcomers) -> bool:
    """Let somebody known get a question and answer it as a stranger; false if there is none."""
    who = lab.invite()
    task = lab.store.ask(Next(who))["task"]
    if task is None:
        return False
    lab.demote(who)
    lab.count += 1
    lab.store.ask(Submit(who, task["lease"], "answer", lab.count % 2, f"k{lab.count}"))
    return True


def wait_in_vain(lab: Newcomers) -> int:
    """Let known people who are forgotten answer as long as they get questions; counts them."""
    taken = 0
    while taken < 40 and forgotten(lab):
        taken += 1
    lab.agrees()
    return taken


REASONS = sa.select(labels.c.reason, labels.c.answers)


@pytest.mark.parametrize(("policy", "most"), [(SHORT, 4), (PLAN, 2)], ids=["adaptive", "plan"])
def test_an_item_does_not_wait_forever_for_people_who_are_known_no_longer(
    url: str, policy: Any, most: int
) -> None:
    """It took one more answer of each of them, without a limit."""
    lab = Newcomers(url, policy, n=1)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        assert 2 + wait_in_vain(lab) == 2 * most + 1
        assert lab.rows(REASONS) == [("unconfirmed", 2 * most + 1)]
        counts = lab.store.read(lambda c: tally(c, lab.number))
        assert (counts["set aside"], counts.get("labelled", 0), lab.held) == (1, 0, 0)
        lab.look()
        (status,) = lab.rows(
            sa.select(status_of.c.status, status_of.c.reason, status_of.c.reason_detail)
        )
        assert status.status == "paused", "strangers must not finish a campaign"
        assert status.reason == CampaignReason.MOSTLY_SET_ASIDE
        assert status.reason_detail == "nobody known supports their labels"
        lab.agrees()


@pytest.mark.parametrize("policy", [SHORT, PLAN], ids=["adaptive", "plan"])
def test_an_item_that_waited_in_vain_is_reopened(url: str, policy: Any) -> None:
    lab = Newcomers(url, policy, n=1, automatically=False)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        first = 2 + wait_in_vain(lab)
        lab.store.write(lambda c: reopen(c, lab.number, lab.now))
        assert (lab.rows(REASONS), lab.held) == ([], 1)
        lab.agrees()
        assert wait_in_vain(lab) == first, "it waits as long as before"
        assert lab.rows(REASONS) == [("unconfirmed", 2 * first)]
        lab.store.write(lambda c: reopen(c, lab.number, lab.now))
        lab.work(*(lab.invite() for _ in range(9)))
        ((reason, _),) = lab.rows(REASONS)
        assert reason != "unconfirmed"
        lab.agrees()


@pytest.mark.parametrize("policy", [SHORT, PLAN], ids=["adaptive", "plan"])
def test_an_item_that_waited_in_vain_is_replayed_without_excluded_answers(
    url: str, policy: Any
) -> None:
    lab = Newcomers(url, policy, n=1, automatically=False)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        wait_in_vain(lab)
        said = lab.rows(sa.select(answers.c.worker_id).order_by(answers.c.id))
        last = [row.worker_id for row in said[-2:]]
        before = lab.rows(REASONS)
        lab.store.write(lambda c: exclude(c, lab.number, last, lab.now))
        lab.agrees()
        lab.look()
        assert (lab.rows(REASONS), lab.held) == ([], 1), "fewer answers are left"
        lab.agrees()
        lab.store.write(lambda c: include(c, lab.number, last, lab.now))
        lab.look()
        assert lab.rows(REASONS) == before
        lab.agrees()
        change = {"labels.require_trusted_answer": False, "checks.pause_suspects": False}
        lab.store.write(lambda c: campaigns.change_settings(c, lab.number, policy, change, lab.now))
        lab.store.write(lambda c: reopen(c, lab.number, lab.now))
        ((reason, _),) = lab.rows(REASONS)
        assert reason in ("target", "budget", "leaf")
        lab.agrees()


def test_a_late_answer_of_a_stranger_holds_no_label_back(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", ADAPTIVE, n=1)
    with lab.store.opened():
        stranger = lab.join()
        task = lab.store.ask(Next(stranger))["task"]
        lab.now += 1000
        assert lab.store.ask(ExpireLeases()) == 1
        friends = [lab.invite() for _ in range(5)]
        lab.work(*friends)
        assert lab.labelled == 1
        for friend in friends:  # whoever was trusted when the label was given
            lab.demote(friend)
        sent = Submit(stranger, task["lease"], "answer", 0, "late")
        assert lab.store.ask(sent)["fate"] == "late"
        assert (lab.labelled, lab.held) == (1, 0)
        lab.agrees()


def test_verify_knows_how_long_an_item_may_wait(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", SHORT, n=1)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        forgotten(lab)
        assert lab.held == 1
        rule: Any = Runner(lab.store, [StalledItems]).rules[0]
        campaign = lab.store.read(partial(get_campaign, campaign_id=lab.number)).state
        found = Findings(lab.number, expired=[1])
        lab.now += AWAY_SECONDS + 1
        lab.store.write(partial(rule.apply, campaign=campaign, finding=found))
        assert len(lab.rows(sa.select(labels.c.item_id))) == 1
        lab.agrees()
        for table in (labels, item_events):
            last = table.c.reason == "no workers"
            lab.store.write(
                lambda c, t=table, w=last: c.execute(
                    t.update().where(w).values(reason="unconfirmed")
                )
            )
        found = lab.store.read(partial(verify, campaign_id=lab.number))["differences"]
        assert found == [
            "item 'i0': is set aside as unconfirmed, but 3 answers are not enough for that"
        ]


def test_without_the_setting_nothing_waits(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", ADAPTIVE, require_trusted_answer=False)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        assert (lab.labelled, lab.held) == (4, 0)
        lab.agrees()


def test_an_owner_who_finishes_gets_the_labels_that_wait(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", PLAN, n=2)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        assert lab.held == 2
        lab.store.write(lambda c: campaigns.set_status(c, lab.number, "finishing", lab.now))
        maintain(lab.store)
        assert (lab.labelled, lab.held) == (2, 0)
        lab.agrees()


def test_turning_the_setting_off_gives_the_labels_that_wait(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", PLAN, n=2)
    with lab.store.opened():
        lab.work(lab.join(), lab.join())
        change = {"labels.require_trusted_answer": False, "checks.pause_suspects": False}
        lab.store.write(lambda c: campaigns.change_settings(c, lab.number, PLAN, change, lab.now))
        assert lab.held == 2
        lab.trusting.settle()
        assert (lab.labelled, lab.held) == (2, 0)
        lab.agrees()


def test_the_owner_clears_a_suspect(tmp_path: Any) -> None:
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", ADAPTIVE, n=30)
    with lab.store.opened():
        friends = [lab.invite() for _ in range(3)]
        stranger = lab.join()
        for _ in range(25):
            for friend in friends:
                lab.answer(friend)
            lab.answer(stranger, wrong=True)
        lab.look()
        mine = sa.select(workers).order_by(workers.c.id.desc()).limit(1)
        (row,) = lab.rows(mine)
        assert row.status == "paused"
        assert row.reason == WorkerReason.SUSPECTED
        assert row.reason_detail.startswith("answers about")
        excluded = sa.select(answers.c.id).where(answers.c.revised_fate == "excluded")
        assert len(lab.rows(excluded)) >= 10
        lab.agrees()
        lab.store.write(
            lambda c: people.set_worker_status(c, lab.number, row.id, "active", lab.now)
        )
        lab.store.write(lambda c: include(c, lab.number, [row.id], lab.now))
        lab.look()
        lab.look()
        (row,) = lab.rows(mine)
        assert (row.status, row.known) == ("active", "owner")
        assert lab.rows(excluded) == []
        lab.agrees()


@pytest.mark.parametrize("right", [True, False])
def test_speed_alone_excludes_nobody(tmp_path: Any, right: bool) -> None:
    """Fast people are held until the owner has looked; wrong ones are excluded as well."""
    lab = Newcomers(f"sqlite:///{tmp_path / 'x.db'}", ADAPTIVE, n=60)
    with lab.store.opened():
        slow, fast = [lab.invite() for _ in range(3)], lab.join()
        for _ in range(20):
            for one in slow:
                lab.answer(one)
            lab.answer(fast, wrong=not right, seconds=0.1)
        lab.look()
        (row,) = lab.rows(sa.select(workers).order_by(workers.c.id.desc()).limit(1))
        assert row.status == "paused"
        assert row.reason == (WorkerReason.HURRIED if right else WorkerReason.SUSPECTED)
        assert [one.worker_id for one in lab.rows(sa.select(exclusions))] == [row.id] * (not right)
        lab.agrees()
        lab.store.write(lambda c: people.set_worker_status(c, lab.number, row.id, "active", 0.0))
        lab.look()
        known = sa.select(workers.c.known, workers.c.status).where(workers.c.id == row.id)
        assert lab.rows(known) == [("owner", "active")]
