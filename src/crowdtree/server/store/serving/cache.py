"""What a writer keeps in memory between its transactions: campaigns and search positions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.server.settings.model import stored_settings
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import read_policy
from crowdtree.server.store.db.sql import fetch, fetch_one
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.reliability import Level
from crowdtree.server.store.serving.campaign import ServedCampaign

MAX_HINTS = 200_000
SHARDS = 64


class KnownWorker(NamedTuple):
    """What never changes about the worker behind a token."""

    id: int
    campaign_id: int
    question: int | None


class ServingCache:
    """What one writer keeps between its transactions.

    Everything except the campaigns is a hint: without it, a search starts from the beginning.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        rng: np.random.Generator,
        last_questions: dict[int, int] | None = None,
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
        self.workers: dict[str, KnownWorker] = {}
        """By token. A token's worker never changes; whether it is valid is checked per request."""
        self.last_questions: dict[int, int] = {} if last_questions is None else last_questions
        self.known: set[int] = set()
        """Workers who are known. Whoever is no longer known changes the campaign's version."""

    def trim(self) -> None:
        """Drop the hints when there are too many."""
        if len(self.positions) > MAX_HINTS or len(self.workers) > MAX_HINTS:
            self.positions.clear()
            self.workers.clear()
            self.last_questions.clear()
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
    states = fetch(connection, sql.CAMPAIGNS, ids=[campaign_id])
    definition = fetch_one(connection, sql.DEFINITION, id=campaign_id)
    if not states or definition is None:
        raise NotFound(f"campaign {campaign_id} does not exist")
    settings = stored_settings(definition.settings)
    rules = settings.rules
    gold = fetch(connection, sql.GOLD_ITEMS, campaign=campaign_id)
    return ServedCampaign(
        id=campaign_id,
        version=states[0].version,
        revision=definition.revision,
        policy=read_policy(definition.problem, definition.policy).at_least(rules.people),
        settings=settings,
        rules=rules,
        gold=gold[settings.checks.practice_items :],
        training=gold[: settings.checks.practice_items],
        secret=definition.secret,
        exclusions=fetch(connection, sql.EXCLUSIONS, campaign=campaign_id),
        levels=_levels(connection, campaign_id) if definition.revision else (),
        status=states[0].status,
    )


def _levels(connection: Connection, number: int) -> list[Level]:
    """Read the levels of the tables of a campaign."""
    rows = fetch(connection, sql.REASONS, campaign=number)
    return [Level(row.number, *json.loads(row.reason)["level"]) for row in rows]
