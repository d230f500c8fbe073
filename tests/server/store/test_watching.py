"""Campaigns that notice that their table is wrong, and revise it while they run."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy, Answer, PlanPolicy
from crowdtree.policies.monitor import Monitor
from crowdtree.server.rules import wrong_table
from crowdtree.server.rules.runner import Runner
from crowdtree.server.rules.wrong_table import WrongTable
from crowdtree.server.store import Next, Store, Submit
from crowdtree.server.store.db.activity import list_activity
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import answers, items, labels, monitors, revisions
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.store.queries.progress import progress
from crowdtree.server.store.replay.verify import verify
from tests.storelab import filled, maintain
from tests.weblab import Clock

PROBLEM = ct.Problem(["a", "b"], None, ["q", "r"], [[0, 1], [1, 0]], 0.1)
TARGET = 0.05
POLICY = AdaptivePolicy(PROBLEM, target_error=TARGET, max_answers=10, strict=False)


class Live:
    """A campaign with workers who err as often as told."""

    def __init__(
        self, url: str, error: float, n: int = 60, policy: Any = POLICY, seed: int = 0, **more: Any
    ) -> None:
        self.clock = Clock()
        self.store = Store(url, clock=self.clock, rng=seed)
        self.number, self.workers = filled(self.store, n, policy, **more)
        self.rng, self.error = np.random.default_rng(seed), error
        self.truth = {f"i{k}": k % 2 for k in range(n)}
        self.keys = itertools.count()
        self.watching = Runner(self.store, [WrongTable])

    def answer(self, who: str) -> bool:
        """Let a worker answer a question; false if there is none."""
        self.clock.now += 1
        task = self.store.ask(Next(who))["task"]
        if task is None:
            return False
        question = PROBLEM.questions.index(task["question"]["name"])
        right = int(PROBLEM.outcome[question, self.truth[task["item"]["task"]]])
        value = right ^ int(self.rng.random() < self.error)
        self.store.ask(Submit(who, task["lease"], "answer", value, f"k{next(self.keys)}"))
        return True

    def watch(self) -> None:
        """Read the log to its end."""
        self.watching.settle()

    def work(self, every: int = 1, most: int = 100_000) -> int:
        """Let people answer until nothing is left; the log is read after every few answers."""
        count = 0
        while count < most:
            given = 0
            for who in self.workers:
                given += self.answer(who)
                if given % every == 0:
                    self.watch()
            count += given
            self.watch()
            maintain(self.store)
            if not given:
                break
        return count

    def read(self, statement: Any) -> Any:
        return self.store.read(lambda c: c.execute(statement).all())

    def facts(self) -> Any:
        return self.store.read(lambda c: progress(c, self.number, self.clock()))

    def status(self) -> str:
        return self.store.read(lambda c: get_campaign(c, self.number)).status

    def activity(self, action: str) -> list[Any]:
        rows = self.store.read(lambda c: list_activity(c, self.number))
        return [row["detail"]["text"] for row in rows[::-1] if row["action"] == action]

    def revisions(self) -> list[Any]:
        columns = (revisions.c.number, revisions.c.actor, revisions.c.policy, revisions.c.reason)
        return list(self.read(sa.select(*columns).order_by(revisions.c.number)))

    def stored(self) -> tuple[Any, ...]:
        """What follows from the log."""
        columns = ("last_answer_id", "tested", "answers", "alarms")
        (row,) = self.read(sa.select(*(monitors.c[name] for name in columns)))
        return tuple(row), self.activity("alarm"), self.revisions()

    def agrees(self) -> bool:
        found = self.store.read(lambda c: verify(c, self.number))
        assert found["differences"] == []
        return bool(found["agrees"])

    def wrong(self) -> float:
        """Share of labels that are wrong."""
        rows = self.store.read(lambda c: campaign_labels(c))
        return float(np.mean([label != self.truth[task] for task, label in rows]))


def monitor_of(game: Live) -> Monitor:
    rule: Any = game.watching.rules[0]
    return rule.watched[game.number].monitor


def campaign_labels(connection: Any) -> Any:
    joined = labels.join(items, items.c.id == labels.c.item_id)
    return connection.execute(sa.select(items.c.task, labels.c.label).select_from(joined)).all()


@contextlib.contextmanager
def live(*values: Any, **more: Any) -> Iterator[Live]:
    made = Live(*values, **more)
    with made.store.opened():
        yield made


def monitored(game: Live, policy: Any = POLICY) -> Monitor:
    """Feed the answers that counted to a monitor, as a simulation does."""
    monitor = Monitor(policy)
    mine = sa.select(answers).where(answers.c.fate == "counted").order_by(answers.c.id)
    for row in game.read(mine):
        monitor.observe(str(row.item_id), Answer(row.question, row.value, row.skill))
        if monitor.due:
            monitor.revise()
    return monitor


@pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_errors_twice_the_assumed_are_noticed_and_the_table_revised(url: str) -> None:
    with live(url, 0.2, n=120) as game:
        game.work(every=5)
        alarms, made = game.activity("alarm"), game.revisions()
        assert alarms[0].endswith("the answers contradict the table: how often people are wrong")
        assert [row.actor for row in made[:2]] == ["owner", "server"]
        assert "people are wrong about" in made[1].reason
        assert game.status() == "finished"
        assert game.agrees()
        assert game.wrong() <= 2 * TARGET
        facts = game.facts()["monitor"]
        assert facts["adapt"]
        assert [alarm["text"] for alarm in facts["alarms"]] == alarms
        found = {row["name"]: row for row in facts["findings"]}
        assert found["q"]["assumed"] == pytest.approx(0.1)
        assert 0.15 < found["q"]["estimate"] < 0.25


def test_a_right_table_raises_no_alarm(tmp_path: Any) -> None:
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.1) as game:
        game.work(every=5)
        assert game.status() == "finished"
        assert (game.activity("alarm"), game.revisions()) == ([], [])
        facts = game.facts()["monitor"]
        assert facts["answers"] == game.facts()["answers"]["counted"]
        assert (facts["alarms"], facts["findings"]) == ([], [])


def test_without_adaptation_the_owner_is_only_told(tmp_path: Any) -> None:
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.2, revise=False) as game:
        game.work(every=5)
        assert game.activity("alarm")
        assert game.revisions() == []
        facts = game.facts()["monitor"]
        assert not facts["adapt"]
        assert facts["findings"][0]["text"].startswith("question")


@pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_live_and_simulated_campaigns_behave_alike(url: str) -> None:
    """The same answers in the same order give the same alarms and revisions."""
    with live(url, 0.25) as game:
        game.work(every=1)
        monitor = monitored(game)
        assert game.activity("alarm") == [str(alarm) for alarm in monitor.alarms]
        made = game.revisions()[1:]
        assert len(made) == len(monitor.revisions) > 1
        last = game.store.read(lambda c: get_campaign(c, game.number)).make_policy()
        assert last.to_dict() == monitor.policy.to_dict()
        assert np.array_equal(last.problem.worker_error, monitor.policy.problem.worker_error)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_restart_in_the_middle_changes_nothing(
    kind: str, request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrong_table, "AT_ONCE", 7)
    found = []
    for restart in (False, True):
        url = f"sqlite:///{tmp_path / f'{restart}.db'}"
        if kind == "postgresql":
            url = request.getfixturevalue("postgres").migrated()
        with live(url, 0.2) as game:
            while game.work(every=3, most=30):
                if restart:
                    game.watching = Runner(game.store, [WrongTable])
            found.append(game.stored())
            assert game.agrees()
    assert found[0] == found[1]
    assert len(found[0][2]) > 1


def test_a_restarted_server_goes_on_from_the_stored_state(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.2) as game:
        game.work(every=5, most=60)
        before = monitor_of(game).to_dict()
        game.watching = Runner(game.store, [WrongTable])
        game.answer(game.workers[0])
        read: list[int] = []
        plain = wrong_table.take
        monkeypatch.setattr(wrong_table, "take", lambda *all: (read.append(1), plain(*all)))
        game.watch()
        after = monitor_of(game).to_dict()
        assert len(read) == 1
        assert after["answers"] == before["answers"] + 1
        assert after["revisions"][: len(before["revisions"])] == before["revisions"]
        assert game.agrees()


@pytest.mark.parametrize("part", ["totals", "mass", "answers", "alarms"])
def test_a_state_that_does_not_follow_from_the_log_is_found(tmp_path: Any, part: str) -> None:
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.35, n=20, revise=False) as game:
        game.work(every=5)
        assert game.agrees()
        state = json.loads(game.read(sa.select(monitors.c.state))[0].state)
        found = state["monitor"][part]
        state["monitor"][part] = found[1:] if isinstance(found, list) else found + 1
        changed = monitors.update().values(state=json.dumps(state))
        game.store.write(lambda c: c.execute(changed))
        told = game.store.read(lambda c: verify(c, game.number))["differences"]
        assert told[0] == "what its answers say about its table is not the replay of its log"


class Failing(WrongTable):
    """Ends before every third commit."""

    calls = 0

    def apply(self, connection: Any, campaign: Any, finding: Any) -> bool:
        done = super().apply(connection, campaign, finding)
        self.calls += 1
        if self.calls % 3 == 0:
            raise RuntimeError("ended")
        return done


def test_what_could_not_be_written_is_read_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost and nothing told twice when a process ends before it commits."""
    found = []
    for kind in (WrongTable, Failing):
        with live(f"sqlite:///{tmp_path / f'{kind.__name__}.db'}", 0.35, n=40) as game:
            game.watching, watch = Runner(game.store, [kind]), game.watch

            def again(watch: Any = watch) -> None:
                watch()
                watch()

            monkeypatch.setattr(game, "watch", again)
            game.work(every=5)
            found.append(game.stored())
            assert game.agrees()
    assert found[0] == found[1]
    assert len(found[0][2]) > 1


def test_the_owners_table_is_tested_from_its_first_item_on(tmp_path: Any) -> None:
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.4, n=60, revise=False) as game:
        game.work(every=5, most=80)
        assert game.facts()["monitor"]["alarms"]
        right = PROBLEM.replace(worker_error=0.4)
        new = AdaptivePolicy(right, target_error=0.3, max_answers=12, strict=False)
        reason = {"text": "a pilot"}
        game.store.write(lambda c: revise(c, game.number, new, reason, game.clock()))
        game.work(every=5)
        facts = game.facts()["monitor"]
        assert 0 < facts["answers"] < game.facts()["answers"]["counted"]
        assert facts["alarms"] == []
        before = game.stored()
        game.watching = Runner(game.store, [WrongTable])
        game.watch()
        assert game.stored() == before


def test_a_plan_is_told_by_default_and_restated_on_demand(tmp_path: Any) -> None:
    plan = PlanPolicy(ct.staff(ct.design(PROBLEM), workers=4), "none")
    for adapt, expected in ((None, 0), (True, 1)):
        with live(f"sqlite:///{tmp_path / f'{adapt}.db'}", 0.35, 80, plan, revise=adapt) as game:
            game.work(every=5)
            assert game.activity("alarm")
            made = game.revisions()
            assert bool(made) == bool(expected)
            assert game.agrees()
            assert game.status() == "finished"


def test_settings_changed_later_take_effect(tmp_path: Any) -> None:
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.4, revise=False) as game:
        game.work(every=5, most=80)
        assert game.activity("alarm")
        changes = {"table.revise": True}
        game.store.write(
            lambda c: campaigns.change_settings(c, game.number, POLICY, changes, game.clock())
        )
        game.work(every=5)
        assert game.revisions()
        before = game.stored()
        game.watching = Runner(game.store, [WrongTable])
        game.watch()
        assert game.stored() == before


def test_two_processes_read_the_same_log(url: str) -> None:
    with live(url, 0.2) as game:
        game.work(every=5, most=40)
        first, game.watching = game.watching, Runner(game.store, [WrongTable])
        game.answer(game.workers[0])
        game.watch()
        game.answer(game.workers[1])
        first.settle()
        game.answer(game.workers[2])
        game.work(every=5)
        assert game.agrees()
        assert len(game.activity("alarm")) == len(set(game.activity("alarm")))


def test_a_line_that_commits_late_is_not_missed(postgres: Any) -> None:
    with live(postgres.migrated(), 0.1, n=10) as game:
        game.answer(game.workers[0])
        game.watch()
        with game.store.engine.connect() as other:
            with other.begin():
                other.execute(sa.text("SELECT id FROM items ORDER BY id LIMIT 1 FOR UPDATE"))
                other.execute(sa.text("SELECT nextval('answers_id_seq')"))
                game.answer(game.workers[1])
                game.watch()
                assert game.facts()["monitor"]["answers"] == 1
            game.watch()
        assert game.facts()["monitor"]["answers"] == 2


def test_a_campaign_that_adapts_does_not_finish_before_its_answers_were_compared(
    tmp_path: Any,
) -> None:
    for adapt, expected in ((True, "running"), (False, "finished")):
        with live(f"sqlite:///{tmp_path / f'{adapt}.db'}", 0.1, n=5, revise=adapt) as game:
            while any(game.answer(who) for who in game.workers):
                pass
            maintain(game.store)
            assert game.status() == expected
            game.watch()
            maintain(game.store)
            assert game.status() == "finished"


def test_a_table_chosen_after_the_last_answer_lets_the_campaign_finish(url: str) -> None:
    """Answers that nobody has compared before an owner revises are passed over."""
    with live(url, 0.1, n=5) as game:
        while any(game.answer(who) for who in game.workers):
            pass
        new = AdaptivePolicy(PROBLEM, target_error=0.3, max_answers=10, strict=False)
        reason = {"text": "less is asked for"}
        game.store.write(lambda c: revise(c, game.number, new, reason, game.clock()))
        game.watch()
        maintain(game.store)
        assert game.status() == "finished"
        assert game.agrees()
        before = game.stored()
        game.watching = Runner(game.store, [WrongTable])
        game.watch()
        assert game.stored() == before


def test_a_revision_that_is_refused_is_noted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise CrowdtreeError("policy: refused")

    monkeypatch.setattr(wrong_table, "revise", refuse)
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.4, n=20) as game:
        game.work(every=5)
        assert set(game.activity("not revised")) == {"policy: refused"}
        assert game.status() == "finished"
        assert game.agrees()


def test_a_campaign_whose_answers_cannot_be_compared_goes_on_unwatched(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise FloatingPointError("overflow")

    monkeypatch.setattr(Monitor, "observe", fail)
    with live(f"sqlite:///{tmp_path / 'x.db'}", 0.1, n=10) as game:
        game.work(every=5)
        assert game.status() == "finished"
        assert game.agrees()
    assert "wrong table: campaign 1 failed" in caplog.text
