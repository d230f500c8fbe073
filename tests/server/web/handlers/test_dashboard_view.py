"""What the dashboard shows."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from crowdtree.planning import expected_performance
from crowdtree.policies import PlanPolicy
from crowdtree.policies.spec import revised_policy
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import waiting
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.web.handlers.dashboard import Dashboard, build_dashboard
from crowdtree.show.plots.live_tree import flow_numbers, flow_svg
from tests.storelab import Small, join_openly


class LiveCampaign(Small):
    """A campaign whose dashboard is looked at."""

    def board(self) -> Dashboard:
        row = self.store.read(lambda c: get_campaign(c, self.number))
        return self.store.read(
            lambda c: build_dashboard(
                c, row, self.policy, expected_performance(self.policy), self.clock.now
            )
        )

    def notes(self) -> str:
        return " | ".join(note.text for note in self.board().notes)


@pytest.fixture
def live():
    made = []

    def make(**options) -> LiveCampaign:
        made.append(LiveCampaign(**options))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


def test_the_dashboard_shows_what_needs_attention(live):
    one = live(price=1.0, budget=3.0, currency="EUR")
    one.start()
    assert one.board().values["headline"] == "Running, and waiting for the first answer."
    assert "Nobody has joined yet." in one.notes()
    assert "The budget of 3.00 EUR will not be enough" in one.notes()
    who = one.worker()
    assert "Nobody has joined" not in one.notes()
    one.answer(who, 1)
    assert one.board().values["headline"].startswith("Going well")
    one.clock.now += 3600
    board = one.board()
    assert board.mood == "worry"
    assert "No answer for 1 h" in board.values["headline"]
    assert "The last answer came 1 h ago." in one.notes()


def test_the_owner_is_told_that_strangers_decide(live):
    one = live(require_trusted_answer=True, gold_rate=0.0, gold_first=0)
    one.start()
    words = "labels follow the majority of those who joined"
    assert words not in one.notes()
    join_openly(one.store, one.number, one.clock.now)
    assert words in one.notes()
    one.worker()  # invited
    assert words not in one.notes()


def test_the_numbers_of_the_tree_add_up(live):
    one = live(rows=3)
    one.start()
    who = one.worker()
    one.answer(who, 1)  # c4 after the first question
    one.answer(who, 0)  # on to the second
    flow = one.board().flow
    assert flow["text"]["0"] == "0 here · 2 passed"
    leaves = [text for key, text in flow["text"].items() if int(key) < 0]
    assert sorted(leaves)[-1] == "1 item"
    assert one.board().values["labelled"] == "1"
    keys = set(re.findall(r'data-flow="(-?\d+)"', flow_svg(one.policy.plan)))
    assert keys == set(flow_numbers(one.policy.plan, {})["text"])


def test_the_dashboard_says_that_the_table_was_revised(live):
    one = live()
    one.start()
    assert "revised" not in one.notes()
    errors = 2 * one.policy.problem.worker_error
    policy = revised_policy(one.policy, one.policy.problem.replace(worker_error=errors))
    reason = {"text": "people err more"}
    one.store.write(lambda c: revise(c, one.number, policy, reason, one.clock.now))
    one.clock.now += 120
    assert "The campaign was revised 1 time, last 2 min ago: people err more." in one.notes()
    assert "The items are being replayed." in one.notes()


def test_labels_are_shown_with_their_estimated_precision(live):
    one = live(rows=3)
    one.start()
    assert {row["right"] for row in one.board().labels} == {None}
    one.answer(one.worker(), 1)  # c4 after the first question
    board = one.board()
    given = [row for row in board.labels if row["count"]]
    assert given
    wrong = sum(row["count"] * (1 - row["right"]) for row in given)
    items = sum(row["count"] for row in given)
    assert wrong / items == pytest.approx(board.progress["estimated_error"], abs=1e-8)


@pytest.mark.parametrize(
    ("seconds", "mood", "words"),
    [(360.0, "still", "within 6 min"), (604_800.0, "worry", "Waiting for more people")],
)
def test_items_that_close_within_minutes_worry_nobody(live, seconds, mood, words):
    one = live(rows=2, people_per_item=2, close_stalled_after_seconds=seconds)
    one.start()
    who, other = one.worker(), one.worker()
    for _ in range(2):
        one.answer(who, 1)
    stalled = [{"item_id": k, "campaign_id": one.number, "since": 0.0} for k in (1, 2)]
    one.store.write(lambda c: c.execute(waiting.insert(), stalled))
    board = one.board()
    assert (board.mood, words in board.values["headline"]) == (mood, True)
    assert other


def test_the_owner_is_told_that_a_plan_takes_more_people_than_there_are(live):
    one = live(rows=1)
    one.start()
    one.worker()
    stalled = {"item_id": 1, "campaign_id": one.number, "since": 0.0}
    one.store.write(lambda c: c.execute(waiting.insert(), stalled))
    words = "A question of the plan takes up to"
    assert words not in one.notes(), "one vote per question"
    one.policy = PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=20), "curtailed")
    assert words in one.notes()
