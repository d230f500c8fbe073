"""Replaying the log: is everything that the database says the consequence of the answers in it?"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.campaign import ItemState, advance, open_questions, start_item
from crowdtree.policy import AdaptivePolicy, Answer, Label, PlanPolicy
from crowdtree.problem import DASH
from crowdtree.store import statements as sql
from crowdtree.store.accounts import Accounts, check_accounts, check_references
from crowdtree.store.database import Sql, fetch, run_one
from crowdtree.store.desk import Desk
from crowdtree.store.tables import ITEM, LEASE
from crowdtree.store.work import CONCLUDED, OUTSIDE, SET_ASIDE, Loaded, path_of_item, stored_event

__all__ = ["verify"]

AT_ONCE = 500
MOST_TOLD = 100
ITEMS_AFTER = Sql(
    """SELECT id, task, status, gold, state FROM items WHERE campaign_id = :campaign
    AND id > :after ORDER BY id LIMIT :most"""
)
EVENTS = Sql(
    """SELECT item_id, question, worker_id, value, kind, key, lease_id, skill, fate, overdue, price
    FROM answers WHERE item_id IN :ids ORDER BY id"""
)
LABELS = Sql(
    """SELECT item_id, label, posterior_error, reason, answers, path FROM labels
    WHERE item_id IN :ids"""
)
WANTED = Sql("SELECT item_id, question, open FROM wanted WHERE item_id IN :ids")
LEASES = Sql(
    """SELECT item_id, id, worker_id, question, state, attempts FROM leases WHERE item_id IN :ids
    ORDER BY id"""
)
FINISHED = Sql("SELECT 1 FROM audit WHERE campaign_id = :campaign AND action = 'finish' LIMIT 1")
TOLERANCE = 1e-9
LITTLE = 1e-12


@dataclass
class Stored:
    """What the database holds about one item."""

    id: int
    task: str
    status: int
    gold: int | None
    state: str | None
    log: list[Any]
    label: Any
    wanted: list[Any]
    leases: list[Any]


def verify(connection: Connection, number: int) -> dict[str, Any]:
    """Replay every item of a campaign and compare; `differences` is empty when all is well.

    Checked for each item: that each question handed out was one that the policy asked at some
    point of the log, the fate of every answer, the policy's state, when it stopped, the label with
    its error, reason and path, that no vote got more answers than it takes and nobody answered
    twice, and that exactly the questions are open that the engine wants. Checked for the campaign:
    that rows refer to each other as they should, and that counts, money and what is kept of each
    worker are the sums over the log.
    """
    row = run_one(connection, sql.CAMPAIGNS, ids=[number])
    if row is None:
        from crowdtree.store.campaigns import NotFound

        raise NotFound(f"campaign {number} does not exist")
    campaign = Desk(lambda: 0.0, np.random.default_rng(0)).campaign(connection, row)
    differences = list(check_references(connection, number))
    accounts = Accounts(campaign.problem)
    for stored in _all_items(connection, number):
        item = _replayed(campaign, stored)
        differences += [f"item {stored.task!r}: {text}" for text in item.differences]
        accounts.add(stored, item.state)
    if accounts.finished and run_one(connection, FINISHED, campaign=number) is None:
        differences.append("items were labelled because of a finish that nobody asked for")
    differences += check_accounts(connection, campaign, accounts)
    return {
        "campaign": number,
        "items": accounts.items,
        "answers": accounts.lines,
        "labelled": accounts.labelled,
        "agrees": not differences,
        "differences": differences[:MOST_TOLD],
    }


def _all_items(connection: Connection, number: int) -> Iterator[Stored]:
    after = 0
    while rows := fetch(connection, ITEMS_AFTER, campaign=number, after=after, most=AT_ONCE):
        ids = [row[0] for row in rows]
        logs, wanted = _by_item(connection, EVENTS, ids), _by_item(connection, WANTED, ids)
        leases, labels = _by_item(connection, LEASES, ids), _by_item(connection, LABELS, ids)
        for row in rows:
            n = row[0]
            label = labels.get(n, [None])[0]
            facts = (logs.get(n, []), label, wanted.get(n, []), leases.get(n, []))
            yield Stored(n, row[1], row[2], row[3], row[4], *facts)
        after = ids[-1]


def _by_item(connection: Connection, statement: Sql, ids: list[int]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in fetch(connection, statement, ids=ids):
        found.setdefault(row[0], []).append(row)
    return found


# ------------------------------------------------------------------------------ one item


@dataclass
class Replayed:
    """An item as its log makes it, and where the database differs."""

    state: ItemState
    differences: list[str]


def _replayed(campaign: Loaded, stored: Stored) -> Replayed:
    if stored.gold is not None:
        blank = start_item(campaign.policy, stored.task)
        return Replayed(blank, [*_gold(campaign, stored), *_lease_lines(stored)])
    differences: list[str] = []
    visited = _visited(campaign, stored, differences)
    item = visited[-1]
    differences += _lease_lines(stored)
    differences += _asked(campaign, stored, visited)
    differences += _counted(campaign, item)
    differences += _label(campaign, item, stored)
    if stored.state is not None:
        if not _same(json.loads(stored.state), campaign.policy.dump(item.state)):
            differences.append("its state is not the replay of its answers")
    elif item.answers:
        differences.append("has answers, but no state")
    differences += _open(campaign, item, stored)
    return Replayed(item, differences)


def _visited(campaign: Loaded, stored: Stored, differences: list[str]) -> list[ItemState]:
    """Replay the log; every state that the item was in, the last one at the end."""
    visited = [start_item(campaign.policy, stored.task)]
    concluded = stored.label is not None and stored.label[3] in CONCLUDED
    over = False
    for row in stored.log:
        item, fate = visited[-1], row[8]
        if fate == "over budget":
            continue
        if fate in OUTSIDE:
            differences.append("is not gold, but has an answer to gold")
            continue
        if fate == "late" and (row[4] == "skip" or (concluded and item.label is None)):
            over = True  # came in after the label, or after the item was closed from outside
            continue
        if over:
            differences.append(f"{row[4]} of worker {row[2]} was {fate} after the item was closed")
        item = advance(campaign.policy, item, stored_event(stored.task, row), campaign.rules)
        if item.fates[-1] != fate:
            text = f"{row[4]} of worker {row[2]} was {fate}, replayed {item.fates[-1]}"
            differences.append(text)
        visited.append(item)
    return visited


def _lease_lines(stored: Stored) -> Iterator[str]:
    """Compare each lease with its lines of the log: an answer or skip, an undo, and so on."""
    lines: dict[int, list[str]] = {}
    for row in stored.log:
        lines.setdefault(row[6], []).append(row[4])
    for _, lease, worker, question, state, attempts in stored.leases:
        kinds = lines.pop(lease, [])
        what = f"lease {lease} (worker {worker}, question {question})"
        given = [kind for kind in kinds if kind != "undo"]
        if len(given) != attempts:
            yield f"{what} was answered {attempts} times, in the log {len(given)} times"
        if any((kind == "undo") != bool(place % 2) for place, kind in enumerate(kinds)):
            yield f"{what} has the lines {', '.join(kinds)}: answers and undos must alternate"
        last = kinds[-1] if kinds else "undo"
        closed = {"answer": (LEASE.answered,), "skip": (LEASE.skipped,)}
        if state not in closed.get(last, (LEASE.active, LEASE.expired, LEASE.withdrawn)):
            yield f"{what} is in state {state}, but its last line is {last!r}"
    for lease in lines:
        yield f"has answers to lease {lease}, which is not one of its leases"


def _gold(campaign: Loaded, stored: Stored) -> Iterator[str]:
    if stored.label is not None:
        yield "is gold, but has a label"
    if stored.wanted or stored.status != ITEM.gold:
        yield "is gold, but is worked on like the others"
    for row in stored.log:
        if row[8] not in ("gold", "undone"):
            yield f"is gold, but an answer to it was {row[8]}"
    for row in stored.leases:
        if campaign.problem.outcome[row[3], stored.gold] == DASH:
            yield f"is gold, but question {row[3]} has no right answer there"


def _asked(campaign: Loaded, stored: Stored, visited: list[ItemState]) -> Iterator[str]:
    """Check that each question handed out was asked by the policy at some point of the log."""
    policy, rules = campaign.policy, campaign.rules
    if isinstance(policy, PlanPolicy):
        due = {
            question
            for item in visited
            if item.label is None
            for question in range(policy.problem.n_questions)
            if policy.wants(item.state, question)
        }
        for row in stored.leases:
            if row[3] not in due:
                yield f"question {row[3]} was handed out, but the tree never came to it"
        return
    if not isinstance(policy, AdaptivePolicy) or policy.width > 1:
        return  # what is asked then depends on what else was out, which the log does not keep
    usual = {q for item in visited for q in open_questions(policy, item, rules=rules)}
    for row in stored.leases:
        if row[3] in usual:
            continue
        mine = (open_questions(policy, item, (), str(row[2]), rules) for item in visited)
        if not any(row[3] in found for found in mine):
            yield f"question {row[3]} was handed to worker {row[2]}, but was never the best to ask"


def _counted(campaign: Loaded, item: ItemState) -> Iterator[str]:
    """Nobody counts twice, and no vote takes more answers than it has places."""
    policy = campaign.policy
    state, votes = policy.start(), Counter[int]()
    seen: Counter[tuple[str, int]] = Counter()
    for event, fate in zip(item.events, item.fates, strict=True):
        if fate == "counted" and event.value is not None:
            votes[getattr(state, "node", -1)] += 1
            seen[event.worker, event.question] += 1
            state = policy.update(state, Answer(event.question, event.value, event.skill))
    for (worker, question), count in seen.items():
        if count > 1:
            yield f"worker {worker} was counted {count} times on question {question}"
    if isinstance(policy, PlanPolicy):
        if policy.voted.vote == "margin":  # it has no quota: the replay says where it ends
            return
        for node, count in votes.items():
            if node >= 0 and count > int(policy.voted.votes[node]):
                yield f"node {node} has {count} answers for {int(policy.voted.votes[node])} votes"
        return
    most = getattr(policy, "max_answers", None)
    if most is not None and sum(votes.values()) > most:
        yield f"has {sum(votes.values())} answers, at most {most} are wanted"


def _label(campaign: Loaded, item: ItemState, stored: Stored) -> Iterator[str]:
    label, status = stored.label, stored.status
    closed = status in (ITEM.labelled, ITEM.set_aside)
    if closed != (label is not None):
        yield f"is {ITEM.names[status]}, but {'has a' if label is not None else 'has no'} label"
    if label is None:
        if item.label is not None:
            yield f"should be labelled {campaign.problem.classes[item.label.label]}"
        return
    _, cls, error, reason, answers, path = label
    if closed and (status == ITEM.set_aside) != (reason in SET_ASIDE):
        yield f"is {ITEM.names[status]} with reason {reason!r}"
    expected: Label | None = item.label
    if expected is None and reason in CONCLUDED:
        expected = campaign.policy.conclude(item.state, reason)
    if expected is None:
        if reason != "never asked" or stored.log or cls is not None or error is not None:
            yield f"has a label ({reason}) that its answers do not give"
        return
    if (cls, reason) != (expected.label, expected.reason):
        yield f"has label {cls} ({reason}), replayed {expected.label} ({expected.reason})"
    if error is None or not _same(float(error), expected.posterior_error):
        yield f"has posterior error {error}, replayed {expected.posterior_error}"
    if answers != item.answers:
        yield f"says {answers} answers, replayed {item.answers}"
    if not _same(json.loads(path), path_of_item(campaign.problem.questions, item)):
        yield "has a path that is not the replay of its answers"


def _open(campaign: Loaded, item: ItemState, stored: Stored) -> Iterator[str]:
    """Exactly those questions are open that the engine wants beside what is out."""
    there = Counter({row[1]: row[2] for row in stored.wanted})
    out = [row[3] for row in stored.leases if row[4] == LEASE.active]
    if stored.status != ITEM.open:
        if stored.wanted:
            yield f"is {ITEM.names[stored.status]}, but still has open questions"
        if out:
            yield f"is {ITEM.names[stored.status]}, but questions are still out"
        if stored.status == ITEM.new and stored.log:
            yield "is new, but has answers"
        return
    policy = campaign.policy
    want = Counter(open_questions(policy, item, out, rules=campaign.rules))
    if there != want:
        yield f"has {dict(there)} open and {out} out, wanted are {dict(want)} beside these"
    total = Counter(open_questions(policy, item, (), rules=campaign.rules))
    if isinstance(policy, PlanPolicy) and Counter(out) - total:
        yield f"has questions {out} out, wanted are {dict(total)}"
    if isinstance(policy, AdaptivePolicy):
        most = min(policy.width, policy.max_answers - item.answers)
        if len(out) + there.total() > most:
            yield f"has {len(out) + there.total()} questions open or out, at most {most} matter"


def _same(stored: Any, replayed: Any) -> bool:
    if isinstance(stored, dict):
        return (
            isinstance(replayed, dict)
            and stored.keys() == replayed.keys()
            and all(_same(stored[key], replayed[key]) for key in stored)
        )
    if isinstance(stored, list):
        return (
            isinstance(replayed, list)
            and len(stored) == len(replayed)
            and all(map(_same, stored, replayed))
        )
    if isinstance(stored, float):
        return math.isclose(stored, replayed, rel_tol=TOLERANCE, abs_tol=LITTLE)
    return bool(stored == replayed)
