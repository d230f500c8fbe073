"""Replay the log of a campaign and compare it with everything that the database stores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypedDict

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DatabaseError

from crowdtree.campaign.engine import (
    ItemState,
    advance,
    counted_answers,
    open_questions,
    start_item,
)
from crowdtree.core.problem import DASH
from crowdtree.policies import Label
from crowdtree.server.store.audits.feeding import checked_truths
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import get_campaign, read_policy, tally
from crowdtree.server.store.db.engine import is_sqlite
from crowdtree.server.store.db.sql import Sql, exists, fetch_one
from crowdtree.server.store.db.states import ITEM_STATUSES, ItemStatus, LeaseState
from crowdtree.server.store.db.tables import revisions
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.replay.audits import check_audits
from crowdtree.server.store.replay.monitors import check_monitor
from crowdtree.server.store.replay.plain import PlainReplay
from crowdtree.server.store.replay.reconcile import Sums, check_references, check_sums
from crowdtree.server.store.replay.stored import StoredItem, item_pages, stored_items
from crowdtree.server.store.replay.tolerance import same
from crowdtree.server.store.serving.cache import ServingCache
from crowdtree.server.store.serving.item import (
    CHECKED,
    CONCLUDED,
    CORRECTED,
    NEVER_ASKED,
    OUTSIDE_ENGINE,
    SET_ASIDE,
    UNCONFIRMED,
    WITHDRAWN,
    ServedCampaign,
    engine_lines,
    event_of,
    fates_to_replay,
    path_of,
    revised_fate,
)
from crowdtree.server.store.serving.newcomers import waited_in_vain

MOST_REPORTED = 100
BEFORE_THE_END = (*CONCLUDED, UNCONFIRMED)
"""Reasons of labels that were given before the policy gave one."""
CACHE_KIB = 64 * 1024
"""Page cache of SQLite: the check of a file goes back and forth between tables and indexes."""
Report = Callable[[int, int], None]
FINISH_NOTED = Sql(
    "SELECT 1 FROM activity WHERE campaign_id = :campaign AND action = 'finish' LIMIT 1"
)
LEASE_STATES = {
    "answer": (LeaseState.ANSWERED,),
    "skip": (LeaseState.SKIPPED,),
    "": (LeaseState.ACTIVE, LeaseState.EXPIRED, LeaseState.WITHDRAWN),
}
"""States that a lease can have by the kind of the line about it, or without a line."""


class Verification(TypedDict):
    """The result of a replay; `differences` is empty when everything agrees."""

    campaign: int
    items: int
    answers: int
    labelled: int
    agrees: bool
    differences: list[str]


def verify(
    connection: Connection, number: int, report: Report | None = None, *, plain: bool = True
) -> Verification:
    """Replay every item of a campaign and compare it with the database.

    On SQLite the file itself is checked first; if it is damaged, nothing is replayed. `report` is
    called with the items that are done and all items. Without `plain`, plain items are
    not replayed together but one by one, with the same result.

    Checked per item: each question handed out was one that the policy asked at some point of the
    log; the fate of every answer; the policy's state; when it stopped; the label with its error,
    reason and path; no vote got more answers than it takes and nobody counted twice; exactly the
    questions are open that the engine asks for. Checked per campaign: rows refer to each other
    consistently; counts, money and workers' records are the sums over the log; audits are the
    replay of their checks, and cover the labels that there are; what the answers say about the
    table, and the alarms, follow from the log.

    Withdrawn items are replayed as well, but have no label. Labels by hand are beside the replay;
    what counts of them is the last on record.

    Where the policy was revised, each item is replayed under the policy of its own revision:
    answers up to its revision with their fates decided anew, later ones as they came. Answers that
    were excluded in that revision are left out, as are skips from before an item was reopened.
    """
    damage = check_file(connection)
    if damage:
        return _result(number, damage)
    state = fetch_one(connection, sql.CAMPAIGNS, ids=[number])
    if state is None:
        raise NotFound(f"campaign {number} does not exist")
    campaign = ServingCache(lambda: 0.0, np.random.default_rng(0)).campaign(connection, state)
    differences = list(check_references(connection, number))
    served = _revisions(connection, campaign, differences)
    differences += _exclusions(campaign)
    done = not exists(connection, sql.REVISING, campaign=number)
    sums = Sums(campaign)
    quick = None
    if plain and not differences and PlainReplay.serves(campaign):
        quick = PlainReplay(campaign, sums)
    truths = checked_truths(connection, number)
    total = sum(tally(connection, number).get(status, 0) for status in ITEM_STATUSES)
    for rows in item_pages(connection, number):
        known = set() if quick is None else quick.take(connection, rows, truths)
        for stored in stored_items(connection, [r for r in rows if r.id not in known], truths):
            item = _replayed(served, stored, done)
            differences += [f"item {stored.task!r}: {text}" for text in item.differences]
            sums.add(stored, item.state)
        if report is not None:
            report(sums.items, total)
    if sums.finished and not exists(connection, FINISH_NOTED, campaign=number):
        differences.append("items were labelled by a finish that is not in the activity log")
    differences += check_sums(connection, campaign, sums)
    differences += check_audits(connection, number, list(campaign.problem.classes))
    differences += check_monitor(connection, number)
    return _result(number, differences, sums)


def _result(number: int, differences: list[str], sums: Sums | None = None) -> Verification:
    return {
        "campaign": number,
        "items": 0 if sums is None else sums.items,
        "answers": 0 if sums is None else sums.lines,
        "labelled": 0 if sums is None else sums.labelled,
        "agrees": not differences,
        "differences": differences[:MOST_REPORTED],
    }


def check_file(connection: Connection) -> list[str]:
    """Check the pages and the indexes of an SQLite file; PostgreSQL has tools of its own."""
    if not is_sqlite(connection):
        return []
    try:
        connection.exec_driver_sql(f"PRAGMA cache_size={-CACHE_KIB}")
        found = connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_REPORTED})").scalars()
        return [f"database file: {text}" for text in found if text != "ok"]
    except DatabaseError as error:
        return [f"database file: {error.orig}"]


def _revisions(
    connection: Connection, campaign: ServedCampaign, differences: list[str]
) -> list[ServedCampaign]:
    """Read the campaign under each of its policies, the present one last."""
    columns = (revisions.c.number, revisions.c.problem, revisions.c.policy)
    mine = sa.select(*columns).where(revisions.c.campaign_id == campaign.id)
    rows = connection.execute(mine.order_by(revisions.c.number)).all()
    if [row.number for row in rows] != list(range(campaign.revision + 1 if rows else 0)) or (
        bool(rows) != bool(campaign.revision)
    ):
        differences.append(f"it is at revision {campaign.revision}, which is not the last stored")
        return [replace(campaign, revision=k) for k in range(campaign.revision)] + [campaign]
    if rows:
        found = get_campaign(connection, campaign.id)
        last = (json.loads(rows[-1].problem), json.loads(rows[-1].policy))
        if last != (found.problem, found.policy):
            differences.append("its policy is not that of its last revision")
    earlier = [
        replace(
            campaign,
            revision=row.number,
            policy=read_policy(row.problem, row.policy).at_least(campaign.rules.people),
        )
        for row in rows[:-1]
    ]
    return [*earlier, campaign]


def _exclusions(campaign: ServedCampaign) -> Iterator[str]:
    """Check that exclusions were made and lifted by revisions, in this order."""
    for found in campaign.exclusions:
        lifted = found.lifted_revision
        end = campaign.revision + 1 if lifted is None else lifted
        if not 1 <= found.revision < end <= campaign.revision + (lifted is None):
            yield f"answers of worker {found.worker_id} are excluded by no revision"


# ------------------------------------------------------------------------------ one item


@dataclass
class Replayed:
    """An item as its log makes it, and where the database differs."""

    state: ItemState
    differences: list[str]


def _replayed(served: Sequence[ServedCampaign], stored: StoredItem, done: bool) -> Replayed:
    """Replay an item; `done` says that no revision is under way."""
    present = served[-1]
    if stored.gold is not None:
        blank = start_item(present.policy, stored.task)
        return Replayed(blank, [*_gold(present, stored), *_lease_lines(stored)])
    revised = bool(stored.revision or stored.reopened_after)
    if not 0 <= stored.revision < len(served) or (stored.revised_after and not revised):
        blank = start_item(present.policy, stored.task)
        return Replayed(blank, [f"is at revision {stored.revision}, which cannot be"])
    # A new item gets the policy that is the present one when its first question is handed out.
    campaign = present if stored.status == ItemStatus.NEW else served[stored.revision]
    differences: list[str] = []
    if stored.revision < present.revision and done and _should_be_revised(present, stored):
        differences.append(f"is at revision {stored.revision}, but the revision is finished")
    if stored.reopened_after > stored.revised_after:
        differences.append("was reopened, but its log was not replayed then")
    visited = _visited(campaign, stored, differences)
    item = visited[-1]
    differences += _lease_lines(stored)
    differences += _asked(served[: stored.revision], campaign, stored, visited)
    differences += _counted(campaign, item)
    differences += _label(campaign, item, stored)
    if stored.state is not None:
        if not same(json.loads(stored.state), campaign.policy.dump(item.state)):
            differences.append("its state is not the replay of its answers")
    elif item.answers:
        differences.append("has answers, but no state")
    differences += _open(campaign, item, stored)
    return Replayed(item, differences)


def _visited(
    campaign: ServedCampaign, stored: StoredItem, differences: list[str]
) -> list[ItemState]:
    """Replay the log; returns every state of the item, the present one last."""
    visited = _revised(campaign, stored)
    differences += _revised_fates(stored, visited[-1])
    concluded = stored.label is not None and stored.label.reason in (*BEFORE_THE_END, WITHDRAWN)
    over = False
    for line in stored.log:
        if line.id <= stored.revised_after:
            continue
        if line.revised_fate is not None:
            differences.append(
                f"{line.kind} of worker {line.worker_id} was revised, but came later"
            )
        item, fate = visited[-1], line.fate
        if fate == "over budget":
            continue
        if fate in OUTSIDE_ENGINE:
            differences.append("is not gold, but has an answer to gold")
            continue
        if fate == "late" and (line.kind == "skip" or (concluded and item.label is None)):
            over = True  # it came after the label, or after the item was closed from outside
            continue
        what = f"{line.kind} of worker {line.worker_id} was {fate}"
        if over and fate != "late":
            differences.append(f"{what} after the item was closed")
        item = advance(campaign.policy, item, event_of(campaign, stored.task, line), campaign.rules)
        if item.fates[-1] != fate:
            differences.append(f"{what}, replayed {item.fates[-1]}")
        visited.append(item)
    return visited


def _should_be_revised(present: ServedCampaign, stored: StoredItem) -> bool:
    """Whether an item has answers and was not closed from outside, or lost or regained answers."""
    if stored.status == ItemStatus.WITHDRAWN:
        return False
    finished = stored.label is not None and stored.label.reason in (*CONCLUDED, CHECKED)
    closed = stored.status == ItemStatus.SET_ASIDE or finished
    return present.changed_since(stored.revision, stored.log) or (not closed and bool(stored.log))


def _revised(
    campaign: ServedCampaign, stored: StoredItem, least: int | None = None
) -> list[ItemState]:
    """Replay the lines that were replayed when the item was revised, whatever became of them."""
    least = stored.least if least is None else least
    visited = [replace(start_item(campaign.policy, stored.task), least=least)]
    lines = _revised_lines(stored)
    fates = fates_to_replay(campaign, lines, stored.reopened_after)
    for line, fate in zip(lines, fates, strict=True):
        item, event = visited[-1], event_of(campaign, stored.task, line)
        if fate == "excluded":
            item = replace(item, events=(*item.events, event), fates=(*item.fates, fate))
        else:
            item = advance(campaign.policy, item, event, campaign.rules)
        visited.append(item)
    return visited


def _revised_lines(stored: StoredItem) -> list[sql.LogLine]:
    return engine_lines(line for line in stored.log if line.id <= stored.revised_after)


def _revised_fates(stored: StoredItem, item: ItemState) -> Iterator[str]:
    """Compare what became of each answer since it came."""
    for line, fate in zip(_revised_lines(stored), item.fates, strict=True):
        if line.revised_fate != revised_fate(line.fate, fate):
            yield (
                f"{line.kind} of worker {line.worker_id} is {line.current_fate} since the "
                f"revision, replayed {fate}"
            )


def _lease_lines(stored: StoredItem) -> Iterator[str]:
    """Compare each lease with its line of the log, if it has one."""
    lines: dict[int, list[str]] = {}
    for line in stored.log:
        lines.setdefault(line.lease_id, []).append(line.kind)
    for lease in stored.leases:
        kinds = lines.pop(lease.id, [""])
        what = f"lease {lease.id} (worker {lease.worker_id}, question {lease.question})"
        if len(kinds) > 1:
            yield f"{what} has the lines {', '.join(kinds)}: expected one answer or skip"
        if lease.state not in LEASE_STATES.get(kinds[-1], ()):
            yield f"{what} is in state {lease.state}, but its line is {kinds[-1]!r}"
    for number in lines:
        yield f"has answers to lease {number}, which is not one of its leases"


def _gold(campaign: ServedCampaign, stored: StoredItem) -> Iterator[str]:
    if stored.status == ItemStatus.WITHDRAWN:
        yield from _withdrawn(stored)
    elif stored.label is not None:
        yield "is gold, but has a label"
    if stored.questions or stored.status not in (ItemStatus.GOLD, ItemStatus.WITHDRAWN):
        yield "is gold, but is treated like an ordinary item"
    for line in stored.log:
        if line.fate != "gold":
            yield f"is gold, but an answer to it was {line.fate}"
    for lease in stored.leases:
        if campaign.problem.outcome[lease.question, stored.gold] == DASH:
            yield f"is gold, but question {lease.question} has no right answer there"


def _asked(
    earlier: Sequence[ServedCampaign],
    campaign: ServedCampaign,
    stored: StoredItem,
    visited: list[ItemState],
) -> Iterator[str]:
    """Check that each question handed out was asked at some point of the log.

    Before a revision, by one of the earlier policies. Which skips counted when a question of a
    reopened item was handed out is not known: the log keeps only the last time it was reopened.
    """
    free = any(some.policy.has_alternatives for some in (campaign, *earlier))
    if stored.reopened_after and free:
        return
    left = list(_unasked(campaign, stored.leases, visited))
    # How long labels waited before the last revision is not known: as long as there are answers.
    waited = len(stored.log) + 1 if campaign.settings.labels.require_trusted_answer else 0
    for before in (campaign, *reversed(earlier)) if waited else reversed(earlier):
        for least in {0, waited}:
            if left:
                again = _revised(before, stored, least)
                left = list(_unasked(before, [lease for lease, _ in left], again))
    yield from (text for _, text in left)


def _unasked(
    campaign: ServedCampaign, leases: Sequence[sql.Lease], visited: list[ItemState]
) -> Iterator[tuple[sql.Lease, str]]:
    """Find leases on questions that a policy never asked, with words."""
    policy, rules = campaign.policy, campaign.rules
    if not policy.has_alternatives:
        due = {
            question
            for item in visited
            if item.label is None
            for question in range(policy.problem.n_questions)
            if policy.wants(item.state, question)
        }
        for lease in leases:
            if lease.question not in due:
                text = f"question {lease.question} was handed out, but the tree never came to it"
                yield lease, text
        return
    if policy.width != 1:
        return  # what is asked then depends on leases at the time, which the log does not keep
    rules = replace(rules, people=1)  # whom answers lacked depends on what counted at the time
    usual = {q for item in visited for q in open_questions(policy, item, rules=rules)}
    for lease in leases:
        if lease.question in usual:
            continue
        worker = lease.worker_id
        mine = (open_questions(policy, item, (), str(worker), rules) for item in visited)
        if not any(lease.question in found for found in mine):
            text = f"question {lease.question} was handed to worker {worker}, "
            yield lease, text + "but was never the best to ask"


def _counted(campaign: ServedCampaign, item: ItemState) -> Iterator[str]:
    """Check that nobody counts twice, and that no vote has more answers than it takes."""
    policy = campaign.policy.at_least(max(campaign.rules.people, item.least, 1))
    state, votes = policy.start(), Counter[int | None]()
    seen: Counter[tuple[str, int]] = Counter()
    for event, answer in counted_answers(item, campaign.rules):
        votes[policy.node(state)] += 1
        seen[event.worker, event.question] += 1
        state = policy.update(state, answer)
    for (worker, question), count in seen.items():
        if count > 1:
            yield f"worker {worker} was counted {count} times on question {question}"
    if policy.voted is not None:
        if policy.voted.vote == "margin" or policy.least_answers > 1:
            return  # no fixed number of answers; the replay finds the end
        for node, count in votes.items():
            if node is not None and node >= 0 and count > int(policy.voted.votes[node]):
                yield f"node {node} has {count} answers for {int(policy.voted.votes[node])} votes"
        return
    most = policy.max_answers
    if most is not None and sum(votes.values()) > max(most, item.least):
        yield f"has {sum(votes.values())} answers, at most {most} are allowed"


def _withdrawn(stored: StoredItem) -> Iterator[str]:
    """Check that a withdrawn item has an entry that says so, and no label."""
    label = stored.label
    there = None if label is None else (label.label, label.posterior_error, label.reason)
    if there != (None, None, WITHDRAWN):
        yield f"is withdrawn, but has the label {there}"


def _label(campaign: ServedCampaign, item: ItemState, stored: StoredItem) -> Iterator[str]:
    label, status = stored.label, stored.status
    if status == ItemStatus.WITHDRAWN:
        yield from _withdrawn(stored)
        return
    closed = status in (ItemStatus.LABELLED, ItemStatus.SET_ASIDE)
    if closed != (label is not None):
        yield f"is {status.label}, but {'has a' if label is not None else 'has no'} label"
    if label is None:
        if item.label is not None:
            yield f"should be labelled {campaign.problem.classes[item.label.label]}"
        return
    cls, error, reason = label.label, label.posterior_error, label.reason
    if reason == CORRECTED and stored.corrected is None:
        yield "was closed because of a label by hand, but has none"
    if closed and (status == ItemStatus.SET_ASIDE) != (reason in SET_ASIDE):
        yield f"is {status.label} with reason {reason!r}"
    if reason == UNCONFIRMED:
        before = sum(line.id <= stored.reopened_after for line in engine_lines(stored.log))
        if not waited_in_vain(campaign, item, before):
            yield f"is set aside as {reason}, but {item.answers} answers are not enough for that"
    expected: Label | None = item.label
    if reason == CHECKED and stored.truth is not None:
        expected = Label(stored.truth, 0.0, CHECKED)
    if expected is None and reason in BEFORE_THE_END:
        expected = campaign.policy.conclude(item.state, reason)
    if expected is None:
        if reason != NEVER_ASKED or stored.log or cls is not None or error is not None:
            yield f"has a label ({reason}) that its answers do not give"
        return
    if (cls, reason) != (expected.label, expected.reason):
        yield f"has label {cls} ({reason}), replayed {expected.label} ({expected.reason})"
    if error is None or not same(float(error), expected.posterior_error):
        yield f"has posterior error {error}, replayed {expected.posterior_error}"
    if label.answers != item.answers:
        yield f"says {label.answers} answers, replayed {item.answers}"
    if not same(json.loads(label.path), path_of(campaign.problem.questions, item)):
        yield "has a path that is not the replay of its answers"


def _open(campaign: ServedCampaign, item: ItemState, stored: StoredItem) -> Iterator[str]:
    """Check that exactly the questions are open that the engine asks for beside those held."""
    there = Counter({row.question: row.needed for row in stored.questions})
    held = [row.question for row in stored.leases if row.state == LeaseState.ACTIVE]
    if stored.status != ItemStatus.OPEN:
        if stored.questions:
            yield f"is {stored.status.label}, but still has open questions"
        if held:
            yield f"is {stored.status.label}, but workers still hold questions"
        if stored.status == ItemStatus.NEW and stored.log:
            yield "is new, but has answers"
        return
    policy = campaign.policy
    known_only = item.least > item.answers
    if any(row.known_only != known_only for row in stored.questions):
        yield f"has questions that {'are not' if known_only else 'are'} for known workers only"
    choices = _could_be_open(campaign, item, held)
    expected = next(choices)
    if there != expected and there not in choices:
        yield f"has {dict(there)} open and {held} held, expected {dict(expected)} open"
    total = Counter(open_questions(policy, item, (), rules=campaign.rules))
    if not policy.has_alternatives and Counter(held) - total:
        yield f"has questions {held} held, expected at most {dict(total)}"
    if policy.width is not None and policy.max_answers is not None:
        most = max(policy.max_answers, policy.least_answers, item.least)
        most = min(policy.width, most - item.answers)
        if len(held) + there.total() > most:
            yield f"has {len(held) + there.total()} questions open or held, at most {most} matter"


def _could_be_open(
    campaign: ServedCampaign, item: ItemState, held: Sequence[int]
) -> Iterator[Counter[int]]:
    """Questions that may be open beside those held, first those that the engine asks for now.

    An adaptive policy with several questions out chooses each beside the others. A question that
    is handed out since they were chosen does not change the rest, though the engine might now
    choose another beside it.
    """
    policy, rules = campaign.policy, campaign.rules
    wide = policy.width is not None and policy.width > 1
    for n in range(len(held), -1 if wide else len(held) - 1, -1):
        for before in combinations(held, n):
            chosen = Counter(open_questions(policy, item, before, rules=rules))
            since = Counter(held) - Counter(before)
            if since <= chosen:
                yield chosen - since
