"""Labels by hand, withdrawn items and edits: everything else is the replay of the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.stalled_items import StalledItems
from crowdtree.server.rules.trust import HeldLabels, Trust
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Next, NotFound
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits.checking import checked_truths
from crowdtree.server.store.audits.report import audit_summary, coverage
from crowdtree.server.store.corrections import items as withdrawing
from crowdtree.server.store.corrections.editing import edit_item, edit_texts
from crowdtree.server.store.corrections.items import correct
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.campaign_row import get_campaign, touch
from crowdtree.server.store.db.tables import (
    answers,
    campaigns,
    item_events,
    items,
    labels,
    webhooks,
    workers,
)
from crowdtree.server.store.owner import campaigns as owner
from crowdtree.server.store.owner.deleting import discard
from crowdtree.server.store.queries.export import label_rows, payment_rows
from crowdtree.server.store.queries.progress import progress
from crowdtree.server.store.tokens import hashed
from crowdtree.server.store.types import ItemStatus
from tests.server.store.test_excluding import HASTY, Court, slowly
from tests.server.store.test_revising import STRICT, TABLE, policies
from tests.storelab import join_openly
from tests.weblab import delivered

__all__ = ["slowly"]
NAMES = list(TABLE.classes)
SLOW = pytest.mark.slow


class Desk(Court):
    """A campaign whose owner also labels, withdraws and edits."""

    def correct(self, wanted: dict[str, str | None], reason: str = "") -> Any:
        return self.write(lambda c: correct(c, self.number, wanted, self.clock(), reason))

    def withdraw(self, *tasks: str, reason: str = "") -> int:
        rows = self.read(sa.select(items.c.id).where(items.c.task.in_(tasks)))
        ids = [row.id for row in rows]
        now = self.clock()
        return int(self.write(lambda c: withdrawing.withdraw(c, self.number, ids, now, reason)))

    def edit(self, task: str, /, **columns: Any) -> Any:
        [(item,)] = self.read(sa.select(items.c.id).where(items.c.task == task))
        return self.write(lambda c: edit_item(c, self.number, item, columns, self.clock()))

    def status(self, task: str) -> str:
        [(found,)] = self.read(sa.select(items.c.status).where(items.c.task == task))
        return ItemStatus(found).label

    def tasks(self) -> list[str]:
        return [row.task for row in self.read(sa.select(items.c.task).order_by(items.c.id))]

    def rows(self) -> dict[str, Any]:
        """The labels as they are exported, by item."""
        found = self.store.read(lambda c: label_rows(c, self.number, NAMES))
        return {row["task"]: row for row in found}

    def progress(self) -> Any:
        return self.store.read(lambda c: progress(c, self.number, self.clock()))

    def disturb(self) -> str:
        """Let something happen, corrections of items included."""
        if self.rng.random() > 0.15:
            return super().disturb()
        what = self.rng.choice(["correct", "take back", "withdraw", "reopen", "edit", "texts"])
        task = self.rng.choice(self.tasks())
        try:
            if what == "correct":
                self.correct({task: self.rng.choice(NAMES)})
            elif what == "take back":
                held = self.read(sa.select(items.c.task).where(items.c.corrected.is_not(None)))
                self.correct(dict.fromkeys([row.task for row in held], None))
            elif what == "withdraw":
                self.withdraw(task, self.rng.choice(self.tasks()))
            elif what == "reopen":
                gone = sa.select(items.c.task).where(items.c.status == ItemStatus.WITHDRAWN)
                self.reopen(*([row.task for row in self.read(gone)] or [task]))
            elif what == "edit":
                self.edit(task, text=f"text {self.clock()}")
            else:
                texts = {TABLE.questions[0]: f"Is it? {self.clock()}"}
                self.write(lambda c: edit_texts(c, self.number, texts, {}, self.clock()))
        except CrowdtreeError:
            return "refused"
        return what


class Square(Desk):
    """A campaign that strangers join too, that waits for people, and is finished and resumed."""

    def __init__(self, url: str, policy: Any, seed: int = 0, **settings: Any) -> None:
        super().__init__(
            url,
            policy,
            seed,
            require_trusted_answer=True,
            close_stalled_after_seconds=600.0,
            **settings,
        )
        self.trusting = Runner(self.store, [Trust, HeldLabels])
        self.stalled = Runner(self.store, [StalledItems])
        joined = (join_openly(self.store, self.number, self.clock()) for _ in range(4))
        self.workers += [hashed(token) for token in joined]

    def change_known(self, connection: sa.Connection) -> None:
        """Let half of the people be known, whoever was before."""
        known = self.rng.sample(self.ids(), len(self.workers) // 2)
        change = sa.case((workers.c.id.in_(known), "agreement"), else_="")
        connection.execute(workers.update().values(known=change))
        touch(connection, self.number)

    def disturb(self) -> str:
        """Let something happen, of the background and of the owner included."""
        dice = self.rng.random()
        if dice < 0.06:
            self.trusting.settle()
            return "look"
        if dice < 0.12:
            self.clock.now += self.rng.choice([1, 200, 1000, 4000])
            self.stalled.tick()
            return "wait"
        try:
            if dice < 0.14:
                self.write(self.change_known)
                return "known"
            if dice < 0.18:
                status = self.rng.choice(["finishing", "paused", "running", "running"])
                self.write(lambda c: owner.set_status(c, self.number, status, self.clock()))
                return status
            return super().disturb()
        except CrowdtreeError:
            return "refused"


@pytest.mark.usefixtures("slowly", "full_skips")
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))]
)
def test_anything_can_happen_with_strangers_and_while_people_are_away(
    seed: int, tmp_path: Any
) -> None:
    game = Square(f"sqlite:///{tmp_path / 'x.db'}", policies()[seed], seed, n=6, max_skips=1)
    with game.store.opened():
        happened = []
        for turn in range(70):
            happened.append(game.disturb())
            if turn % 10 == 0:
                assert game.differences() == [], (turn, happened[-10:])
        assert {"look", "wait"} <= set(happened)
        game.settle()


@pytest.mark.parametrize(("before", "after"), [(0, 4), (4, 0)])
def test_an_open_item_that_nobody_was_asked_about_is_reopened_under_another_policy(
    before: int, after: int, url: str
) -> None:
    """It kept the state of the earlier policy, and every answer to it failed."""
    desk = Desk(url, policies()[before], n=1, gold_rate=0.0)
    with desk.store.opened():
        desk.correct({"i2": NAMES[0]})
        desk.correct({"i2": None})
        assert desk.withdraw("i2") == 1
        desk.revise(policies()[after])
        desk.settle()
        assert (desk.reopen("i2"), desk.differences()) == (1, [])
        assert desk.all_answer(1) > 0
        assert desk.differences() == []


@pytest.mark.usefixtures("slowly", "full_skips")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=SLOW)])
def test_anything_can_happen_between_corrections_of_items(seed: int, url: str) -> None:
    game = Desk(url, policies()[(2 * seed + 1) % len(policies())], seed, n=10, max_skips=1)
    with game.store.opened():
        happened = []
        for turn in range(80):
            happened.append(game.disturb())
            if turn % 10 == 0:
                assert game.differences() == [], (turn, happened[-10:])
        assert {"correct", "withdraw"} <= set(happened)
        game.settle()
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.settle()
        gone = sa.select(items.c.task).where(items.c.status == ItemStatus.WITHDRAWN)
        for row in game.read(gone):
            assert game.reopen(row.task) == 1
        game.settle()


@pytest.fixture
def desk(tmp_path: Any) -> Any:
    """A campaign of six items, all labelled, and a gold item."""
    game = Desk(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=6)
    with game.store.opened():
        while game.all_answer(1):
            pass
        game.settle()
        assert len(game.labels()) == 6
        yield game


def other(row: Any) -> str:
    """A class that is not the label of an item."""
    return next(name for name in NAMES if name != row["label"])


def test_a_label_by_hand_is_beside_the_one_of_the_answers(desk: Desk) -> None:
    before, stated = desk.rows()["i2"], desk.progress()
    mine = other(before)
    assert desk.correct({"i2": mine}, "seen it") == {
        "campaign": desk.number,
        "corrected": 1,
        "undone": 0,
        "opened": 0,
    }
    desk.settle()
    row = desk.rows()["i2"]
    assert (row["label"], row["posterior_error"], row["corrected"]) == (mine, 0.0, True)
    assert (row["computed"], row["computed_error"]) == (before["label"], before["posterior_error"])
    assert (row["corrected_by"], row["corrected_why"]) == ("owner", "seen it")
    assert row["corrected_at"] == desk.clock()
    # the estimates are about the labels that are exported: this one counts as right
    now = desk.progress()
    assert now["corrected"] == 1
    assert now["labels"][mine] == stated["labels"][mine] + 1
    expected = stated["estimated_error"] - before["posterior_error"] / 6
    assert now["estimated_error"] == pytest.approx(expected, abs=1e-8)
    assert not desk.correct({"i2": mine})["corrected"]  # it is so already
    assert desk.correct({"i2": None})["undone"] == 1
    assert desk.rows()["i2"] == before
    assert desk.progress() == stated
    made = desk.read(sa.select(item_events.c.value, item_events.c.reason))
    assert made == [(NAMES.index(mine), "seen it"), (None, "")]
    desk.settle()


def test_nobody_is_asked_about_an_item_that_is_known(tmp_path: Any) -> None:
    game = Desk(f"sqlite:///{tmp_path / 'x.db'}", STRICT, n=2)
    with game.store.opened():
        game.answer(game.workers[0], 1)
        held = game.store.ask(Next(game.workers[1]))["task"]
        game.correct({"i2": NAMES[0], "i3": NAMES[1]})
        assert {game.status("i2"), game.status("i3")} == {"labelled"}
        assert {row["reason"] for row in game.rows().values()} == {"corrected"}
        assert not game.answer(game.workers[2], 1)
        game.submit(game.workers[1], held["lease"], 1)  # paid, but it comes too late
        last = sa.select(answers.c.fate, answers.c.price).order_by(answers.c.id.desc()).limit(1)
        assert game.read(last) == [("late", 10_000)]
        game.settle()
        # neither another policy nor fewer answers open it again
        game.revise(policies()[4])
        game.settle()
        game.exclude(game.ids()[0])
        game.settle()
        assert {row["label"] for row in game.rows().values()} == {NAMES[0], NAMES[1]}
        # without its label by hand it is asked about again
        assert game.correct({"i2": None, "i3": None})["opened"] > 0
        assert {game.status("i2"), game.status("i3")} == {"open"}
        assert game.rows() == {}
        game.settle()
        while game.all_answer(1):
            pass
        game.settle()
        assert {game.status("i2"), game.status("i3")} == {"labelled"}


def test_webhooks_tell_of_labels_by_hand(desk: Desk) -> None:
    hook = {"campaign_id": desk.number, "url": "https://example.org", "secret": "s"}
    last = desk.read(sa.select(sa.func.max(labels.c.id)))[0][0]
    desk.write(lambda c: c.execute(webhooks.insert().values(**hook, sent_label_id=last)).rowcount)
    mine = other(desk.rows()["i3"])
    desk.correct({"i3": mine}, "why")
    desk.withdraw("i4")
    bodies = delivered(desk.store, desk.clock)
    detail = next(body["data"] for body in bodies if body["type"] == "label.corrected")
    assert (detail["task"], detail["label"], detail["reason"]) == ("i3", mine, "why")
    assert detail["computed"] == desk.rows()["i3"]["computed"]
    sent = [row for body in bodies for row in body["data"].get("labels", ())]
    assert [(row["task"], row["label"], row["status"]) for row in sent] == [
        ("i4", None, "withdrawn")
    ]


def test_a_withdrawn_item_spends_nothing_and_has_no_label(desk: Desk) -> None:
    before, records = desk.progress(), sa.select(workers.c.id, workers.c.judged)
    judged = desk.read(records.order_by(workers.c.id))
    label = desk.rows()["i2"]
    assert desk.withdraw("i2", "i3", reason="blurred") == 2
    assert desk.withdraw("i2") == 0
    desk.settle()
    row = desk.rows()["i2"]
    assert (row["label"], row["status"], row["posterior_error"]) == (None, "withdrawn", None)
    assert row["answers"] == label["answers"]
    now = desk.progress()
    assert (now["items"]["withdrawn"], now["items"]["total"]) == (2, 4)
    assert now["spent"] == before["spent"]
    assert desk.read(records.order_by(workers.c.id)) != judged  # its label is no evidence any more
    entry = desk.store.read(lambda c: list_activity(c, desk.number))[0]
    assert (entry["action"], entry["detail"]["tasks"]) == ("withdraw", ["i2", "i3"])
    assert entry["detail"]["reason"] == "blurred"
    assert not desk.all_answer(1)
    assert desk.reopen("i2", "i3") == 2
    desk.settle()
    back = desk.rows()["i2"]
    assert (back["label"], back["posterior_error"]) == (label["label"], label["posterior_error"])
    assert desk.read(records.order_by(workers.c.id)) == judged
    assert desk.progress()["estimated_error"] == pytest.approx(before["estimated_error"])


def test_a_question_held_when_its_item_is_withdrawn_is_paid_and_does_not_count(url: str) -> None:
    game = Desk(url, HASTY, n=1, price=0.05)
    with game.store.opened():
        held = game.store.ask(Next(game.workers[0]))["task"]["lease"]
        game.withdraw("i2")
        assert game.differences() == []
        game.submit(game.workers[0], held, 1)
        assert game.read(sa.select(answers.c.fate)) == [("late",)]
        row = game.rows()["i2"]
        assert (row["label"], row["status"], row["answers"]) == (None, "withdrawn", 0)
        campaign = game.store.read(lambda c: get_campaign(c, game.number))
        paid = game.store.read(lambda c: payment_rows(c, campaign))
        assert [(row["accepted"], row["micros"]) for row in paid] == [(1, 50_000)] + [(0, 0)] * 8
        assert game.progress()["spent"] == pytest.approx(0.05)
        assert game.differences() == []
        game.reopen("i2")
        while game.all_answer(1):
            pass
        game.settle()
        assert game.status("i2") == "labelled"


def test_gold_items_can_be_withdrawn(desk: Desk) -> None:
    assert desk.withdraw("i0") == 1
    assert desk.status("i0") == "withdrawn"
    desk.settle()
    assert desk.rows()["i0"]["status"] == "withdrawn"
    with pytest.raises(CrowdtreeError, match="'i1' is a gold item"):
        desk.correct({"i1": NAMES[0]})
    assert desk.reopen("i0") == 1
    assert desk.status("i0") == "gold"
    desk.settle()


def test_new_items_are_new_again(tmp_path: Any) -> None:
    game = Desk(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=3)
    with game.store.opened():
        game.withdraw("i2", "i3")
        game.reopen("i2")
        assert (game.status("i2"), game.status("i3")) == ("new", "withdrawn")
        game.withdraw("i4")
        with pytest.raises(CrowdtreeError, match="is withdrawn: reopen it first"):
            game.correct({"i4": NAMES[0]})
        game.settle()
        while game.all_answer(1):
            pass
        game.settle()
        assert {game.status(f"i{k}") for k in (2, 3, 4)} == {"labelled", "withdrawn"}


def test_a_finished_campaign_is_paused_where_items_are_open_again(desk: Desk) -> None:
    status = sa.select(campaigns.c.status, campaigns.c.reason, campaigns.c.reason_detail)
    desk.withdraw("i2")
    more = [{"task": "more", "payload": "{}", "gold": None}]
    desk.write(lambda c: owner.add_items(c, desk.number, more))
    desk.correct({"more": NAMES[0]})
    desk.write(lambda c: owner.set_status(c, desk.number, "finishing", desk.clock()))
    desk.settle()
    assert desk.read(status)[0][0] == "finished"
    desk.reopen("i2")  # its answers give a label at once
    assert desk.read(status)[0][0] == "finished"
    desk.correct({"more": None})
    assert desk.read(status) == [("paused", CampaignReason.LABELS_UNDONE, "1 label")]
    desk.settle()


def test_columns_change_with_a_record(desk: Desk) -> None:
    made = desk.edit("i2", text="new", image="a.png", Note="x")
    assert made["before"] == {"text": None, "image": None, "Note": None}
    assert desk.edit("i2", text="newer", Note="")["after"] == {"text": "newer", "Note": None}
    assert desk.edit("i2", text="newer")["after"] == {}
    payload = sa.select(items.c.payload).where(items.c.task == "i2")
    assert json.loads(desk.read(payload)[0][0]) == {"text": "newer", "image": "a.png"}
    entries = desk.store.read(lambda c: list_activity(c, desk.number))
    detail = entries[0]["detail"]
    assert (entries[0]["action"], detail["task"]) == ("edit item", "i2")
    assert (detail["before"]["text"], detail["after"]["text"]) == ("new", "newer")
    desk.settle()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"task": "i9"}, "the name of an item cannot change"),
        ({"image": "../etc"}, "item 'i2': image must be an https"),
        ({"gold": "c1"}, "people were asked about it, so its class stays"),
        ({"gold": "dragon"}, "gold 'dragon' is not a class"),
        ({f"column {k}": "x" for k in range(201)}, "expected at most 200 columns"),
    ],
)
def test_what_cannot_be_edited_is_refused(desk: Desk, columns: dict[str, Any], words: str) -> None:
    if columns.get("gold") == "c1":
        columns = {"gold": NAMES[0]}
    with pytest.raises(CrowdtreeError, match=words):
        desk.edit("i2", **columns)
    with pytest.raises(NotFound, match="is not in campaign"):
        desk.write(lambda c: edit_item(c, desk.number, 999, {"text": "x"}, 0.0))


def test_gold_changes_until_somebody_was_asked(tmp_path: Any) -> None:
    game = Desk(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=2, gold_first=1)
    with game.store.opened():
        game.edit("i0", gold=NAMES[1])
        game.edit("i2", gold=NAMES[2])
        game.edit("i1", gold="")
        assert [game.status(f"i{k}") for k in range(4)] == ["gold", "new", "gold", "new"]
        assert game.differences() == []
        assert game.answer(game.workers[0], 1)
        [(asked,)] = game.read(
            sa.select(items.c.task).join(answers, answers.c.item_id == items.c.id)
        )
        assert asked in ("i0", "i2")
        with pytest.raises(CrowdtreeError, match="its class stays"):
            game.edit(asked, gold="")
        assert game.differences() == []


def test_questions_are_reworded_in_every_revision(desk: Desk) -> None:
    desk.revise(policies()[4])
    question, cls = TABLE.questions[0], NAMES[0]

    def reword(questions: Any, classes: Any) -> Any:
        return desk.write(
            lambda c: edit_texts(c, desk.number, questions, classes, desk.clock(), "clearer")
        )

    made = reword({question: "Is it so?"}, {cls: "A bird"})
    assert made["after"] == {"questions": {question: "Is it so?"}, "classes": {cls: "A bird"}}
    assert reword({question: "Is it so? "}, {})["after"] == {}
    campaign = desk.store.read(lambda c: get_campaign(c, desk.number))
    assert campaign.make_policy().problem.text(0) == "Is it so?"
    desk.settle()
    desk.exclude(desk.ids()[0])  # goes back to the table of the owner, with the new wording
    campaign = desk.store.read(lambda c: get_campaign(c, desk.number))
    assert campaign.make_policy().problem.text(0) == "Is it so?"
    desk.settle()
    with pytest.raises(CrowdtreeError, match="only their texts can change"):
        reword({"another": "x"}, {})
    with pytest.raises(CrowdtreeError, match="classes: 'dragon' is not in campaign"):
        reword({}, {"dragon": "x"})
    with pytest.raises(CrowdtreeError, match="at most 2000 characters"):
        reword({question: "x" * 2001}, {})


def test_mistakes_are_refused(desk: Desk) -> None:
    with pytest.raises(CrowdtreeError, match="'dragon' is not a class; expected one of"):
        desk.correct({"i2": "dragon"})
    for task in ("nowhere", "no\x00where"):
        with pytest.raises(CrowdtreeError, match="has no item"):
            desk.correct({task: NAMES[0]})
    with pytest.raises(CrowdtreeError, match="reason: expected at most 2000 characters"):
        desk.correct({"i2": NAMES[0]}, "x" * 2001)
    with pytest.raises(CrowdtreeError, match="reason: expected at most 2000 characters"):
        desk.withdraw("i2", reason="x" * 2001)
    assert desk.read(sa.select(item_events.c.id)) == []


def test_a_draft_with_withdrawn_items_can_be_discarded(tmp_path: Any) -> None:
    game = Desk(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=1)
    with game.store.opened():
        made = Settings()
        number = game.write(lambda c: owner.create(c, "draft", HASTY, made, 0.0))
        rows = [{"task": "a", "payload": "{}", "gold": None}]
        game.write(lambda c: owner.add_items(c, number, rows))
        [(item,)] = game.read(sa.select(items.c.id).where(items.c.campaign_id == number))
        game.write(lambda c: withdrawing.withdraw(c, number, [item], 0.0))
        with pytest.raises(CrowdtreeError, match="is a draft"):
            game.write(lambda c: correct(c, number, {"a": NAMES[0]}, 0.0))
        game.write(lambda c: discard(c, number, 0.0))
        assert game.read(sa.select(items.c.id).where(items.c.campaign_id == number)) == []


def test_verify_finds_corrections_without_a_record(desk: Desk) -> None:
    desk.correct({"i2": NAMES[0]})
    desk.write(lambda c: c.execute(item_events.delete()).rowcount)
    assert any("corrected is 0, replayed None" in text for text in desk.differences())


def test_verify_finds_labels_of_withdrawn_items(desk: Desk) -> None:
    desk.withdraw("i2")
    mine = labels.update().where(labels.c.reason == "withdrawn")
    desk.write(lambda c: c.execute(mine.values(label=1)).rowcount)
    assert any("is withdrawn, but has the label" in text for text in desk.differences())


# ------------------------------------------------------------------------------ audits


def audited(desk: Desk) -> tuple[Any, Any]:
    """What the audit says, and what the export certifies."""
    found = desk.store.read(lambda c: audit_summary(c, desk.number))
    return found, desk.store.read(lambda c: coverage(c, desk.number))


def start(desk: Desk) -> Any:
    return desk.write(lambda c: checking.start(c, desk.number, 0.5, desk.clock(), seed=1))


def test_a_label_by_hand_is_known_to_the_next_audit(desk: Desk) -> None:
    rows = desk.rows()
    first = start(desk)
    assert (first.claims["known"], first.claims["wrong"]) == (0, 0)
    desk.correct({"i2": other(rows["i2"])})
    found, certified = audited(desk)
    # the labels are not those that were audited any more: nothing is certified until it starts anew
    assert (found["changed"], found["corrected"], certified) == (1, 1, None)
    assert desk.differences() == []
    again = start(desk)
    assert (again.claims["known"], again.claims["wrong"], again.claims["items"]) == (1, 0, 6)
    assert audited(desk)[0]["changed"] == 0
    assert desk.differences() == []
    desk.correct({"i2": None})  # and neither when it is taken back
    assert audited(desk)[0]["changed"] == 1
    assert desk.differences() == []


def test_a_label_by_hand_that_a_check_has_found_changes_nothing(desk: Desk) -> None:
    start(desk)
    cache, now = desk.store.audits, desk.clock()
    given = desk.write(lambda c: checking.hand_out(c, cache, desk.number, "ann", now))
    task, truth = given["item"]["task"], other(desk.rows()[given["item"]["task"]])
    result = (cache, desk.number, "ann", "Ann", given["number"], truth, now)
    desk.write(lambda c: checking.record(c, *result))
    desk.correct({task: truth})
    found, certified = audited(desk)
    assert (found["changed"], found["corrected"]) == (0, 1)
    assert certified is not None
    # what an owner chose to correct is no sample: it does not calibrate the stated errors
    assert desk.store.read(lambda c: len(checked_truths(c, desk.number))) == 1
    desk.correct({task: desk.rows()[task]["computed"]})  # against what the check has found
    assert audited(desk)[0]["changed"] == 0  # it is the label that was audited, and counted wrong
    assert desk.differences() == []


def test_withdrawn_labels_put_an_audit_out_of_date(desk: Desk) -> None:
    start(desk)
    desk.withdraw("i2")
    assert audited(desk)[0]["changed"] == 1
    assert desk.differences() == []
    assert start(desk).claims["items"] == 5
    assert audited(desk)[0]["changed"] == 0
