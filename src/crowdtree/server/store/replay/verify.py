"""Replay the log of a campaign and compare it with everything that the database stores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DatabaseError

from crowdtree.campaign.events import Answered, Checked, Concluded, Outcome, Reason, Skipped
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import ItemView, Revision
from crowdtree.core.problem import DASH
from crowdtree.server.store.audits.checking import checked_truths
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import get_campaign, tally
from crowdtree.server.store.db.engine import is_sqlite
from crowdtree.server.store.db.sql import Sql, exists, fetch_one
from crowdtree.server.store.db.tables import revisions
from crowdtree.server.store.replay.audits import check_audits, check_monitor
from crowdtree.server.store.replay.items import StoredItem, item_pages, same, stored_items
from crowdtree.server.store.replay.plan_fold import PlanFold
from crowdtree.server.store.replay.sums import Sums, check_references, check_sums
from crowdtree.server.store.serving.campaign import (
    Revisions,
    ServedCampaign,
    load_campaign,
    questions_of,
)
from crowdtree.server.store.serving.item import STATUSES, history, path_of, responses
from crowdtree.server.store.serving.settle import waited_in_vain
from crowdtree.server.store.serving.unit_of_work import policy_of_revision
from crowdtree.server.store.types import ITEM_STATUSES, ItemStatus, LeaseState

MAX_REPORTED = 100
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
    """Fold the log of every item of a campaign and compare it with the database.

    On SQLite the file itself is checked first; if it is damaged, nothing is replayed. `report` is
    called with the items that are done and all items. Without `plain`, plain items are
    not replayed together but one by one, with the same result.

    Checked per item: each question handed out was one that the policy asked at some point of the
    log; the fate of every answer, and what its worker was told; the policy's state; when it
    stopped; the label with its error, reason and path; exactly the questions are open that are
    asked for. Checked per campaign:
    rows refer to each other consistently; counts, money and workers' records are the sums over the
    log; audits are the replay of their checks, and cover the labels that there are; what the
    answers say about the table, and the alarms, follow from the log.
    """
    damage = check_file(connection)
    if damage:
        return _result(number, damage)
    campaign = load_campaign(connection, number)
    differences = list(check_references(connection, number))
    lost = _lost_revisions(connection, campaign)
    if lost:
        return _result(number, [*differences, lost])
    differences += _last_revision(connection, campaign)
    differences += _exclusions(campaign)
    past = Revisions(campaign, partial(policy_of_revision, connection, number))
    done = not exists(connection, sql.REVISING, campaign=number)
    sums = Sums(campaign)
    quick = None
    if plain and not differences and PlanFold.serves(campaign):
        quick = PlanFold(campaign, sums)
    truths = checked_truths(connection, number)
    total = sum(tally(connection, number).get(status, 0) for status in ITEM_STATUSES)
    for rows in item_pages(connection, number):
        known = set() if quick is None else quick.take(connection, rows, truths)
        for stored in stored_items(connection, [r for r in rows if r.id not in known], truths):
            folded = Folded(campaign, past, stored)
            texts = folded.differences(done)
            differences += [f"item {stored.row.task!r}: {text}" for text in texts]
            sums.add(stored, folded.view)
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
        "differences": differences[:MAX_REPORTED],
    }


def check_file(connection: Connection) -> list[str]:
    """Check the pages and the indexes of an SQLite file; PostgreSQL has tools of its own."""
    if not is_sqlite(connection):
        return []
    try:
        connection.exec_driver_sql(f"PRAGMA cache_size={-CACHE_KIB}")
        found = connection.exec_driver_sql(f"PRAGMA integrity_check({MAX_REPORTED})").scalars()
        return [f"database file: {text}" for text in found if text != "ok"]
    except DatabaseError as error:
        return [f"database file: {error.orig}"]


def _lost_revisions(connection: Connection, campaign: ServedCampaign) -> str:
    """Say whether a revision is missing, without which nothing can be folded."""
    mine = sa.select(revisions.c.number).where(revisions.c.campaign_id == campaign.id)
    numbers = list(connection.execute(mine.order_by(revisions.c.number)).scalars())
    if numbers == (list(range(campaign.revision + 1)) if campaign.revision else []):
        return ""
    return f"it is at revision {campaign.revision}, which is not the last stored"


def _last_revision(connection: Connection, campaign: ServedCampaign) -> Iterator[str]:
    """Check that the campaign's policy is that of its last revision."""
    if not campaign.revision:
        return
    values = {"campaign": campaign.id, "revision": campaign.revision}
    row = fetch_one(connection, sql.POLICY_OF_REVISION, **values)
    last = row and (json.loads(row.problem), json.loads(row.policy))
    present = get_campaign(connection, campaign.id)
    if last != (present.problem, present.policy):
        yield "its policy is not that of its last revision"


def _exclusions(campaign: ServedCampaign) -> Iterator[str]:
    """Check that exclusions were made and lifted by revisions, in this order."""
    for found in campaign.exclusions:
        lifted = found.lifted_revision
        end = campaign.revision + 1 if lifted is None else lifted
        if not 1 <= found.revision < end <= campaign.revision + (lifted is None):
            yield f"answers of worker {found.worker_id} are excluded by no revision"


# ------------------------------------------------------------------------------ one item


class Folded:
    """An item as the fold of its log makes it."""

    def __init__(self, campaign: ServedCampaign, past: Revisions, stored: StoredItem) -> None:
        self.campaign, self.past, self.stored = campaign, past, stored
        self.told: list[Outcome] = []
        """What became of each answer and skip when it came."""
        self.wrong: list[str] = []
        self.revision = min(max(stored.row.revision, 0), campaign.revision)
        view = replace(begin(campaign.present), judged_by=campaign.revision)
        self.visited = [view]
        """Every view of the item, the last one last."""
        if stored.gold is None and stored.status != ItemStatus.NEW:
            self._fold()

    @property
    def view(self) -> ItemView:
        """The view after all events."""
        return self.visited[-1]

    def _fold(self) -> None:
        stored = self.stored
        if self.revision != stored.row.revision:
            self.wrong.append(f"is at revision {stored.row.revision}, which cannot be")
        self.visited = [begin(self.past[0])]
        came = [line.revision for line in stored.log] + [row.revision for row in stored.events]
        last = max(came, default=0)
        if last > self.revision:
            self.wrong.append(f"is at revision {self.revision}, but something came at {last}")
            self.revision = min(last, self.campaign.revision)
        for event in history(stored.log, stored.events, self.revision):
            before = self.view
            self.visited.append(extend(self.past, before, event))
            if isinstance(event, Answered | Skipped):
                self.told.append(self.view.outcomes[-1])
            elif isinstance(event, Checked) and event.truth != stored.truth:
                self.wrong.append(f"was found to be class {event.truth}, which no check says")
            elif (
                isinstance(event, Concluded)
                and event.reason is Reason.UNCONFIRMED
                and not waited_in_vain(self.campaign, before)
            ):
                few = f"{before.answers} answers are not enough for that"
                self.wrong.append(f"is set aside as unconfirmed, but {few}")

    def differences(self, done: bool) -> Iterator[str]:
        """Say where the database differs; `done` says that no revision is under way."""
        stored, view = self.stored, self.view
        yield from self.wrong
        yield from _lease_lines(stored)
        if stored.gold is not None:
            yield from _gold(self.campaign, stored)
            return
        if stored.status == ItemStatus.NEW:
            if stored.log or stored.label is not None or stored.questions:
                yield "is new, but has answers, a label or open questions"
            return
        answered = stored.log or stored.events  # otherwise its first answer revises it
        if done and answered and stored.row.is_behind(self.campaign.revision):
            yield f"is at revision {stored.row.revision}, but the revision is finished"
        yield from self._outcomes()
        yield from self._snapshot()
        yield from _asked(self.past, stored, self.visited)
        yield from _label(self.campaign, view, stored)
        if view.judged_by == self.campaign.revision or stored.status != ItemStatus.OPEN:
            yield from _open(self.campaign, view, stored)

    def _outcomes(self) -> Iterator[str]:
        """Compare what became of each answer, and what its worker was told."""
        lines = responses(self.stored.log)
        for line in self.stored.log:
            if line.fate == Outcome.GOLD:
                yield "is not gold, but has an answer to gold"
        for line, told, outcome in zip(lines, self.told, self.view.outcomes, strict=True):
            what = f"{line.kind} of worker {line.worker_id}"
            if line.fate != told:
                yield f"{what} was {line.fate}, replayed {told}"
            elif line.current_fate != outcome:
                yield f"{what} is {line.current_fate} since the revision, replayed {outcome}"

    def _snapshot(self) -> Iterator[str]:
        """Compare the row of the item."""
        stored, view = self.stored, self.view
        for name in ("judged_by", "min_answers", "reopened_after", "corrected"):
            there, expected = getattr(stored.row, name), getattr(view, name)
            if there != expected:
                yield f"{name} is {there}, replayed {expected}"
        expected_status = STATUSES[view.status]
        if stored.status != expected_status:
            yield f"is {stored.status.label}, replayed {expected_status.label}"
        if stored.row.state is not None:
            policy = self.past[view.judged_by].policy
            if not same(json.loads(stored.row.state), policy.dump(view.state)):
                yield "its state is not the replay of its answers"
        elif view.answers:
            yield "has answers, but no state"


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
        if line.fate != Outcome.GOLD:
            yield f"is gold, but an answer to it was {line.fate}"
    for lease in stored.leases:
        if campaign.problem.outcome[lease.question, stored.gold] == DASH:
            yield f"is gold, but question {lease.question} has no right answer there"


def _asked(past: Revisions, stored: StoredItem, visited: Sequence[ItemView]) -> Iterator[str]:
    """Check that each question handed out was asked at some point of the log."""
    left = list(stored.leases)
    for number in dict.fromkeys(view.judged_by for view in visited):
        if left:
            views = [view for view in visited if view.judged_by == number and not view.closed]
            left = _unasked(past[number], left, views)
    for lease in left:
        yield f"question {lease.question} was handed to worker {lease.worker_id}, but never asked"


def _unasked(
    revision: Revision, leases: Sequence[sql.Lease], views: Sequence[ItemView]
) -> list[sql.Lease]:
    """Find leases on questions that a revision never asked."""
    policy = revision.policy
    if not policy.has_alternatives:
        questions = range(policy.problem.n_questions)
        due = {q for view in views for q in questions if policy.wants(view.state, q)}
        return [lease for lease in leases if lease.question not in due]
    if policy.width != 1:
        return []  # what is asked then depends on leases at the time, which the log does not keep
    # whom answers lacked depends on who held a question at the time
    revision = replace(revision, rules=replace(revision.rules, people=1))
    usual = {q for view in views for q in questions_of(revision, view)}
    return [
        lease
        for lease in leases
        if lease.question not in usual
        and not any(
            lease.question in questions_of(revision, view, (), lease.worker_id) for view in views
        )
    ]


def _withdrawn(stored: StoredItem) -> Iterator[str]:
    """Check that a withdrawn item has an entry that says so, and no label."""
    label = stored.label
    there = None if label is None else (label.label, label.posterior_error, label.reason)
    if there != (None, None, Reason.WITHDRAWN):
        yield f"is withdrawn, but has the label {there}"


def _label(campaign: ServedCampaign, view: ItemView, stored: StoredItem) -> Iterator[str]:
    there, expected = stored.label, view.label
    if view.withdrawn:
        yield from _withdrawn(stored)
        return
    if there is None or expected is None:
        if (there is None) != (expected is None):
            yield f"{'has no' if there is None else 'has a'} label, unlike its replay"
        return
    if not Reason(expected.reason).has_label:
        if (there.label, there.posterior_error, there.reason) != (None, None, expected.reason):
            yield f"has label {there.label} ({there.reason}), replayed none ({expected.reason})"
        return
    if (there.label, there.reason) != (expected.label, expected.reason):
        yield (
            f"has label {there.label} ({there.reason}), replayed {expected.label} "
            f"({expected.reason})"
        )
    error = there.posterior_error
    if error is None or not same(float(error), expected.posterior_error):
        yield f"has posterior error {error}, replayed {expected.posterior_error}"
    if there.answers != view.answers:
        yield f"says {there.answers} answers, replayed {view.answers}"
    if not same(json.loads(there.path), path_of(campaign.problem.questions, view)):
        yield "has a path that is not the replay of its answers"


def _open(campaign: ServedCampaign, view: ItemView, stored: StoredItem) -> Iterator[str]:
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
    known_only = view.held_back
    if any(row.known_only != known_only for row in stored.questions):
        yield f"has questions that {'are not' if known_only else 'are'} for known workers only"
    choices = _could_be_open(campaign, view, held)
    expected = next(choices)
    if there != expected and there not in choices:
        yield f"has {dict(there)} open and {held} held, expected {dict(expected)} open"
    total = Counter(questions_of(campaign.present, view))
    if not policy.has_alternatives and Counter(held) - total:
        yield f"has questions {held} held, expected at most {dict(total)}"
    if policy.width is not None and policy.max_answers is not None:
        most = max(policy.max_answers, policy.least_answers, view.min_answers)
        most = min(policy.width, most - view.answers)
        if len(held) + there.total() > most:
            yield f"has {len(held) + there.total()} questions open or held, at most {most} matter"


def _could_be_open(
    campaign: ServedCampaign, view: ItemView, held: Sequence[int]
) -> Iterator[Counter[int]]:
    """Questions that may be open beside those held, first those that the engine asks for now.

    An adaptive policy with several questions out chooses each beside the others. A question that
    is handed out since they were chosen does not change the rest, though the engine might now
    choose another beside it.
    """
    policy = campaign.policy
    wide = policy.width is not None and policy.width > 1
    for n in range(len(held), -1 if wide else len(held) - 1, -1):
        for before in combinations(held, n):
            chosen = Counter(questions_of(campaign.present, view, before))
            since = Counter(held) - Counter(before)
            if since <= chosen:
                yield chosen - since
