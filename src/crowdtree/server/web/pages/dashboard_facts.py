"""What is known about a campaign when its dashboard is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.planning import ExpectedPerformance
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.queries.export import reported_items
from crowdtree.server.store.queries.items import Divided, last_answer_at
from crowdtree.server.store.queries.progress import Progress, is_stuck, progress
from crowdtree.server.store.queries.workers import any_trusted, paused_workers
from crowdtree.server.store.types import AnyPolicy
from crowdtree.server.web.pages.words import money

QUIET_SECONDS = 600.0
"""After this long without an answer the owner is asked whether workers are still there."""


class Forecast(NamedTuple):
    """What a campaign still needs; ``None`` where that is unknown."""

    answers: float | None
    cost: float | None
    seconds: float | None


@dataclass(frozen=True)
class DashboardFacts:
    """What is known about a campaign when its dashboard is drawn.

    `planned` is not known while it is being computed; `paused` counts workers whom the server
    paused, `reported` items without a label that workers reported; `trusted` says whether the owner
    has invited somebody by a personal link, or vouched for somebody.
    """

    campaign: Campaign
    policy: AnyPolicy
    planned: ExpectedPerformance | None
    progress: Progress
    votes: Divided
    last_answer: float | None
    paused: int
    trusted: bool
    reported: int
    now: float

    @property
    def link(self) -> str:
        """Beginning of the addresses of the campaign's pages."""
        return f"/c/{self.campaign.id}"

    @property
    def is_quiet(self) -> bool:
        """Whether answers have stopped coming."""
        return self.last_answer is not None and self.now - self.last_answer > QUIET_SECONDS

    @cached_property
    def forecast(self) -> Forecast:
        """Remaining answers and cost, from this campaign or at first from the plan."""
        items, known = self.progress["items"], self.progress["forecast"]
        if not items["new"] + items["open"]:
            return Forecast(0.0, 0.0, 0.0)
        answers, rate = known["answers_left"], known["answers_per_minute"]
        if answers is None and self.planned is not None:
            answers = self.planned.answers * (items["new"] + items["open"] / 2)
        stuck = is_stuck(items, self.progress["waiting_for_workers"])
        seconds = 60 * answers / rate if rate and answers is not None and not stuck else None
        return Forecast(
            answers, None if answers is None else answers * self.progress["price"], seconds
        )

    @property
    def closes_in_seconds(self) -> float | None:
        """How long stalled items wait at most, if enough people are here to give them a label."""
        labels = self.campaign.settings.labels
        if self.progress["workers"]["active"] < labels.people_per_item:
            return None
        return labels.close_stalled_after_seconds

    @property
    def cost(self) -> float | None:
        """What the campaign will have cost in the end, where that is known."""
        left = self.forecast.cost
        return None if left is None else self.progress["spent"] + left

    def money(self, value: float) -> str:
        """Write an amount in the currency of the campaign."""
        return money(value, self.campaign.settings.money.currency)

    @property
    def votes_per_question(self) -> int:
        """People that a question of the plan takes at most; 0 for an adaptive policy."""
        plan = self.policy.plan
        return 0 if plan is None else int(max(plan.votes, default=0))

    def question_text(self, name: str) -> str:
        """Text of a question."""
        problem = self.policy.problem
        return problem.text(problem.questions.index(name))


def read_facts(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    planned: ExpectedPerformance | None,
    votes: Divided,
    now: float,
) -> DashboardFacts:
    """Read what the dashboard needs to know."""
    return DashboardFacts(
        campaign,
        policy,
        planned,
        progress(connection, campaign.id, now),
        votes,
        last_answer_at(connection, campaign.id),
        paused_workers(connection, campaign.id),
        any_trusted(connection, campaign.id),
        reported_items(connection, campaign.id),
        now,
    )
