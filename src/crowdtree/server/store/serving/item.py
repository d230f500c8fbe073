"""An item inside a transaction: engine state, leases, open questions and what to write of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, cast

from crowdtree.campaign.engine import (
    Event,
    Fate,
    ItemState,
    Kind,
    Rules,
    advance,
    counted_answers,
    open_questions,
    replay_item,
    stands,
    start_item,
)
from crowdtree.core.problem import Problem
from crowdtree.io.items import MEDIA, is_address, visible
from crowdtree.policies import Label
from crowdtree.server.settings.model import Settings
from crowdtree.server.store.db.campaign_row import flow
from crowdtree.server.store.db.statements import Exclusion, GoldItem, Lease, LogLine, OpenQuestion
from crowdtree.server.store.db.states import ItemStatus, LeaseState
from crowdtree.server.store.derived import file_name, item_name
from crowdtree.server.store.reliability import Level, carried_skill
from crowdtree.server.store.serving.commands import Task
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.store.votes import Votes, counted_votes

COMPACT = json.JSONEncoder(separators=(",", ":"))
CLOSED = Label(0, 1.0, "closed")
"""Placeholder for the label of a closed item: the engine only checks that there is one."""
OUTSIDE_ENGINE = ("gold", "over budget")
"""Fates of answers that the engine is not shown."""
NO_WORKERS = "no workers"
"""Reason of an item that was set aside because nobody was left who could answer."""
UNCONFIRMED = "unconfirmed"
"""Reason of an item that was set aside because its label waited in vain for somebody known."""
NEVER_ASKED = "never asked"
"""Reason of an item that was set aside because the campaign was finished before it was asked."""
FINISHED = "finished"
"""Reason of a label that was given because the owner finished the campaign."""
CHECKED = "checked"
"""Reason of a label that is the true class, as a check of an audit has found."""
CORRECTED = "corrected"
"""Reason of a label on the evidence so far, of an item that the owner has labelled by hand."""
WITHDRAWN = "withdrawn"
"""Reason of an item without a label, because the owner has withdrawn it."""
FINAL = (FINISHED, CHECKED)
"""Reasons of labels that no other policy changes."""
CONCLUDED = (FINISHED, NO_WORKERS, CORRECTED)
"""Reasons of labels that were given on the evidence so far, and are kept in a revision."""
SET_ASIDE = ("skipped", NEVER_ASKED, NO_WORKERS, UNCONFIRMED)
"""Reasons of items that are set aside; all others are labelled or withdrawn."""
ENDED = (ItemStatus.LABELLED, ItemStatus.SET_ASIDE, ItemStatus.WITHDRAWN)
"""Statuses of items that are no longer asked about."""
UNLABELLED = (NEVER_ASKED, WITHDRAWN)
"""Reasons of entries without a class and a stated error."""


class Naming(Protocol):
    """What decides how the items of a campaign are named for workers."""

    @property
    def settings(self) -> Settings:
        """The settings of the campaign."""
        ...

    @property
    def secret(self) -> str:
        """The secret of the campaign."""
        ...


@dataclass
class ServedCampaign:
    """A campaign as the serving cache holds it."""

    id: int
    version: int
    revision: int
    policy: AnyPolicy
    settings: Settings
    rules: Rules
    gold: list[GoldItem]
    """Items of known class with which workers are checked."""
    training: Sequence[GoldItem] = ()
    """Items of known class with which workers practise."""
    secret: str = field(default="", repr=False)
    exclusions: Sequence[Exclusion] = ()
    """All that were ever made, those that were lifted included."""
    levels: Sequence[Level] = ()
    """Tables that skills are relative to, by revision; none of those from before they were kept."""
    status: str = "draft"
    status_reason: str = ""

    @property
    def problem(self) -> Problem:
        """The campaign's problem."""
        return self.policy.problem

    @cached_property
    def blank(self) -> ItemState:
        """An item without a name, about which nothing is known."""
        return start_item(self.policy, "")

    @cached_property
    def first_questions(self) -> tuple[int, ...]:
        """What is asked first about an item."""
        return open_questions(self.policy, self.blank)

    def excludes(self, line: LogLine) -> bool:
        """Whether a line of the log is excluded in the campaign's revision."""
        return any(
            found.holds(self.revision) and found.covers(line.worker_id, line.id)
            for found in self.exclusions
        )

    def carried(self, skill: float, line: int) -> float:
        """Skill of an answer under the table of the campaign's revision."""
        if not skill or not self.levels:
            return skill
        levels = [found for found in self.levels if found.revision <= self.revision]
        known = bool(levels) and levels[-1].revision == self.revision
        return carried_skill(skill, line, levels) if known else skill

    def has_excluded(self, worker: int) -> bool:
        """Whether answers of a worker are excluded in the campaign's revision."""
        return any(
            found.worker_id == worker and found.holds(self.revision) for found in self.exclusions
        )

    def changed_since(self, revision: int, log: Iterable[LogLine]) -> bool:
        """Whether lines of an item were excluded or included again after a revision."""
        changed = [found for found in self.exclusions if found.changed_after(revision)]
        return bool(changed) and any(
            found.covers(line.worker_id, line.id) for line in log for found in changed
        )


class QuestionChange(NamedTuple):
    """An open question to write; without a row it is new, with `needed` 0 it is deleted."""

    question: int
    row: int | None
    needed: int


@dataclass
class OpenItem:
    """An item, its leases and its open questions, and what has to be written of them."""

    id: int
    task: str
    status: ItemStatus
    gold: int | None
    campaign: ServedCampaign
    item: ItemState
    revision: int
    revised_after: int
    reopened_after: int
    reopened_at: int = 0
    """Events before it was reopened last."""
    corrected: int | None = None
    """Class that the owner gave it by hand."""
    leases: dict[int, Lease] = field(default_factory=dict)
    questions: dict[int, OpenQuestion] = field(default_factory=dict)
    was_held: bool = False
    """Whether its label waited when it was loaded."""
    changed: bool = False
    label: Label | None = None
    needed: Counter[int] | None = None
    """What the open questions should be; ``None`` until that was computed."""

    @property
    def closed(self) -> bool:
        """Whether the item has its label, was set aside or withdrawn."""
        return self.status in ENDED

    @property
    def held(self) -> bool:
        """Whether it could be labelled, but waits for an answer of somebody who is known."""
        return not self.closed and self.item.least > self.item.answers

    @property
    def outstanding(self) -> list[int]:
        """Questions that workers hold and that still matter."""
        return [
            lease.question for lease in self.leases.values() if lease.state == LeaseState.ACTIVE
        ]

    @property
    def node(self) -> int | None:
        """The item's node in the tree, for policies that walk a tree."""
        return self.campaign.policy.node(self.item.state)

    def take(self, event: Event) -> Fate:
        """Advance the engine by an event; returns the event's fate."""
        self.item = advance(self.campaign.policy, self.item, event, self.campaign.rules)
        self.changed = True
        return self.item.fates[-1]

    def close(self, label: Label) -> None:
        """Label the item, or set it aside where the label's reason says so."""
        aside = label.reason in SET_ASIDE
        self.status = ItemStatus.SET_ASIDE if aside else ItemStatus.LABELLED
        self.label, self.changed = label, True
        self.item = replace(self.item, label=label)

    def require(self, answers: int) -> Label | None:
        """Replay the item so that it takes a number of answers; returns the label after that."""
        campaign, self.changed = self.campaign, True
        again = replace(self.item, least=answers)
        self.item = replay_item(campaign.policy, again, campaign.rules)
        return self.item.label

    def refresh(self) -> int:
        """Bring leases and open questions in line with the engine; count the newly open ones."""
        policy = self.campaign.policy
        for lease in self.leases.values():
            if lease.state == LeaseState.ACTIVE and (
                self.closed or not policy.wants(self.item.state, lease.question)
            ):
                lease.become(LeaseState.WITHDRAWN)
        before: Mapping[int, int] | None = self.needed
        if before is None:
            before = {q: row.needed for q, row in self.questions.items()}
        self.needed = Counter()
        if not self.closed:
            self.needed.update(
                open_questions(policy, self.item, self.outstanding, rules=self.campaign.rules)
            )
        return sum(max(0, count - before.get(q, 0)) for q, count in self.needed.items())

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
        state = self.campaign.policy.dump(self.item.state)
        return {
            "id": self.id,
            "status": self.status,
            "state": COMPACT.encode(state),
            "revision": self.revision,
            "revised_after": self.revised_after,
            "reopened_after": self.reopened_after,
            "least": self.item.least,
        }


def item_state(
    campaign: ServedCampaign, task: str, state: str | None, log: Iterable[LogLine], least: int
) -> ItemState:
    """Make the engine's view of an item from its row and its part of the log."""
    lines = engine_lines(log)
    events = tuple(event_of(campaign, task, line) for line in lines)
    fates = cast(tuple[Fate, ...], tuple(line.current_fate for line in lines))
    if state is None:
        return replace(campaign.blank, item=task, events=events, fates=fates, least=least)
    return ItemState(task, campaign.policy.load(json.loads(state)), None, events, fates, least)


def engine_lines(log: Iterable[LogLine]) -> list[LogLine]:
    """Lines of the log that the engine is shown."""
    return [line for line in log if line.fate not in OUTSIDE_ENGINE]


def fates_to_replay(
    campaign: ServedCampaign, lines: Sequence[LogLine], reopened_after: int
) -> tuple[Fate, ...]:
    """Fates of lines before an item is replayed: which stand, and which are excluded now.

    Skips from before an item was reopened are excluded as well.
    """
    fates = [line.fate for line in lines]
    for place, line in enumerate(lines):
        if stands(fates[place]) and (
            (line.kind == "skip" and line.id <= reopened_after) or campaign.excludes(line)
        ):
            fates[place] = "excluded"
    return cast(tuple[Fate, ...], tuple(fates))


def revised_fate(told: str, fate: str) -> str | None:
    """What to note beside a line whose worker was told one fate and that now has another.

    >>> revised_fate("late", "counted"), revised_fate("counted", "excluded")
    ('counted', 'excluded')
    >>> revised_fate("late", "late")
    """
    return fate if fate != told and (stands(fate) or fate == "excluded") else None


def event_of(campaign: ServedCampaign, task: str, line: LogLine) -> Event:
    """Read a line of the log as an event of the engine."""
    return Event(
        task,
        line.question,
        str(line.worker_id),
        line.value,
        cast(Kind, line.kind),
        f"{line.lease_id}:{line.key}",
        campaign.carried(line.skill, line.id),
        line.weight,
    )


def moves_of(campaign: ServedCampaign, item: ItemState) -> Iterator[str]:
    """Names of the tallies in which the way of an item through the tree counts once each."""
    policy, revision = campaign.policy, campaign.revision
    if policy.plan is None:
        return
    policy = policy.at_least(max(policy.least_answers, item.least))
    state = policy.start()
    yield flow("in", state.node, revision)
    for _, answer in counted_answers(item, campaign.rules):
        before = state.node
        state = policy.update(state, answer)
        if state.node != before:
            yield flow("out", before, revision)
            yield flow("in", state.node, revision)


def path_of(names: Sequence[str], item: ItemState) -> list[Votes]:
    """Sum up how an item came to its label."""
    events = zip(item.events, item.fates, strict=True)
    return counted_votes(names, ((event.question, event.value, fate) for event, fate in events))


def make_task(
    campaign: ServedCampaign, lease: str, question: int, task: str, payload: str, seconds: float
) -> Task:
    """Make what a worker sees: an item and a question."""
    problem = campaign.problem
    return {
        "lease": lease,
        "seconds": round(seconds, 3),
        "item": shown_item(campaign, task, payload),
        "question": {"name": problem.questions[question], "text": problem.text(question)},
    }


def shown_item(campaign: Naming, task: str, payload: str) -> JsonObject:
    """Select what leaves the server of an item: the columns that are shown, and a name.

    Names that the owner gave may say what an item is, so those of the item and of its uploaded
    files are replaced, unless the name is all there is to show or the owner wants it
    (`tasks.show_item_names`).
    """
    shown = visible(json.loads(payload))
    if campaign.settings.tasks.show_item_names or not shown.keys() - {"alt"}:
        return {"task": task, **shown}
    for name in MEDIA:
        if name in shown and not is_address(shown[name]):
            shown[name] = file_name(campaign.secret, shown[name])
    return {"task": item_name(campaign.secret, task), **shown}
