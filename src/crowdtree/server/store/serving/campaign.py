"""A campaign as transactions use it, with its revisions, and what a writer keeps between them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.campaign import view
from crowdtree.campaign.fold import begin
from crowdtree.campaign.view import ItemView, Revision, counted_answers, open_questions
from crowdtree.core.problem import Problem
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import Campaign, flow, get_campaign
from crowdtree.server.store.db.sql import fetch
from crowdtree.server.store.db.statements import Exclusion, GoldItem
from crowdtree.server.store.reliability import Level
from crowdtree.server.store.types import AnyPolicy


@dataclass
class ServedCampaign:
    """A campaign as transactions use it: its row, its policy, and what else judges answers."""

    row: Campaign
    policy: AnyPolicy
    status: str
    gold: Sequence[GoldItem] = ()
    """Items of known class with which workers are checked."""
    training: Sequence[GoldItem] = ()
    """Items of known class with which workers practise."""
    exclusions: Sequence[Exclusion] = ()
    """All that were ever made, those that were lifted included."""
    levels: Sequence[Level] = ()
    """Tables that skills are relative to, by revision."""
    earlier: dict[int, AnyPolicy] = field(default_factory=dict, repr=False)
    """Policies of earlier revisions that were read."""

    def __post_init__(self) -> None:
        row = self.row
        self.id, self.version, self.revision = row.id, row.version, row.revision
        self.settings, self.secret = row.settings, row.secret
        self.rules = row.settings.rules
        self.price = row.settings.money.price_micros
        """Of an answer, in millionths."""
        self.people_before_repeat = row.settings.min_people_before_repeat

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


MAX_HINTS = 200_000
SHARDS = 64


class ServingCache:
    """What one writer keeps between its transactions.

    Everything except the campaigns is a hint: without it, a search starts from the beginning.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        rng: np.random.Generator,
    ) -> None:
        self.clock = clock
        self.rng = rng
        self.shard = int.from_bytes(os.urandom(2), "big") % SHARDS
        self.campaigns: dict[int, ServedCampaign] = {}
        self.positions: dict[tuple[int, int], int] = {}
        """Id of the open question up to which a worker has searched, by worker and question."""
        self.scanned: dict[int, tuple[float, float]] = {}
        """When a worker's last full search began, and how long it took."""
        self.idle: set[int] = set()
        """Workers for whom the last search found nothing."""
        self.waiting: dict[int, tuple[float, str]] = {}
        """Why a worker waits, and until when that need not be checked again."""
        self.taken_back: dict[int, float] = {}
        """When leases of the idle were last taken back, by campaign."""
        self.known: set[int] = set()
        """Workers who are known. Whoever is no longer known changes the campaign's version."""

    def trim(self) -> None:
        """Drop the hints when there are too many."""
        if len(self.positions) > MAX_HINTS:
            self.positions.clear()
            self.scanned.clear()
            self.idle.clear()
            self.waiting.clear()
            self.known.clear()

    def campaign(self, connection: Connection, state: sql.CampaignState) -> ServedCampaign:
        """Take a campaign from memory, or read it where its version has changed."""
        found = self.campaigns.get(state.id)
        if found is None or found.version != state.version:
            found = load_campaign(connection, state.id)
            self.known.clear()
            self.campaigns[state.id] = found
        found.status = state.status
        return found


def load_campaign(connection: Connection, campaign_id: int) -> ServedCampaign:
    """Read a campaign as transactions use it."""
    row = get_campaign(connection, campaign_id)
    gold = fetch(connection, sql.GOLD_ITEMS, campaign=campaign_id)
    practice = row.settings.checks.practice_items
    return ServedCampaign(
        row,
        row.make_policy().at_least(row.settings.rules.people),
        row.status,
        gold=gold[practice:],
        training=gold[:practice],
        exclusions=fetch(connection, sql.EXCLUSIONS, campaign=campaign_id),
        levels=_levels(connection, campaign_id) if row.revision else (),
    )


def _levels(connection: Connection, campaign_id: int) -> list[Level]:
    """Read the levels of the tables of a campaign."""
    rows = fetch(connection, sql.REASONS, campaign=campaign_id)
    return [Level(row.number, *json.loads(row.reason)["level"]) for row in rows]
