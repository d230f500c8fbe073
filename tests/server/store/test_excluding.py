"""Excluded answers and reopened items: everything else is the replay of what is left."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.campaign.events import Answered
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import Revision
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy
from crowdtree.server.reasons import CampaignReason, WorkerReason
from crowdtree.server.rules import revised_items
from crowdtree.server.store import Next, NotFound, Refused
from crowdtree.server.store.corrections import exclusions as previews
from crowdtree.server.store.corrections.exclusions import exclude, include
from crowdtree.server.store.corrections.items import items_of_tasks, reopen
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.tables import (
    answers,
    campaigns,
    exclusions,
    items,
    labels,
    monitors,
    revisions,
    webhooks,
    withdrawals,
    workers,
)
from crowdtree.server.store.owner import campaigns as owner
from crowdtree.server.store.owner.people import invite
from crowdtree.server.store.queries.export import answer_rows
from tests.server.store.test_revising import STRICT, TABLE, Game, policies
from tests.storelab import games
from tests.weblab import delivered

HASTY = AdaptivePolicy(TABLE, target_error=0.3, max_answers=5, strict=False)
EXCLUDED = sa.select(sa.func.count()).where(answers.c.revised_fate == "excluded")


class Court(Game):
    """A campaign whose owner excludes, includes and reopens."""

    def ids(self) -> list[int]:
        return [row.id for row in self.read(sa.select(workers.c.id).order_by(workers.c.id))]

    def exclude(self, *people: int, **options: Any) -> Any:
        now = self.clock()
        return self.write(lambda c: exclude(c, self.number, people, now, **options))

    def include(self, *people: int) -> Any:
        return self.write(lambda c: include(c, self.number, people, self.clock()))

    def reopen(self, *tasks: str) -> int:
        def apply(connection: Any) -> int:
            ids = items_of_tasks(connection, self.number, tasks) if tasks else None
            return reopen(connection, self.number, self.clock(), ids)

        return int(self.write(apply))

    def labels(self) -> dict[int, Any]:
        columns = (labels.c.label, labels.c.posterior_error, labels.c.reason, labels.c.answers)
        rows = self.read(sa.select(labels.c.item_id, *columns, labels.c.path))
        return {row[0]: tuple(row[1:]) for row in rows}

    def settle(self) -> None:
        """Finish what runs in the background, and find no difference to the replay."""
        self.finish_revision()
        while self.watching.tick():
            self.finish_revision()
        assert self.differences() == []

    def disturb(self) -> str:
        """Let something happen, corrections included."""
        if self.rng.random() > 0.16:
            return self.step()
        what = self.rng.choice(["exclude", "exclude since", "include", "reopen"])
        who = self.rng.choice(self.ids())
        held = self.read(sa.select(exclusions.c.worker_id).distinct().order_by("worker_id"))
        try:
            if what == "include":
                self.include(self.rng.choice([row.worker_id for row in held] or [who]))
            elif what == "reopen":
                self.reopen()
            else:
                since = None if what == "exclude" else self.clock() - self.rng.random() * 200
                self.exclude(who, since=since)
        except CrowdtreeError:
            return "refused"
        return what


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Revise two items per transaction, so that everything happens in between."""
    monkeypatch.setattr(revised_items, "AT_ONCE", 2)


@pytest.mark.usefixtures("slowly", "full_skips")
@games(3)
def test_anything_can_happen_between_corrections(seed: int, url: str) -> None:
    game = Court(url, policies()[2 * seed % len(policies())], seed, n=8, max_skips=1)
    with game.store.opened():
        happened = []
        for turn in range(90):
            happened.append(game.disturb())
            if turn % 10 == 0:
                assert game.differences() == [], (turn, happened[-10:])
        assert {"exclude", "include", "round"} <= set(happened)
        game.settle()
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.settle()
        for who in game.ids()[:3]:
            try:
                game.exclude(who)
            except CrowdtreeError:
                continue
        game.round()
        assert game.differences() == []
        game.settle()
        game.reopen()
        game.settle()


@pytest.fixture
def court(tmp_path: Any) -> Any:
    """A campaign whose items are all labelled; the first two workers answered wrongly."""
    game = Court(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=6)
    with game.store.opened():
        for turn in range(60):
            who = (0, 1, 2 + turn % 7)[turn % 3]
            game.answer(game.workers[who], 0 if who < 2 else 1)
        game.settle()
        assert len(game.labels()) == 6
        yield game


def test_labels_are_those_without_the_excluded_answers(court: Court) -> None:
    """Replaying the log without a worker by hand gives the same labels."""
    bad = court.ids()[:2]
    paid = court.read(sa.select(sa.func.sum(answers.c.price)))
    earned = court.read(sa.select(workers.c.earned).order_by(workers.c.id))
    assert court.exclude(*bad)["revision"] == 1
    court.settle()
    found = court.labels()
    rows = court.read(
        sa.select(answers, items.c.task)
        .join(items, items.c.id == answers.c.item_id)
        .where(items.c.gold.is_(None))
        .order_by(answers.c.id)
    )
    revisions = [Revision(HASTY)]
    views = {row.item_id: begin(revisions[0]) for row in rows}
    for row in rows:
        if row.worker_id not in bad:
            event = Answered(row.worker_id, row.question, row.value)
            views[row.item_id] = extend(revisions, views[row.item_id], event)
    expected = {item: view.label for item, view in views.items() if view.label is not None}
    assert {item: (row[0], row[2]) for item, row in found.items()} == {
        item: (label.label, label.reason) for item, label in expected.items()
    }
    assert 0 < len(found) < 6
    assert len(court.read(sa.select(withdrawals.c.id))) >= 6 - len(found)
    assert court.read(sa.select(sa.func.sum(answers.c.price))) == paid
    assert court.read(sa.select(workers.c.earned).order_by(workers.c.id)) == earned


def test_including_again_restores_every_label(court: Court) -> None:
    before, bad = court.labels(), court.ids()[:2]
    court.exclude(*bad)
    court.settle()
    assert court.labels() != before
    assert court.include(*bad)["revision"] == 2
    court.settle()
    assert court.labels() == before
    assert court.read(EXCLUDED) == [(0,)]
    assert court.include(*bad) == {
        "campaign": court.number,
        "revision": 2,
        "workers": bad,
        "changed": False,
    }


def test_repeating_an_exclusion_changes_nothing(court: Court) -> None:
    bad = court.ids()[0]
    assert court.exclude(bad)["changed"]
    assert not court.exclude(bad)["changed"]
    assert court.read(sa.select(sa.func.count()).select_from(exclusions)) == [(1,)]
    court.settle()


def test_only_answers_from_a_time_on(court: Court) -> None:
    bad = court.ids()[0]
    mine = sa.select(answers.c.id).where(answers.c.worker_id == bad, answers.c.fate != "gold")
    lines = [row.id for row in court.read(mine.order_by(answers.c.id))]
    half = lines[len(lines) // 2]
    court.write(
        lambda c: c.execute(answers.update().where(answers.c.id >= half).values(at=5e9)).rowcount
    )
    court.exclude(bad, since=4e9)
    court.settle()
    fates = court.read(
        sa.select(answers.c.id).where(answers.c.revised_fate == "excluded").order_by(answers.c.id)
    )
    assert [row.id for row in fates] == [line for line in lines if line >= half]


def test_later_answers_count_unless_the_worker_is_blocked(court: Court) -> None:
    first, second = court.ids()[:2]
    court.exclude(first)
    court.exclude(second, block=True)
    court.settle()
    more = [{"task": "more", "payload": "{}", "gold": None}]
    court.write(lambda c: owner.add_items(c, court.number, more))
    assert court.answer(court.workers[0], 1)
    with pytest.raises(Refused, match="not valid any more"):
        court.store.ask(Next(court.workers[1]))
    last = sa.select(answers.c.worker_id, answers.c.revised_fate).order_by(answers.c.id.desc())
    assert court.read(last.limit(1)) == [(first, None)]
    court.settle()


def test_idle_accomplices_are_blocked_with_those_who_answered(court: Court) -> None:
    """Somebody who has answered nothing does not keep an owner from excluding the others."""
    made = (court.number, "", STRICT, False, court.clock())
    idle = int(court.write(lambda c: invite(c, *made)[0]))
    first = court.ids()[0]
    assert court.exclude(first, idle, block=True)["changed"]
    assert court.read(sa.select(exclusions.c.worker_id)) == [(first,)]
    blocked = sa.select(workers.c.id).where(workers.c.status == "blocked").order_by(workers.c.id)
    assert court.read(blocked) == [(first,), (idle,)]
    with pytest.raises(CrowdtreeError, match="has given no answers"):
        court.exclude(idle)
    court.settle()


def test_an_unreliable_worker_stays_paused_without_the_answers(court: Court) -> None:
    """Excluded answers are no evidence any more, but the pause that followed from them stays."""
    status = sa.select(workers.c.status).order_by(workers.c.id).limit(1)
    mine = workers.update().where(workers.c.id == court.ids()[0])
    reason = WorkerReason.UNRELIABLE
    court.write(lambda c: c.execute(mine.values(status="paused", reason=reason)).rowcount)
    court.exclude(court.ids()[0])
    court.settle()
    assert court.read(status) == [("paused",)]
    court.include(court.ids()[0])
    court.settle()
    assert court.read(status) == [("active",)]  # no rule pauses anybody in this campaign


def test_a_finished_campaign_is_paused_where_labels_no_longer_stand(court: Court) -> None:
    status = sa.select(campaigns.c.status, campaigns.c.reason, campaigns.c.finished_at)
    court.write(lambda c: owner.set_status(c, court.number, "finishing", court.clock()))
    court.settle()
    assert court.read(status)[0][0] == "finished"
    court.exclude(*court.ids()[:2])
    assert court.read(status)[0][0] == "finished"
    court.settle()
    assert court.read(status) == [("paused", CampaignReason.LABELS_WITHDRAWN, None)]
    court.write(lambda c: owner.set_status(c, court.number, "running", court.clock()))
    while court.all_answer(1):
        pass
    court.settle()
    assert len(court.labels()) == 6


def test_a_finished_campaign_stays_finished_where_all_labels_stand(court: Court) -> None:
    court.write(lambda c: owner.set_status(c, court.number, "finishing", court.clock()))
    court.settle()
    court.exclude(court.ids()[0])
    court.include(court.ids()[0])
    court.settle()
    assert court.read(sa.select(campaigns.c.status)) == [("finished",)]


def test_early_labels_are_concluded_again(tmp_path: Any) -> None:
    """Labels that the owner's finish gave rest on the answers that are left."""
    game = Court(f"sqlite:///{tmp_path / 'x.db'}", STRICT, n=4)
    with game.store.opened():
        for turn in range(12):
            game.answer(game.workers[turn % 3], 0 if turn % 3 == 0 else 1)
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.settle()
        before = game.labels()
        early = [item for item, row in before.items() if row[2] == "finished"]
        game.exclude(game.ids()[0])
        game.settle()
        after = game.labels()
        assert early
        assert all(after[item][2] in ("finished", "target") for item in early)
        assert sum(row[3] for row in after.values()) < sum(row[3] for row in before.values())
        game.include(game.ids()[0])
        game.settle()
        assert {item: game.labels()[item] for item in early} == {k: before[k] for k in early}


@pytest.mark.usefixtures("full_skips")
def test_skips_of_excluded_workers_no_longer_set_items_aside(tmp_path: Any) -> None:
    game = Court(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=4)
    aside = sa.select(sa.func.count()).where(items.c.status == 3)
    with game.store.opened():
        for turn in range(60):
            game.answer(game.workers[turn % 2], None)
        assert game.read(aside) == [(4,)]
        game.exclude(*game.ids()[:2])
        game.settle()
        assert game.read(aside) == [(0,)]
        while sum(game.answer(who, 1) for who in game.workers[2:]):
            pass
        game.settle()
        assert {row[2] for row in game.labels().values()} <= {"target", "budget", "questions"}


@pytest.mark.usefixtures("full_skips")
def test_reopened_items_are_asked_of_others(tmp_path: Any) -> None:
    game = Court(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=4)
    aside = sa.select(items.c.task).where(items.c.status == 3).order_by(items.c.id)
    with game.store.opened():
        for turn in range(60):
            game.answer(game.workers[turn % 2], None)
        tasks = [row.task for row in game.read(aside)]
        assert len(tasks) == 4
        assert game.reopen(tasks[0], tasks[0]) == 1
        game.settle()
        with pytest.raises(CrowdtreeError, match="only items set aside or withdrawn"):
            game.reopen(tasks[0])
        with pytest.raises(CrowdtreeError, match="has no item 'nowhere'"):
            game.reopen("nowhere")
        assert game.reopen() == 3
        assert (game.reopen(), game.read(aside)) == (0, [])
        game.settle()
        assert not game.answer(game.workers[0], 1)  # has skipped all of them
        while sum(game.answer(who, 1) for who in game.workers[2:]):
            pass
        game.settle()
        assert len(game.labels()) == 4
        entry = game.store.read(lambda c: list_activity(c, game.number))[0]
        assert (entry["action"], entry["detail"]["items"]) == ("reopen", 3)


def test_items_that_were_never_asked_are_new_again(tmp_path: Any) -> None:
    game = Court(f"sqlite:///{tmp_path / 'x.db'}", HASTY, n=4)
    with game.store.opened():
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.settle()
        assert game.reopen() == 4
        game.settle()
        status = game.read(
            sa.select(campaigns.c.status, campaigns.c.reason, campaigns.c.reason_detail)
        )
        assert status == [("paused", CampaignReason.ITEMS_REOPENED, "4 items")]
        game.write(lambda c: owner.set_status(c, game.number, "running", game.clock()))
        while game.all_answer(1):
            pass
        game.settle()
        assert len(game.labels()) == 4


def test_webhooks_and_exports_tell_of_exclusions(court: Court) -> None:
    hook = {"campaign_id": court.number, "url": "https://example.org", "secret": "s"}
    last = court.read(sa.select(sa.func.max(labels.c.id)))[0][0]
    court.write(lambda c: c.execute(webhooks.insert().values(**hook, sent_label_id=last)).rowcount)
    bad = court.ids()[:2]
    court.exclude(*bad, reason="spam")
    court.settle()
    events = {body["type"]: body["data"] for body in delivered(court.store, court.clock)}
    assert list(events) == ["labels.withdrawn", "answers.excluded"]
    detail = events["answers.excluded"]
    assert (detail["excluded"], detail["actor"]) == (bad, "owner")
    assert detail["text"] == "answers of 2 workers excluded: spam"
    rows = court.store.read(lambda c: answer_rows(c, court.number, TABLE.questions))
    marked = [row for row in rows if row["fate"] == "excluded"]
    assert {row["worker"] for row in marked} == {f"w{number}" for number in bad}
    standing = court.store.read(
        lambda c: answer_rows(c, court.number, TABLE.questions, standing=True)
    )
    assert not {row["id"] for row in marked} & {row["id"] for row in standing}


def test_a_preview_of_many_items_is_of_the_first(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look() -> Any:
        return court.store.read(lambda c: previews.preview(c, court.number, court.ids()[:2]))

    whole = look()
    assert whole["complete"]
    assert whole["items"] == whole["labels"] > 2
    monkeypatch.setattr(previews, "MAX_ITEMS", 2)
    part = look()
    assert (part["items"], part["labels"], part["complete"]) == (whole["items"], 2, False)
    assert part["text"].startswith("Of the first 2 items: ")
    court.exclude(*court.ids()[:2])
    assert look()["text"] == "Nothing would change: no answer is affected."


def test_a_preview_is_what_happens(court: Court) -> None:
    bad = court.ids()[:2]
    seen = court.store.read(lambda c: previews.preview(c, court.number, bad))
    before = court.labels()
    court.exclude(*bad)
    court.settle()
    after = court.labels()
    assert seen["answers"] == court.read(EXCLUDED)[0][0]
    assert seen["withdrawn"] == len(before.keys() - after.keys()) > 0
    changed = [item for item in after if after[item][0] != before[item][0]]
    assert seen["replaced"] == len(changed)


def test_verify_finds_items_that_were_not_reopened(court: Court) -> None:
    court.write(lambda c: c.execute(items.update().values(reopened_after=1)).rowcount)
    assert any("reopened_after is 1, replayed 0" in text for text in court.differences())


def test_mistakes_are_refused(court: Court) -> None:
    with pytest.raises(NotFound, match="worker 999 is not in campaign"):
        court.exclude(999)
    with pytest.raises(CrowdtreeError, match="has given no answers since then"):
        court.exclude(court.ids()[0], since=9e9)
    with pytest.raises(CrowdtreeError, match="no answers of this worker are excluded"):
        court.include(court.ids()[0])
    with pytest.raises(CrowdtreeError, match="expected at least one"):
        court.exclude()
    assert court.read(sa.select(revisions.c.number)) == []


def test_verify_finds_exclusions_that_were_tampered_with(court: Court) -> None:
    court.exclude(court.ids()[0])
    court.settle()
    line = court.read(sa.select(answers.c.id).where(answers.c.revised_fate == "excluded"))[0][0]
    changed = answers.update().where(answers.c.id == line)
    court.write(lambda c: c.execute(changed.values(revised_fate=None)).rowcount)
    assert any("since the revision" in text for text in court.differences())
    court.write(lambda c: c.execute(changed.values(revised_fate="excluded")).rowcount)
    assert court.differences() == []
    court.write(lambda c: c.execute(exclusions.update().values(revision=7)).rowcount)
    assert any("excluded by no revision" in text for text in court.differences())


@contextmanager
def contradicted(folder: Path) -> Iterator[Court]:
    """Make a campaign whose table the server has estimated, because its answers contradict it."""
    policy = AdaptivePolicy(TABLE, target_error=0.02, max_answers=12, strict=False)
    game = Court(f"sqlite:///{folder / 'x.db'}", policy, n=25, revise=True, budget=None, price=0)
    rng = random.Random(0)
    with game.store.opened():
        while sum(game.answer(who, int(rng.random() < 0.5)) for who in game.workers):
            game.watching.tick()
        game.settle()
        yield game


def test_a_table_that_the_server_estimated_is_estimated_anew(tmp_path: Any) -> None:
    """Answers that contradict the table lead to a revision; without them it is taken back."""
    with contradicted(tmp_path) as game:
        number = game.read(sa.select(campaigns.c.revision))[0][0]
        assert number >= 1
        game.exclude(*game.ids())
        game.settle()
        first = sa.select(revisions.c.problem, revisions.c.policy).order_by(revisions.c.number)
        rows = game.read(first)
        assert rows[-1] == rows[0] != rows[-2]
        state = game.read(sa.select(monitors.c.answers, monitors.c.alarms))
        assert state == [(0, "[]")]
        game.include(*game.ids())
        game.settle()
        assert game.read(sa.select(campaigns.c.revision))[0][0] >= number + 3


@pytest.mark.parametrize("finished", [False, True])
def test_after_an_exclusion_the_table_is_estimated_from_the_others(
    finished: bool, tmp_path: Any
) -> None:
    """At once, without waiting for another alarm, and in a finished campaign as well."""
    with contradicted(tmp_path) as game:
        if finished:
            game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
            game.settle()
            assert game.read(sa.select(campaigns.c.status)) == [("finished",)]
        number = game.exclude(game.ids()[0])["revision"]
        game.watching.settle()
        game.settle()
        made = sa.select(revisions.c.reason, revisions.c.actor, revisions.c.problem)
        rows = game.read(made.where(revisions.c.number >= number).order_by(revisions.c.number))
        back, again = rows[:2]
        assert json.loads(again.reason)["why"] == "exclusion"
        assert (back.actor, again.actor) == ("owner", "server")
        assert back.problem != again.problem
