"""What one transaction changes, collected until everything is written at its end."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.serving.cache import ServingCache


@dataclass
class WorkerDelta:
    """What a transaction adds to a worker's record."""

    answers: int = 0
    accepted: int = 0
    skips: int = 0
    overdue: int = 0
    earned: int = 0
    last_question: int = -1


@dataclass
class Changes:
    """The changes of one transaction."""

    connection: Connection
    cache: ServingCache
    now: float
    answers: list[sql.NewAnswer] = field(default_factory=list)
    labels: list[sql.LabelLine] = field(default_factory=list)
    events: list[sql.NewItemEvent] = field(default_factory=list)
    revised_fates: dict[int, dict[str, object]] = field(default_factory=dict)
    """Outcomes that differ from what workers were told, by line of the log."""
    corrected: list[dict[str, object]] = field(default_factory=list)
    """Labels of which a revision changed the error, the answers or the path."""
    dropped: list[dict[str, object]] = field(default_factory=list)
    """Labels that a revision replaced or withdrew."""
    withdrawals: list[sql.Withdrawal] = field(default_factory=list)
    judgements: list[sql.Judgement] = field(default_factory=list)
    deltas: dict[int, WorkerDelta] = field(default_factory=lambda: defaultdict(WorkerDelta))
    lapses: Counter[int] = field(default_factory=Counter)
    """Leases that workers let expire."""
    tallies: Counter[tuple[int, str]] = field(default_factory=Counter)
    opened: Counter[int] = field(default_factory=Counter)
    """Questions that were opened, by campaign."""
    touched: set[int] = field(default_factory=set)
    """Campaigns whose pages should be refreshed."""

    notes: list[dict[str, object]] = field(default_factory=list)
    """Lines for the activity log."""

    def note(self, campaign: int, action: str, detail: Mapping[str, object]) -> None:
        """Note in the activity log what a worker did."""
        about = {"campaign_id": campaign, "detail": json.dumps(dict(detail))}
        self.notes.append({"at": self.now, "actor": "worker", "action": action, **about})

    def count(self, campaign: int, name: str, by: int = 1) -> None:
        """Add to a tally of a campaign."""
        self.tallies[campaign, name] += by
