"""A campaign as transactions use it, with its revisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from crowdtree.campaign import view
from crowdtree.campaign.fold import begin
from crowdtree.campaign.questions import counted_answers, open_questions
from crowdtree.campaign.view import ItemRules, ItemView, Revision
from crowdtree.core.problem import Problem
from crowdtree.server.settings.model import Settings
from crowdtree.server.store.db.campaign_row import flow
from crowdtree.server.store.db.statements import Exclusion, GoldItem
from crowdtree.server.store.reliability import Level
from crowdtree.server.store.types import AnyPolicy


@dataclass
class ServedCampaign:
    """A campaign as the serving cache holds it."""

    id: int
    version: int
    revision: int
    policy: AnyPolicy
    settings: Settings
    rules: ItemRules
    gold: list[GoldItem]
    """Items of known class with which workers are checked."""
    training: Sequence[GoldItem] = ()
    """Items of known class with which workers practise."""
    secret: str = field(default="", repr=False)
    exclusions: Sequence[Exclusion] = ()
    """All that were ever made, those that were lifted included."""
    levels: Sequence[Level] = ()
    """Tables that skills are relative to, by revision."""
    status: str = "draft"
    earlier: dict[int, AnyPolicy] = field(default_factory=dict, repr=False)
    """Policies of earlier revisions that were read."""

    @property
    def problem(self) -> Problem:
        """The campaign's problem."""
        return self.policy.problem

    @cached_property
    def present(self) -> Revision:
        """The revision that is in force."""
        return self.revision_of(self.revision, self.policy)

    @cached_property
    def blank(self) -> ItemView:
        """View of an item about which nothing is known."""
        return replace(begin(self.present), revision=self.revision, judged_by=self.revision)

    @cached_property
    def first_questions(self) -> tuple[int, ...]:
        """What is asked first about an item."""
        return questions_of(self.present, self.blank)

    def revision_of(self, number: int, policy: AnyPolicy) -> Revision:
        """Make a revision: a policy, with the exclusions and tables at that time."""
        exclusions = [made.lines for made in self.exclusions if made.holds(number)]
        levels = [level for level in self.levels if level.revision <= number]
        known = bool(levels) and levels[-1].revision == number
        carried = [view.Level(level.after, level.level) for level in levels] if known else []
        return Revision(policy, self.rules, exclusions, carried)

    def has_excluded(self, worker: int) -> bool:
        """Whether answers of a worker are excluded in the campaign's revision."""
        return any(
            made.worker_id == worker and made.holds(self.revision) for made in self.exclusions
        )


class Revisions(Mapping[int, Revision]):
    """The revisions of a campaign; policies of earlier ones are read when they are needed."""

    def __init__(self, campaign: ServedCampaign, read: Callable[[int], AnyPolicy]) -> None:
        self.campaign, self.read = campaign, read

    def __getitem__(self, number: int) -> Revision:
        campaign = self.campaign
        if number == campaign.revision:
            return campaign.present
        if number not in campaign.earlier:
            policy = self.read(number).at_least(campaign.rules.people)
            campaign.earlier[number] = policy
        return campaign.revision_of(number, campaign.earlier[number])

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.campaign.revision + 1))

    def __len__(self) -> int:
        return self.campaign.revision + 1


def questions_of(
    revision: Revision,
    item: ItemView,
    outstanding: Sequence[int] = (),
    worker: int | None = None,
) -> tuple[int, ...]:
    """Questions of an item to hand out now, of a campaign with one source."""
    asked = open_questions(revision, item, outstanding, worker)
    return tuple(one if isinstance(one, int) else one[0] for one in asked)


def moves_of(campaign: ServedCampaign, item: ItemView) -> Iterator[str]:
    """Names of the tallies in which the way of an item through the tree counts once each."""
    if campaign.policy.plan is None:
        return
    number, revision = campaign.revision, campaign.present
    policy = revision.with_min_answers(item.min_answers)
    state = policy.start()
    yield flow("in", state.node, number)
    for _, answer in counted_answers(revision, item):
        before = state.node
        state = policy.update(state, answer)
        if state.node != before:
            yield flow("out", before, number)
            yield flow("in", state.node, number)
