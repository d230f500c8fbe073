"""Replaying the log: is everything that the database says the consequence of the answers in it?"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.campaign import advance, start_item
from crowdtree.policy import Label, PlanPolicy
from crowdtree.store import statements as sql
from crowdtree.store.database import Sql, fetch, run_one
from crowdtree.store.desk import Desk
from crowdtree.store.tables import ITEM
from crowdtree.store.work import OUTSIDE, Loaded, stored_event

__all__ = ["verify"]

AT_ONCE = 500
MOST_TOLD = 100
ITEMS_AFTER = Sql(
    """SELECT id, task, status, gold, state FROM items WHERE campaign_id = :campaign
    AND id > :after ORDER BY id LIMIT :most"""
)
EVENTS = Sql(
    """SELECT item_id, question, worker_id, value, kind, key, lease_id, skill, fate FROM answers
    WHERE item_id IN :ids ORDER BY id"""
)
LABELS = Sql(
    """SELECT item_id, label, posterior_error, reason, answers FROM labels WHERE item_id IN :ids"""
)
WANTED = Sql("SELECT item_id, question, open FROM wanted WHERE item_id IN :ids")
LEASED = Sql("SELECT item_id, question FROM leases WHERE item_id IN :ids AND state = 0")
CONCLUDED = ("finished", "budget")
TOLERANCE = 1e-9


def verify(connection: Connection, number: int) -> dict[str, Any]:
    """Replay every item of a campaign and compare; `differences` is empty when all is well.

    Checked for each item: the fate of every answer, the policy's state, the label with its error
    and reason, that no node got more answers than its quota and nobody answered twice, and that
    no more questions are open or leased than the engine wants.
    """
    row = run_one(connection, sql.CAMPAIGNS, ids=[number])
    if row is None:
        from crowdtree.store.campaigns import NotFound

        raise NotFound(f"campaign {number} does not exist")
    campaign = Desk(lambda: 0.0, np.random.default_rng(0)).campaign(connection, row)
    differences: list[str] = []
    counts: Counter[str] = Counter()
    for piece in _pieces(connection, number):
        ids = [item[0] for item in piece]
        logs = _by_item(connection, EVENTS, ids)
        labels = {line[0]: line for line in fetch(connection, LABELS, ids=ids)}
        wanted, leased = _by_item(connection, WANTED, ids), _by_item(connection, LEASED, ids)
        for item in piece:
            counts["items"] += 1
            counts["answers"] += len(logs.get(item[0], ()))
            found = _item(
                campaign,
                item,
                logs.get(item[0], []),
                labels.get(item[0]),
                wanted.get(item[0], []),
                leased.get(item[0], []),
            )
            differences += [f"item {item[1]!r}: {text}" for text in found]
            counts["labelled"] += item[0] in labels
    differences += _tallies(connection, number, counts)
    return {
        "campaign": number,
        "items": counts["items"],
        "answers": counts["answers"],
        "labelled": counts["labelled"],
        "agrees": not differences,
        "differences": differences[:MOST_TOLD],
    }


def _pieces(connection: Connection, number: int) -> Iterator[list[Any]]:
    after = 0
    while True:
        rows = fetch(connection, ITEMS_AFTER, campaign=number, after=after, most=AT_ONCE)
        if not rows:
            return
        yield list(rows)
        after = rows[-1][0]


def _by_item(connection: Connection, statement: Sql, ids: list[int]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in fetch(connection, statement, ids=ids):
        found.setdefault(row[0], []).append(row)
    return found


def _item(
    campaign: Loaded, row: Any, log: list[Any], label: Any, wanted: list[Any], leased: list[Any]
) -> Iterator[str]:
    _, task, status, gold, state = row
    if gold is not None:
        if label is not None:
            yield "is gold, but has a label"
        return
    policy = campaign.policy
    item = start_item(policy, task)
    seen: Counter[tuple[str, int]] = Counter()
    votes: Counter[int] = Counter()
    concluded = label is not None and label[3] in CONCLUDED
    for event_row in log:
        fate = event_row[8]
        if fate in OUTSIDE:
            continue
        event = stored_event(task, event_row)
        if fate == "late" and (event.kind == "skip" or (concluded and item.label is None)):
            continue  # came in after the label, or after the owner had ended the campaign
        node = getattr(item.state, "node", -1)
        item = advance(policy, item, event, campaign.rules)
        if item.fates[-1] != fate:
            yield f"{event.kind} of worker {event.worker} was {fate}, replayed {item.fates[-1]}"
        if fate == "counted":
            seen[event.worker, event.question] += 1
            votes[node] += 1
        if event.kind == "undo" and fate == "undone":
            votes = _votes(policy, item)
            seen = Counter(
                (e.worker, e.question)
                for e, f in zip(item.events, item.fates, strict=True)
                if f == "counted"
            )
    yield from _twice(seen)
    yield from _quota(policy, votes)
    yield from _label(campaign, item, label, status)
    if state is not None and not _same(json.loads(state), policy.dump(item.state)):
        yield "its state is not the replay of its answers"
    yield from _open(campaign, item, status, wanted, leased)


def _votes(policy: Any, item: Any) -> Counter[int]:
    """Count the answers at each node from the start."""
    state, votes = policy.start(), Counter[int]()
    from crowdtree.policy import Answer

    for event, fate in zip(item.events, item.fates, strict=True):
        if fate == "counted":
            votes[getattr(state, "node", -1)] += 1
            state = policy.update(state, Answer(event.question, event.value, event.skill))
    return votes


def _twice(seen: Counter[tuple[str, int]]) -> Iterator[str]:
    for (worker, question), count in seen.items():
        if count > 1:
            yield f"worker {worker} was counted {count} times on question {question}"


def _quota(policy: Any, votes: Counter[int]) -> Iterator[str]:
    if isinstance(policy, PlanPolicy):
        if policy.voted.vote == "margin":
            return
        for node, count in votes.items():
            if node >= 0 and count > int(policy.voted.votes[node]):
                yield f"node {node} has {count} answers for {int(policy.voted.votes[node])} votes"
        return
    most = getattr(policy, "max_answers", None)
    if most is not None and sum(votes.values()) > most:
        yield f"has {sum(votes.values())} answers, at most {most} are wanted"


def _label(campaign: Loaded, item: Any, label: Any, status: int) -> Iterator[str]:
    closed = status in (ITEM.labelled, ITEM.set_aside)
    if closed != (label is not None):
        yield f"is {ITEM.names[status]}, but {'has a' if label is not None else 'has no'} label"
    if label is None:
        if item.label is not None:
            yield f"should be labelled {campaign.problem.classes[item.label.label]}"
        return
    expected: Label | None = item.label
    if expected is None and label[3] in CONCLUDED:
        expected = campaign.policy.conclude(item.state, label[3])
    if expected is None:
        if label[3] != "never asked" or item.events:
            yield f"has a label ({label[3]}) that its answers do not give"
        return
    if (label[1], label[3]) != (expected.label, expected.reason):
        yield f"has label {label[1]} ({label[3]}), replayed {expected.label} ({expected.reason})"
    if not math.isclose(label[2], expected.posterior_error, rel_tol=1e-6, abs_tol=TOLERANCE):
        yield f"has posterior error {label[2]}, replayed {expected.posterior_error}"
    if label[4] != item.answers:
        yield f"says {label[4]} answers, replayed {item.answers}"


def _open(
    campaign: Loaded, item: Any, status: int, wanted: list[Any], leased: list[Any]
) -> Iterator[str]:
    if status != ITEM.open:
        if wanted:
            yield f"is {ITEM.names[status]}, but still has open questions"
        return
    out = [row[1] for row in leased]
    found = campaign.policy.ask(item.state)
    questions = () if isinstance(found, Label) else found.questions
    want, there = Counter(questions), Counter(out)
    for _, question, count in wanted:
        there[question] += count
    # Another question than the best may be out where a worker had that one already.
    if isinstance(campaign.policy, PlanPolicy) and any(there[q] > want[q] for q in there):
        yield f"has {dict(there)} open or leased, wanted are {dict(want)}"


def _same(stored: Any, replayed: Any) -> bool:
    if isinstance(stored, dict):
        return stored.keys() == replayed.keys() and all(
            _same(stored[key], replayed[key]) for key in stored
        )
    if isinstance(stored, list):
        return len(stored) == len(replayed) and all(map(_same, stored, replayed))
    if isinstance(stored, float):
        return math.isclose(stored, replayed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(stored == replayed)


def _tallies(connection: Connection, number: int, counts: Counter[str]) -> Iterator[str]:
    from crowdtree.store.campaigns import tally

    found = tally(connection, number)
    closed = found.get("labelled", 0) + found.get("set aside", 0)
    if closed != counts["labelled"]:
        yield f"the tallies count {closed} closed items, there are {counts['labelled']}"
