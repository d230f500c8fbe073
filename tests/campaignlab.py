"""A campaign in memory, which drives the engine without a server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from crowdtree.campaign.engine import (
    RULES,
    Event,
    Fate,
    ItemState,
    Rules,
    advance,
    open_questions,
    replay_item,
    start_item,
)
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.policies import Policy
from crowdtree.policies.monitor import Revision


class Lease(NamedTuple):
    """A question handed to a worker."""

    item: str
    question: int
    worker: str


class Result(NamedTuple):
    """The label of an item; `label` is ``None`` while it is open."""

    item: str
    label: str | None
    posterior_error: float
    answers: int
    reason: str


@dataclass
class Campaign:
    """A campaign in memory: a policy, items, a log, and the leased questions.

    Parameters
    ----------
    policy
        The policy, which chooses the questions and when to stop.
    items
        Names of the items, all different.
    rules
        Rules for skips and repeated answers.

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.policies import PlanPolicy
    >>> campaign = Campaign(PlanPolicy(ct.design(ct.example("table1"))), ["photo 1"])
    >>> lease = campaign.next_for("ann")
    >>> campaign.record(Event(lease.item, lease.question, "ann", value=1))
    'counted'
    >>> campaign.results()
    [Result(item='photo 1', label='c4', posterior_error=0.0338..., answers=1, reason='leaf')]
    """

    policy: Policy[Any]
    items: Sequence[str]
    rules: Rules = RULES
    log: list[Event | Revision] = field(default_factory=list, init=False)
    leases: list[Lease] = field(default_factory=list, init=False)
    states: dict[str, ItemState] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._original = self.policy
        blank = start_item(self.policy, "")
        self.states = {item: replace(blank, item=item) for item in self.items}
        if len(self.states) < len(self.items):
            twice = [item for item in self.states if list(self.items).count(item) > 1]
            raise CrowdtreeError(
                f"items: {listing(twice)} occurs more than once; names must differ"
            )
        self._find_open()

    def _find_open(self) -> None:
        self._open = {item: None for item, state in self.states.items() if state.label is None}

    def next_for(self, worker: str) -> Lease | None:
        """Hand this worker a question of the first item that has one, or ``None``."""
        for item in self._open:
            outstanding = [lease.question for lease in self.leases if lease.item == item]
            found = open_questions(self.policy, self.states[item], outstanding, worker, self.rules)
            if any(lease.item == item and lease.worker == worker for lease in self.leases):
                held = {lease.question for lease in self.leases if lease[::2] == (item, worker)}
                found = tuple(question for question in found if question not in held)
            if found:
                lease = Lease(item, found[0], worker)
                self.leases.append(lease)
                return lease
        return None

    def release(self, lease: Lease) -> None:
        """Take a question back that was not answered in time."""
        if lease in self.leases:
            self.leases.remove(lease)

    def record(self, event: Event) -> Fate:
        """Append an event to the log and return its fate."""
        item = self.states.get(event.item)
        if item is None:
            raise CrowdtreeError(
                f"event: item {event.item!r} is not in the campaign, which has {len(self.states)}"
            )
        moved = advance(self.policy, item, event, self.rules)
        self.log.append(event)
        self.states[event.item] = moved
        self.release(Lease(event.item, event.question, event.worker))
        if moved.label is None:
            self._open.setdefault(event.item)
        else:
            self._open.pop(event.item, None)
        return moved.fates[-1]

    def revise(self, revision: Revision) -> None:
        """Go on with a revised table; items that no longer reach the target are open again."""
        self.policy = revision.apply(self._original)
        self.states = {
            name: replay_item(self.policy, state, self.rules) for name, state in self.states.items()
        }
        self.log.append(revision)
        self._find_open()

    @property
    def done(self) -> bool:
        """Whether every item has its label."""
        return not self._open

    def results(self) -> list[Result]:
        """Label of every item, with the best guess so far where it is still open."""
        found = []
        for item, state in self.states.items():
            label = state.label or self.policy.conclude(state.state, "open")
            name = self.policy.problem.classes[label.label] if state.label else None
            found.append(Result(item, name, label.posterior_error, state.answers, label.reason))
        return found


def replay(
    policy: Policy[Any], items: Sequence[str], log: Iterable[Event | Revision], rules: Rules = RULES
) -> Campaign:
    """Rebuild a campaign from its log: the same states as when it happened.

    `policy` is the one that the campaign started with; the log holds its revisions.

    >>> import crowdtree as ct
    >>> from crowdtree.policies import PlanPolicy
    >>> policy = PlanPolicy(ct.design(ct.example("table1")))
    >>> replay(policy, ["photo 1"], [Event("photo 1", 0, "ann", 1)]).done
    True
    """
    campaign = Campaign(policy, items, rules)
    for event in log:
        if isinstance(event, Revision):
            campaign.revise(event)
        else:
            campaign.record(event)
    return campaign
