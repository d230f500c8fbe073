"""What the database holds about an item, and where it differs from the fold of its log."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, Protocol, TypeVar

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Answered, Checked, Concluded, Outcome, Reason, Skipped
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import ItemView, Revision
from crowdtree.core.outcomes import DASH
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.serving.campaign import Revisions, ServedCampaign, questions_of
from crowdtree.server.store.serving.item import STATUSES, history, path_of, responses
from crowdtree.server.store.serving.settle import waited_in_vain
from crowdtree.server.store.types import ItemStatus, LeaseState

PAGE = 10_000
ITEMS_AFTER = Query(
    sql.ItemRow,
    f"""SELECT {", ".join(sql.ItemRow._fields)} FROM items
    WHERE +campaign_id = :campaign AND id > :after ORDER BY id LIMIT :most""",
)
"""The sign keeps SQLite from sorting all items of the campaign for every page."""


class StoredItem(NamedTuple):
    """What the database holds about one item."""

    row: sql.ItemRow
    log: list[sql.LogLine]
    events: list[sql.ItemEventRow]
    label: sql.LabelOfItem | None
    questions: list[sql.OpenQuestion]
    leases: list[sql.Lease]
    truth: int | None
    """True class that a check has found."""

    @property
    def status(self) -> ItemStatus:
        """How far the item is."""
        return ItemStatus(self.row.status)

    @property
    def gold(self) -> int | None:
        """The class of a gold item."""
        return self.row.gold


def item_pages(connection: Connection, campaign_id: int) -> Iterator[list[sql.ItemRow]]:
    """Read the rows of the items of a campaign, some thousands at a time."""
    after = 0
    while rows := fetch(connection, ITEMS_AFTER, campaign=campaign_id, after=after, most=PAGE):
        yield rows
        after = rows[-1].id


class _OfItem(Protocol):
    @property
    def item_id(self) -> int: ...


R = TypeVar("R", bound=_OfItem)


def by_item(rows: Iterable[R]) -> dict[int, list[R]]:
    """Sort rows by the item that they are about."""
    found: dict[int, list[R]] = {}
    for row in rows:
        found.setdefault(row.item_id, []).append(row)
    return found


RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Tolerances for floating-point numbers."""


def same(
    stored: object, replayed: object, relative: float = RELATIVE, absolute: float = ABSOLUTE
) -> bool:
    """Whether two JSON values agree, floating-point numbers within the tolerances.

    >>> same({"a": [0.1 + 0.2, 1]}, {"a": [0.3, 1]}), same([1], [2])
    (True, False)
    """
    if isinstance(stored, dict) and isinstance(replayed, dict):
        alike = (same(stored[key], replayed[key], relative, absolute) for key in stored)
        return stored.keys() == replayed.keys() and all(alike)
    if isinstance(stored, list) and isinstance(replayed, list):
        pairs = zip(stored, replayed, strict=False)
        return len(stored) == len(replayed) and all(
            same(one, other, relative, absolute) for one, other in pairs
        )
    if isinstance(stored, float) and isinstance(replayed, float | int):
        return math.isclose(stored, replayed, rel_tol=relative, abs_tol=absolute)
    return stored == replayed


LEASE_STATES = {
    "answer": (LeaseState.ANSWERED,),
    "skip": (LeaseState.SKIPPED,),
    "": (LeaseState.ACTIVE, LeaseState.EXPIRED, LeaseState.WITHDRAWN),
}
"""States that a lease can have by the kind of the line about it, or without a line."""


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
