"""An item inside a transaction: its log, view, leases and questions, and what to write of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from crowdtree.campaign import events as ev
from crowdtree.campaign.events import Event, Outcome, Reason, Response
from crowdtree.campaign.fold import extend
from crowdtree.campaign.view import ItemView, Status
from crowdtree.policies import Label
from crowdtree.server.store.db.campaign_row import flow
from crowdtree.server.store.db.statements import (
    ItemEventRow,
    ItemRow,
    LabelOfItem,
    Lease,
    LogLine,
    OpenQuestion,
)
from crowdtree.server.store.serving.campaign import (
    Revisions,
    ServedCampaign,
    moves_of,
    questions_of,
)
from crowdtree.server.store.types import ItemStatus, LeaseState, Votes, counted_votes

KINDS: dict[str, Callable[[ItemEventRow], ev.Event]] = {
    "held back": lambda row: ev.HeldBack(row.value or 0),
    "released": lambda _: ev.Released(),
    "concluded": lambda row: ev.Concluded(Reason(row.reason)),
    "checked": lambda row: ev.Checked(row.value or 0),
    "corrected": lambda row: ev.Corrected(row.value),
    "withdrawn": lambda _: ev.Withdrawn(),
    "reopened": lambda _: ev.Reopened(),
}
"""How events are read, by the name of their kind."""


def responses(log: Iterable[LogLine]) -> list[LogLine]:
    """Lines of a log that are about the label: not those to gold, nor unpaid ones."""
    return [line for line in log if Outcome(line.fate).about_label]


def response_of(line: LogLine) -> ev.Response:
    """Read a line of the log as an event."""
    if line.kind == "skip":
        return ev.Skipped(line.worker_id, line.question, weight=line.weight, seq=line.id)
    value = cast(int, line.value)
    return ev.Answered(line.worker_id, line.question, value, skill=line.skill, seq=line.id)


def written(event: ev.Event) -> tuple[str, int | None, str]:
    """Kind, number and reason of an event, as they are stored."""
    if isinstance(event, ev.HeldBack):
        return "held back", event.min_answers, ""
    if isinstance(event, ev.Concluded):
        return "concluded", None, str(event.reason)
    if isinstance(event, ev.Checked):
        return "checked", event.truth, ""
    if isinstance(event, ev.Corrected):
        return "corrected", event.label, ""
    return type(event).__name__.lower(), None, ""


def history(
    log: Sequence[LogLine], rows: Sequence[ItemEventRow], revision: int
) -> Iterator[ev.Event]:
    """Events of an item in their order, up to a revision of the campaign.

    A row came after so many lines of the log. Whatever came while the item was at a later revision
    comes after the change to it.
    """
    entries: list[tuple[int, int, LogLine | ItemEventRow]] = []
    entries += [(index + 1, 0, line) for index, line in enumerate(log)]
    entries += [(row.after, row.id, row) for row in rows]
    present = 0
    for _, _, entry in sorted(entries, key=lambda found: found[:2]):
        for number in range(present + 1, entry.revision + 1):
            yield ev.PolicyChanged(number)
        present = max(present, entry.revision)
        if isinstance(entry, ItemEventRow):
            yield KINDS[entry.kind](entry)
        elif Outcome(entry.fate).about_label:
            yield response_of(entry)
    for number in range(present + 1, revision + 1):
        yield ev.PolicyChanged(number)


COMPACT = json.JSONEncoder(separators=(",", ":"))
STATUSES = {
    Status.OPEN: ItemStatus.OPEN,
    Status.LABELLED: ItemStatus.LABELLED,
    Status.SET_ASIDE: ItemStatus.SET_ASIDE,
    Status.WITHDRAWN: ItemStatus.WITHDRAWN,
}
ENDED = (ItemStatus.LABELLED, ItemStatus.SET_ASIDE, ItemStatus.WITHDRAWN)
"""Statuses of items that are no longer asked about."""
SOME_LABEL = {
    ItemStatus.LABELLED: Label(0, 1.0, Reason.TARGET),
    ItemStatus.SET_ASIDE: Label(0, 1.0, Reason.SKIPPED),
}
"""In the place of the label of a closed item, where only that it has one is of interest."""


class QuestionChange(NamedTuple):
    """An open question to write; without a row it is new, with `needed` 0 it is deleted."""

    question: int
    row: int | None
    needed: int


class Loaded(NamedTuple):
    """How an item was when it was loaded."""

    status: ItemStatus
    view: ItemView
    held: bool
    started: bool


@dataclass
class LoadedItem:
    """An item, its leases and its open questions, and what has to be written of them."""

    id: int
    task: str
    status: ItemStatus
    gold: int | None
    campaign: ServedCampaign
    revisions: Revisions
    view: ItemView
    log: list[LogLine]
    """Answers and skips that the view is made of."""
    logged: int
    """Rows of the log about the item, also those that are not in the view."""
    label: LabelOfItem | None = None
    """The label that is stored, where it was read."""
    started: bool = False
    """Whether somebody was asked about it, or the owner gave it a label."""
    leases: dict[int, Lease] = field(default_factory=dict)
    questions: dict[int, OpenQuestion] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)
    """Places of the answers and skips that this transaction has added, among its answers."""
    changed: bool = False
    moves: Counter[str] = field(default_factory=Counter)
    """What this transaction changes of the tallies of the present tree."""
    needed: Counter[int] | None = None
    """What the open questions should be; `None` until that was computed."""
    loaded: Loaded = field(init=False)

    def __post_init__(self) -> None:
        self.loaded = Loaded(self.status, self.view, self.held, self.started)

    @property
    def closed(self) -> bool:
        """Whether the item has its label, was set aside or withdrawn."""
        return self.status in ENDED

    @property
    def held(self) -> bool:
        """Whether it could be labelled, but waits for an answer of a trusted worker."""
        return self.status == ItemStatus.OPEN and self.view.held_back

    @property
    def outstanding(self) -> list[int]:
        """Questions that workers hold and that still matter."""
        return [
            lease.question for lease in self.leases.values() if lease.state == LeaseState.ACTIVE
        ]

    @property
    def node(self) -> int | None:
        """The item's node in the tree, for policies that walk a tree."""
        return None if self.closed else self.campaign.policy.node(self.view.state)

    def take(self, response: Response) -> Outcome:
        """Take an answer or a skip; returns what becomes of it."""
        self.extend(response)
        return self.view.outcomes[-1]

    def extend(self, event: Event) -> None:
        """Let something happen to the item."""
        before, was_started = self.view, self.started
        self.view = extend(self.revisions, before, event)
        self.changed = True
        if self.gold is None:
            self.status = STATUSES[self.view.status]
        else:
            self.status = ItemStatus.WITHDRAWN if self.view.withdrawn else ItemStatus.GOLD
        reason = self.view.reason
        self.started |= self.status == ItemStatus.OPEN or (reason is not None and reason.has_label)
        if self.gold is None and self.campaign.policy.plan is not None:
            self.moves.update(_moves(self, before, was_started))

    def back_to_new(self) -> None:
        """Let an item about which nobody was ever asked wait for its first question again."""
        if self.status == ItemStatus.OPEN and not (self.loaded.started or self.view.corrected):
            self.status, self.started = ItemStatus.NEW, False
            self.moves.clear()

    def refresh(self) -> int:
        """Bring leases and open questions in line with the view; count the newly open ones."""
        policy = self.campaign.policy
        for lease in self.leases.values():
            if lease.state == LeaseState.ACTIVE and (
                self.closed or not policy.wants(self.view.state, lease.question)
            ):
                lease.become(LeaseState.WITHDRAWN)
        before: Mapping[int, int] | None = self.needed
        if before is None:
            before = {q: row.needed for q, row in self.questions.items()}
        self.needed = Counter()
        if self.status == ItemStatus.OPEN:
            self.needed.update(questions_of(self.campaign.present, self.view, self.outstanding))
        return sum(max(0, count - before.get(q, 0)) for q, count in self.needed.items())

    def withdraw_leases(self) -> None:
        """Withdraw the leases of questions that are no longer asked, or not as often."""
        asked = Counter(questions_of(self.campaign.present, self.view))
        for lease in sorted(self.leases.values(), key=lambda lease: lease.id):
            if lease.state == LeaseState.ACTIVE:
                if asked[lease.question]:
                    asked[lease.question] -= 1
                else:
                    lease.become(LeaseState.WITHDRAWN)

    def question_changes(self) -> Iterator[QuestionChange]:
        """Compare the open questions with their rows."""
        if self.needed is None:
            return
        for question, row in self.questions.items():
            same = row.known_only == self.held
            if self.needed[question] != row.needed or not same:
                yield QuestionChange(question, row.id, self.needed[question] if same else 0)
        for question, count in self.needed.items():
            there = self.questions.get(question)
            if there is None or there.known_only != self.held:
                yield QuestionChange(question, None, count)

    def row(self) -> dict[str, object]:
        """Write what changes of the item's row; the policy's state as JSON."""
        view, state = self.view, None
        if view.state is not None and self.started:
            policy = self.revisions[view.judged_by].policy
            state = COMPACT.encode(policy.dump(view.state))
        return {
            "id": self.id,
            "status": self.status,
            "state": state,
            "revision": view.revision,
            "judged_by": view.judged_by,
            "min_answers": view.min_answers,
            "reopened_after": view.reopened_after,
            "corrected": view.corrected,
        }


def load_view(
    campaign: ServedCampaign, row: ItemRow, log: Sequence[LogLine], label: LabelOfItem | None = None
) -> ItemView:
    """Make the view of an item from its snapshot and its answers and skips.

    The state of a closed item is not read: nothing goes on from it.
    """
    status = ItemStatus(row.status)
    blank, begun = campaign.blank, status not in (ItemStatus.NEW, ItemStatus.GOLD)
    state, given = blank.state, None
    if status in ENDED:
        state, given = None, _label_of(status, label)
    elif begun and row.state is not None and row.judged_by == campaign.revision:
        state = campaign.policy.load(json.loads(row.state))
    return ItemView(
        state,
        given,
        responses=tuple(map(response_of, log)),
        outcomes=tuple(Outcome(line.current_fate) for line in log),
        revision=row.revision if begun else blank.revision,
        judged_by=row.judged_by if begun else blank.judged_by,
        min_answers=row.min_answers,
        reopened_after=row.reopened_after,
        corrected=row.corrected,
        withdrawn=status == ItemStatus.WITHDRAWN,
        asked=None if begun else blank.asked,
    )


def _label_of(status: ItemStatus, label: LabelOfItem | None) -> Label | None:
    if status == ItemStatus.WITHDRAWN:
        return None
    return SOME_LABEL[status] if label is None else label.as_label()


def _moves(item: LoadedItem, before: ItemView, was_started: bool) -> Counter[str]:
    """What an event changes of the tallies of the present tree.

    An answer is one step at the most; whatever else happened to an item, its way is counted anew.
    """
    campaign, view = item.campaign, item.view
    found: Counter[str] = Counter()
    was = was_started and before.judged_by == campaign.revision
    now = item.started and view.judged_by == campaign.revision
    if was and now and len(view.outcomes) == len(before.outcomes) + 1:
        if before.state is not None:  # it was open
            left, came = (campaign.policy.node(state) for state in (before.state, view.state))
            if left is not None and came is not None and left != came:
                found[flow("out", left, campaign.revision)] += 1
                found[flow("in", came, campaign.revision)] += 1
    elif (view.outcomes, view.min_answers, now) != (before.outcomes, before.min_answers, was):
        found.update(moves_of(campaign, view) if now else ())
        found.subtract(moves_of(campaign, before) if was else ())
    return found


def lines_of(row: ItemRow, log: Iterable[LogLine]) -> list[LogLine]:
    """Lines of the log that make the view of an item; none of a gold item."""
    return responses(log) if row.gold is None else []


def path_of(names: Sequence[str], view: ItemView) -> list[Votes]:
    """Sum up how an item came to its label."""
    return counted_votes(
        names,
        (
            (response.question, _value(response), str(outcome))
            for response, outcome in view.with_outcomes()
        ),
    )


def _value(response: Response) -> int | None:
    return getattr(response, "value", None)
