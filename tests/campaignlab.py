"""A campaign in memory, which folds events without a server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crowdtree.campaign.events import Event, Outcome, PolicyChanged, Response
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import RULES, ItemRules, ItemView, Revision, open_questions
from crowdtree.policies import Policy
from crowdtree.policies.monitor import Revision as Table


class Lease(NamedTuple):
    """A question handed to a worker."""

    item: str
    question: Any
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

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.campaign.events import Answered
    >>> campaign = Campaign(ct.PlanPolicy(ct.design(ct.example("table1"))), ["photo 1"])
    >>> lease = campaign.next_for("ann")
    >>> str(campaign.record(lease.item, Answered("ann", lease.question, 1)))
    'counted'
    >>> campaign.results()
    [Result(item='photo 1', label='c4', posterior_error=0.0338..., answers=1, reason='leaf')]
    """

    policy: Policy[Any]
    items: Sequence[str]
    rules: ItemRules = RULES
    log: list[tuple[str, Response] | Table] = field(default_factory=list, init=False)
    leases: list[Lease] = field(default_factory=list, init=False)
    views: dict[str, ItemView] = field(default_factory=dict, init=False)
    revisions: list[Revision] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._original = self.policy
        self.revisions = [Revision(self.policy, self.rules)]
        blank = begin(self.revisions[0])
        self.views = dict.fromkeys(self.items, blank)

    @property
    def present(self) -> Revision:
        """The revision in force."""
        return self.revisions[-1]

    def next_for(self, worker: str) -> Lease | None:
        """Hand this worker a question of the first item that has one, or ``None``."""
        for item, view in self.views.items():
            outstanding = [lease.question for lease in self.leases if lease.item == item]
            held = {lease.question for lease in self.leases if lease[::2] == (item, worker)}
            asked = open_questions(self.present, view, outstanding, worker)
            mine = [question for question in asked if question not in held]
            if mine:
                lease = Lease(item, mine[0], worker)
                self.leases.append(lease)
                return lease
        return None

    def release(self, lease: Lease) -> None:
        """Take a question back that was not answered in time."""
        if lease in self.leases:
            self.leases.remove(lease)

    def happen(self, item: str, event: Event) -> None:
        """Let something happen to an item."""
        self.views[item] = extend(self.revisions, self.views[item], event)

    def record(self, item: str, response: Response) -> Outcome:
        """Append an answer or a skip to the log; returns what becomes of it."""
        self.happen(item, response)
        self.log.append((item, response))
        self.release(Lease(item, response.question, str(response.worker)))
        return self.views[item].outcomes[-1]

    def revise(self, table: Table) -> None:
        """Go on with a revised table; items that no longer reach the target are open again."""
        self.policy = table.apply(self._original)
        self.revisions.append(Revision(self.policy, self.rules))
        for item in self.items:
            self.happen(item, PolicyChanged(len(self.revisions) - 1))
        self.log.append(table)

    @property
    def done(self) -> bool:
        """Whether every item has its label."""
        return all(view.closed for view in self.views.values())

    def results(self) -> list[Result]:
        """Label of every item, with the best guess so far where it is still open."""
        results = []
        for item, view in self.views.items():
            label = view.label or self.policy.conclude(view.state, "open")
            name = self.policy.problem.classes[label.label] if view.label else None
            error, reason = label.posterior_error, str(label.reason)
            results.append(Result(item, name, error, view.answers, reason))
        return results


def replay(
    policy: Policy[Any],
    items: Sequence[str],
    log: Iterable[tuple[str, Response] | Table],
    rules: ItemRules = RULES,
) -> Campaign:
    """Rebuild a campaign from its log: the same views as when it happened."""
    campaign = Campaign(policy, items, rules)
    for entry in log:
        if isinstance(entry, tuple):
            campaign.record(*entry)
        else:
            campaign.revise(entry)
    return campaign
