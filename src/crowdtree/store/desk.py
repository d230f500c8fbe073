"""The serving desk: a batch of requests in one transaction.

A batch loads everything its requests need in a few statements, lets the pure engine decide, and
writes the changes. Results are handed out only after the commit (see
:mod:`crowdtree.store.lanes`).
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.campaign import Rules
from crowdtree.policy import Label, policy_from_dict
from crowdtree.store import codec
from crowdtree.store import statements as sql
from crowdtree.store.database import fetch, run, run_one, send_many
from crowdtree.store.labelling import write_labels
from crowdtree.store.requests import Refused
from crowdtree.store.settings import Settings
from crowdtree.store.tables import ITEM, LEASE
from crowdtree.store.work import (
    AHEAD_SECONDS,
    CLOSED,
    Held,
    Loaded,
    Work,
    item_state,
    path_of,
)

__all__ = ["Batch", "Desk", "Who"]

MOST_HINTS = 200_000
SEEN = ("answers", "skips", "overdue", "earned", "last_question")


@dataclass
class Who:
    """The worker behind a token."""

    id: int
    campaign_id: int
    status: str
    status_reason: str
    question: int | None
    last_question: int
    skill: float
    answers: int

    @property
    def preferred(self) -> int:
        """The question to be asked first: the worker's only one, or their previous one."""
        return self.last_question if self.question is None else self.question


@dataclass
class Gains:
    """What a batch adds to a worker's record."""

    answers: int = 0
    skips: int = 0
    overdue: int = 0
    earned: int = 0
    last_question: int = -1
    seen: bool = False


@dataclass
class Purse:
    """What a capped campaign has spent, and what its leases may still cost."""

    cap: int
    spent: int
    reserved: int
    changed: bool = False

    def room(self, price: int) -> bool:
        """Whether one more answer can be paid."""
        return self.spent + self.reserved + price <= self.cap

    def move(self, spent: int, reserved: int) -> None:
        """Add to both sides."""
        self.spent += spent
        self.reserved += reserved
        self.changed = True


class Desk:
    """What one lane keeps between its batches: campaigns read from the database, and positions."""

    def __init__(
        self,
        clock: Callable[[], float],
        rng: np.random.Generator,
        last: dict[int, int] | None = None,
    ) -> None:
        self.clock = clock
        self.rng = rng
        self.shard = int.from_bytes(os.urandom(2), "big") % 64
        self.campaigns: dict[int, Loaded] = {}
        # Only hints, and only in memory: without them a worker looks from the start once.
        self.positions: dict[tuple[int, int], int] = {}
        self.scanned: dict[int, tuple[float, float]] = {}
        self.idle: set[int] = set()
        self.through: dict[int, tuple[float, str]] = {}
        # Whose a token is never changes; whether it still opens anything is asked every time.
        self.people: dict[str, tuple[int, int, int | None]] = {}
        self.last: dict[int, int] = {} if last is None else last

    def forget(self) -> None:
        """Keep the hints from growing without end."""
        if len(self.positions) > MOST_HINTS or len(self.people) > MOST_HINTS:
            self.positions.clear()
            self.people.clear()
            self.last.clear()
            self.scanned.clear()
            self.idle.clear()
            self.through.clear()

    def campaign(self, connection: Connection, row: Any) -> Loaded:
        """Read a campaign, or take it from memory where its version has not changed."""
        number, version, status, reason = row
        found = self.campaigns.get(number)
        if found is None or found.version != version:
            found = self._load(connection, number, version)
            self.campaigns[number] = found
        found.status, found.status_reason = status, reason
        return found

    def _load(self, connection: Connection, number: int, version: int) -> Loaded:
        problem_text, policy_text, settings_text = run_one(connection, sql.CAMPAIGN, id=number)
        problem = codec.problem_from_json(json.loads(problem_text))
        settings = Settings(**json.loads(settings_text))
        gold = [tuple(row) for row in fetch(connection, sql.GOLD_ITEMS, campaign=number)]
        return Loaded(
            id=number,
            version=version,
            policy=policy_from_dict(problem, json.loads(policy_text)),
            settings=settings,
            rules=Rules(most_skips=settings.most_skips),
            gold=gold,
        )


@dataclass
class Batch:
    """One transaction's view of the database."""

    connection: Connection
    desk: Desk
    now: float
    who: dict[str, Who] = field(default_factory=dict)
    campaigns: dict[int, Loaded] = field(default_factory=dict)
    purses: dict[int, Purse] = field(default_factory=dict)
    works: dict[int, Work] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    judgements: list[dict[str, Any]] = field(default_factory=list)
    gains: dict[int, Gains] = field(default_factory=lambda: defaultdict(Gains))
    tallies: Counter[tuple[int, str]] = field(default_factory=Counter)
    opened: Counter[int] = field(default_factory=Counter)
    touched: set[int] = field(default_factory=set)
    unfinished: dict[int, bool] = field(default_factory=dict)

    # ---------------------------------------------------------------- loading

    def load(self, hashes: Iterable[str], leases: Sequence[int]) -> None:
        """Load the workers behind tokens, and lock and load the items of leases."""
        people = run(self.connection, sql.WORKERS, {"hashes": sorted(set(hashes))})
        # Budgets are locked before items. Where there are none, as far as this desk knows,
        # everything is asked for at once; a new one costs a deadlock at worst, and another try.
        known = self.desk.campaigns.values()
        if not known or any(c.settings.budget is not None for c in known):
            self.read_people(people.fetchall())
            self.read_items(self.ask_items((), leases))
        else:
            asked = self.ask_items((), leases)
            self.read_people(people.fetchall())
            self.read_items(asked)

    def read_people(self, rows: Iterable[Any]) -> None:
        """Take in rows of ``WORKERS``."""
        capped = set()
        for row in rows:
            who = Who(*row[3:11])
            if who.campaign_id not in self.campaigns:
                facts = (who.campaign_id, *row[11:14])
                campaign = self.desk.campaign(self.connection, facts)
                self.campaigns[who.campaign_id] = campaign
                if campaign.settings.budget is not None:
                    capped.add(who.campaign_id)
            if row[1] == "worker" and (row[2] is None or row[2] > self.now):
                self.who[row[0]] = who
                self.desk.people[row[0]] = (who.id, who.campaign_id, who.question)
                self.desk.last[who.id] = who.last_question
        self._lock_budgets(capped)

    def load_campaigns(self, ids: Iterable[int]) -> None:
        """Load campaigns, and lock the budgets of those that have one."""
        missing = sorted(set(ids) - set(self.campaigns))
        if not missing:
            return
        for row in fetch(self.connection, sql.CAMPAIGNS, ids=missing):
            self.campaigns[row[0]] = self.desk.campaign(self.connection, row)
        self._lock_budgets({n for n in missing if self.campaigns[n].settings.budget is not None})

    def _lock_budgets(self, capped: set[int]) -> None:
        if capped:
            for number, *rest in fetch(self.connection, sql.BUDGETS, ids=sorted(capped)):
                self.purses[number] = Purse(*rest)

    def load_items(self, ids: Sequence[int] = (), leases: Sequence[int] = ()) -> None:
        """Lock items, by their ids or by leases on them, and load what the engine must know."""
        self.read_items(self.ask_items(ids, leases))

    def ask_items(self, ids: Sequence[int], leases: Sequence[int]) -> list[Any]:
        """Ask for items. All is sent before the first is read: on PostgreSQL one wait, not four."""
        which = {"ids": list(ids), "leases": list(leases)}
        parts = (sql.ITEMS, sql.EVENTS_OF_ITEMS, sql.LEASES_OF_ITEMS, sql.WANTED_OF_ITEMS)
        return [run(self.connection, part, which) for part in parts]

    def read_items(self, asked: Sequence[Any]) -> None:
        """Take in what was asked for."""
        items, events, held, wanted = (list(part.fetchall()) for part in asked)
        fresh = {row[0] for row in items} - set(self.works)
        self.load_campaigns({row[1] for row in items})
        lines = defaultdict(list)
        for event in events:
            lines[event[0]].append(event)
        for number, campaign_id, task, status, gold, state in items:
            if number in fresh:
                campaign = self.campaigns[campaign_id]
                log = lines[number] if gold is None else []  # the engine knows no gold
                item = item_state(campaign, task, state, log)
                if status in (ITEM.labelled, ITEM.set_aside):
                    item = replace(item, label=CLOSED)
                self.works[number] = Work(number, task, status, gold, campaign, item)
        for row in held:
            if row[2] in fresh:
                self.works[row[2]].leases[row[0]] = Held(*row)
        for row in wanted:
            if row[1] in fresh:
                self.works[row[1]].wanted[row[2]] = (row[0], row[3])

    def any_open(self, campaign: int) -> bool:
        """Whether a campaign has items without a label, asked once a batch."""
        if campaign not in self.unfinished:
            found = run_one(self.connection, sql.ANY_OPEN, campaign=campaign)
            self.unfinished[campaign] = found is not None
        return self.unfinished[campaign]

    def known(self, token_hash: str) -> Who:
        """Find the worker behind a token."""
        who = self.who.get(token_hash)
        if who is None:
            raise Refused("unknown", "This link is not valid any more. Ask for a new one.")
        if who.status == "blocked":
            raise Refused("blocked", "You cannot take part in this any more.")
        return who

    # ---------------------------------------------------------------- items

    def settle(self, work: Work) -> None:
        """Bring leases and open questions in line, and write the label if there is one."""
        if work.label is not None:
            self._label(work, work.label)
            work.label = None
        self.opened[work.campaign.id] += work.refresh()
        self.touched.add(work.campaign.id)

    def write_wanted(self, works: Iterable[Work]) -> None:
        """Write the open questions of items."""
        added, saved, dropped = [], [], []
        for work in works:
            for question, row, count in work.wanted_changes():
                if row is None:
                    values = {"campaign_id": work.campaign.id, "item_id": work.id}
                    added.append({**values, "question": question, "open": count})
                elif count:
                    saved.append({"id": row, "open": count})
                else:
                    dropped.append({"id": row})
        send_many(self.connection, sql.DROP_WANTED, dropped)
        send_many(self.connection, sql.SAVE_WANTED, saved)
        send_many(self.connection, sql.ADD_WANTED, added)

    def _label(self, work: Work, label: Label) -> None:
        self.labels.append(
            {
                "campaign_id": work.campaign.id,
                "item_id": work.id,
                "label": label.label,
                "posterior_error": label.posterior_error,
                "reason": label.reason,
                "answers": work.item.answers,
                "path": json.dumps(path_of(work)),
                "at": self.now,
            }
        )
        self.count(work.campaign.id, ITEM.names[work.status])
        self.count(work.campaign.id, "open", -1)
        self.count(work.campaign.id, "estimated")
        self.count(work.campaign.id, "taken", work.item.answers)
        self.count(work.campaign.id, "error_nanos", round(label.posterior_error * 1e9))
        if label.reason == "undecided":
            self.count(work.campaign.id, "undecided")
        if work.status == ITEM.set_aside:
            return
        self.count(work.campaign.id, f"label:{label.label}")
        for event, fate in zip(work.item.events, work.item.fates, strict=True):
            if fate == "counted" and event.value is not None:
                error = label.posterior_error
                self.judge(int(event.worker), event.question, event.value, label.label, error)

    def judge(
        self, worker: int, question: int, value: int, cls: int, error: float, gold: int = 0
    ) -> None:
        """Note an answer to an item whose class is known, for sure or nearly."""
        values = {"worker_id": worker, "question": question, "value": value}
        self.judgements.append({**values, "cls": cls, "error": error, "gold": gold})

    def expire(self, most: int) -> int:
        """Take back leases that have expired; count them."""
        found = fetch(
            self.connection,
            sql.OVERDUE_ITEMS,
            now=self.now,
            ahead=self.now + AHEAD_SECONDS,
            most=most,
        )
        if not found:
            return 0
        self.load_items([row[0] for row in found])
        count = 0
        for row in found:
            work = self.works[row[0]]
            for lease in work.leases.values():
                if lease.state in (LEASE.active, LEASE.withdrawn) and lease.overdue(self.now):
                    purse = self.purses.get(work.campaign.id)
                    if purse is not None:
                        purse.move(0, -work.campaign.settings.price_micros)
                    lease.become(LEASE.expired)
                    self.count(work.campaign.id, "expired")
                    count += 1
            if work.gold is None:
                self.settle(work)
        return count

    # ---------------------------------------------------------------- counting and writing

    def count(self, campaign: int, name: str, by: int = 1) -> None:
        """Add to a tally of a campaign."""
        self.tallies[campaign, name] += by

    def flow(self, work: Work, before: int | None) -> None:
        """Count items through the nodes of the tree."""
        after = work.node
        if before is not None and after is not None and after != before:
            self.count(work.campaign.id, f"out:{before}")
            self.count(work.campaign.id, f"in:{after}")

    def write(self) -> None:
        """Write everything that has changed."""
        connection = self.connection
        send_many(connection, sql.ADD_ANSWER, self.answers)
        works = self.works.values()
        send_many(
            connection,
            sql.SAVE_LEASE,
            (
                {
                    "id": lease.id,
                    "state": lease.state,
                    "attempts": lease.attempts,
                    "given_at": lease.given_at,
                    "expires_at": lease.expires_at,
                }
                for work in works
                for lease in work.leases.values()
                if lease.changed
            ),
        )
        send_many(
            connection,
            sql.SAVE_ITEM,
            (
                {"id": work.id, "status": work.status, "state": work.state_text()}
                for work in works
                if work.changed
            ),
        )
        self.write_wanted(works)
        write_labels(connection, self.labels)
        for number, purse in self.purses.items():
            if purse.changed:
                run(
                    connection,
                    sql.SAVE_BUDGET,
                    {"campaign_id": number, "spent": purse.spent, "reserved": purse.reserved},
                )
        self._write_people()
        send_many(
            connection,
            sql.ADD_TALLY,
            (
                {"campaign_id": c, "name": name, "shard": self.desk.shard, "value": value}
                for (c, name), value in sorted(self.tallies.items())
                if value
            ),
        )

    def _write_people(self) -> None:
        """Write what the workers of this batch did, and what was learnt about any worker."""
        seen = [(number, gains) for number, gains in sorted(self.gains.items()) if gains.seen]
        if len(seen) > 1:  # one order for everybody, so that nobody waits for good
            run(self.connection, sql.IN_ORDER, {"ids": [number for number, _ in seen]})
        send_many(
            self.connection,
            sql.SEEN_WORKER,
            (
                {
                    "id": number,
                    "now": self.now,
                    **{name: getattr(gains, name) for name in SEEN},
                }
                for number, gains in seen
            ),
        )
        for number, gains in seen:
            if gains.last_question >= 0:
                self.desk.last[number] = gains.last_question
        send_many(self.connection, sql.ADD_JUDGEMENT, self.judgements)
