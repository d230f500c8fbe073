"""One item while it is being worked on in a transaction: engine state, leases, open questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crowdtree.campaign import Event, ItemState, Rules, advance, open_questions, start_item
from crowdtree.policy import Label, Policy
from crowdtree.problem import Problem
from crowdtree.store.settings import Settings
from crowdtree.store.tables import ITEM, LEASE

__all__ = [
    "AHEAD_SECONDS",
    "CLOSED",
    "CONCLUDED",
    "NO_WORKERS",
    "OUTSIDE",
    "SET_ASIDE",
    "STANDING",
    "TAKEN_BACK",
    "Held",
    "Loaded",
    "Work",
    "item_state",
    "path_of",
    "path_of_item",
    "task_of",
]

CLOSED = Label(0, 1.0, "closed")
"""Stands for the label of an item that is closed: the engine only asks whether there is one."""
AHEAD_SECONDS = 60.0
"""How much the clocks of two server processes may differ."""
STANDING = ("counted", "skipped", "late", "surplus")
"""Fates of events that an undo can take back."""
OUTSIDE = ("gold", "over budget")
"""Fates of answers that the engine never saw."""
NO_WORKERS = "no workers"
"""Reason of an item that was set aside because nobody was left who could answer."""
CONCLUDED = ("finished", NO_WORKERS)
"""Reasons of labels that were given on present evidence, not by the policy."""
SET_ASIDE = ("skipped", "never asked", NO_WORKERS)
"""Reasons of items that are set aside."""
TAKEN_BACK = -1
"""Stands in a judgement for gold that was undone: the worker is to be learnt anew."""


@dataclass
class Loaded:
    """A campaign as the serving desk keeps it in memory."""

    id: int
    version: int
    policy: Policy[Any]
    settings: Settings
    rules: Rules
    gold: list[tuple[int, int]]
    status: str = "draft"
    status_reason: str = ""

    @property
    def problem(self) -> Problem:
        """The campaign's problem."""
        return self.policy.problem


@dataclass
class Held:
    """A lease."""

    id: int
    nonce: str
    item_id: int
    worker_id: int
    question: int
    state: int
    attempts: int
    given_at: float
    expires_at: float
    changed: bool = False

    def overdue(self, now: float) -> bool:
        """Whether its time is over, or it was given in the future: the clock was put back."""
        return self.expires_at < now or self.given_at > now + AHEAD_SECONDS

    def become(self, state: int) -> None:
        """Change the state and remember to write it."""
        self.state, self.changed = state, True


@dataclass
class Work:
    """An item, its leases and its open questions, and what has to be written of them."""

    id: int
    task: str
    status: int
    gold: int | None
    campaign: Loaded
    item: ItemState
    leases: dict[int, Held] = field(default_factory=dict)
    wanted: dict[int, tuple[int, int]] = field(default_factory=dict)
    changed: bool = False
    label: Label | None = None
    need: Counter[int] | None = None

    @property
    def closed(self) -> bool:
        """Whether the item has its label or was set aside."""
        return self.status in (ITEM.labelled, ITEM.set_aside)

    @property
    def outstanding(self) -> list[int]:
        """Questions that are out and may still be answered."""
        return [lease.question for lease in self.leases.values() if lease.state == LEASE.active]

    @property
    def node(self) -> int | None:
        """Node of the tree where the item stands, for policies that walk a tree."""
        found: int | None = getattr(self.item.state, "node", None)
        return found

    def take(self, event: Event) -> str:
        """Let the engine take an event into account; say what became of it."""
        self.item = advance(self.campaign.policy, self.item, event, self.campaign.rules)
        self.changed = True
        if self.item.label is not None and not self.closed:
            self.close(self.item.label)
        return self.item.fates[-1]

    def close(self, label: Label) -> None:
        """Label the item, or set it aside where too many could not tell or nobody is left."""
        self.status = ITEM.set_aside if label.reason in SET_ASIDE else ITEM.labelled
        self.label, self.changed = label, True
        self.item = replace(self.item, label=label)

    def refresh(self) -> int:
        """Bring leases and open questions in line with the engine; count the newly open ones."""
        policy = self.campaign.policy
        for lease in self.leases.values():
            if lease.state == LEASE.active and (
                self.closed or not policy.wants(self.item.state, lease.question)
            ):
                lease.become(LEASE.withdrawn)
        before = self.need
        if before is None:
            before = Counter({question: count for question, (_, count) in self.wanted.items()})
        self.need = Counter()
        if not self.closed:
            self.need.update(
                open_questions(policy, self.item, self.outstanding, rules=self.campaign.rules)
            )
        return sum((self.need - before).values())

    def wanted_changes(self) -> Iterator[tuple[int, int | None, int]]:
        """Say what to write of the open questions: question, row (none: a new one), count."""
        if self.need is None:
            return
        for question, (row, count) in self.wanted.items():
            if self.need[question] != count:
                yield question, row, self.need[question]
        for question, count in self.need.items():
            if question not in self.wanted:
                yield question, None, count

    def state_text(self) -> str:
        """Write the policy's state."""
        return json.dumps(self.campaign.policy.dump(self.item.state), separators=(",", ":"))


def item_state(campaign: Loaded, task: str, state: str | None, events: Iterable[Any]) -> ItemState:
    """Make the engine's view of an item from its row and its part of the log."""
    if state is None:
        blank = start_item(campaign.policy, task)
    else:
        blank = ItemState(task, campaign.policy.load(json.loads(state)))
    made: list[Event] = []
    fates: list[Any] = []
    for row in events:
        if row[8] in OUTSIDE:
            continue
        event = stored_event(task, row)
        if row[8] == "undone":  # the log is append-only: what was taken back still says "counted"
            fates[_taken_back(made, fates, event)] = "undone"
        made.append(event)
        fates.append(row[8])
    return replace(blank, events=tuple(made), fates=tuple(fates))


def _taken_back(events: list[Event], fates: list[Any], undo: Event) -> int:
    """Place of the event that an undo takes back: the worker's last standing one there."""
    return max(
        place
        for place, (event, fate) in enumerate(zip(events, fates, strict=True))
        if (event.worker, event.question) == (undo.worker, undo.question) and fate in STANDING
    )


def stored_event(task: str, row: Any) -> Event:
    """Read a row of the log (columns as in ``EVENTS_OF_ITEMS``)."""
    _, question, worker, value, kind, key, lease, skill, *_ = row
    return Event(task, question, str(worker), value, kind, f"{lease}:{key}", skill)


def path_of(work: Work) -> list[dict[str, Any]]:
    """Sum up how an item came to its label: the questions in order, with their votes."""
    return path_of_item(work.campaign.problem.questions, work.item)


def path_of_item(names: Sequence[str], item: ItemState) -> list[dict[str, Any]]:
    """Sum up the answers that counted, question by question."""
    runs: list[dict[str, Any]] = []
    for event, fate in zip(item.events, item.fates, strict=True):
        if fate != "counted":
            continue
        name = names[event.question]
        if not runs or runs[-1]["question"] != name:
            runs.append({"question": name, "yes": 0, "no": 0})
        runs[-1]["yes" if event.value else "no"] += 1
    return runs


def task_of(
    campaign: Loaded, lease: int, nonce: str, question: int, task: str, payload: str, seconds: float
) -> dict[str, Any]:
    """Make what a worker sees: an item and a question."""
    problem = campaign.problem
    return {
        "lease": f"{lease}.{nonce}",
        "seconds": round(seconds, 3),
        "item": {"task": task, **json.loads(payload)},
        "question": {"name": problem.questions[question], "text": problem.text(question)},
    }
