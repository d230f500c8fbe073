"""Campaigns as the database stores them, and their tallies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.io.documents import problem_from_dict, problem_to_dict
from crowdtree.policies import policy_from_dict
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.settings.model import Settings, stored_settings
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import Query, fetch_one, run_many
from crowdtree.server.store.db.tables import answers, campaigns, tallies
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.types import AnyPolicy, JsonObject

CampaignStatus = Literal["draft", "running", "paused", "finishing", "finished"]


@dataclass(frozen=True)
class CampaignSummary:
    """A campaign without its definition."""

    id: int
    name: str
    status: CampaignStatus
    reason: CampaignReason
    reason_detail: str
    version: int
    created_at: float
    started_at: float | None
    finished_at: float | None

    @property
    def state(self) -> sql.CampaignState:
        """What changes while it runs."""
        return sql.CampaignState(self.id, self.version, self.status)

    @property
    def status_reason(self) -> str:
        """Why it has its status, in words."""
        return self.reason.text(self.reason_detail)

    def to_dict(self) -> JsonObject:
        """Write the campaign as plain JSON."""
        values = asdict(self)
        del values["reason_detail"]
        return {**values, "status_reason": self.status_reason}


@dataclass(frozen=True)
class Campaign(CampaignSummary):
    """A campaign with its definition."""

    problem: JsonObject
    """As in a problem file."""
    policy: JsonObject
    settings: Settings
    secret: str = field(repr=False)
    """Key of completion codes, signed participant ids and names of items."""
    revision: int
    """How many times the policy was revised."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return [entry["name"] for entry in self.problem["classes"]]

    @property
    def questions(self) -> list[str]:
        """Names of the questions."""
        return [entry["name"] for entry in self.problem["questions"]]

    def make_policy(self) -> AnyPolicy:
        """Make the policy."""
        return _policy(self.problem, self.policy)


class CampaignRow(NamedTuple):
    """The row of a campaign, with its definition as JSON documents."""

    id: int
    name: str
    status: CampaignStatus
    reason: str
    reason_detail: str
    version: int
    created_at: float
    started_at: float | None
    finished_at: float | None
    problem: str
    policy: str
    settings: str
    secret: str
    revision: int


_SELECT = f"SELECT {', '.join(CampaignRow._fields)} FROM campaigns WHERE id = :id"
CAMPAIGN = Query(CampaignRow, _SELECT)
CAMPAIGN_LOCKED = Query(CampaignRow, _SELECT + " {lock campaigns}")
_SUMMARY = [campaigns.c[name] for name in CampaignSummary.__dataclass_fields__]


def get_campaign(connection: Connection, campaign_id: int, lock: bool = False) -> Campaign:
    """Read a campaign; with `lock`, nobody else changes it until the commit."""
    row = fetch_one(connection, CAMPAIGN_LOCKED if lock else CAMPAIGN, id=campaign_id)
    if row is None:
        raise NotFound(f"campaign {campaign_id} does not exist")
    columns = row._asdict() | {
        "reason": CampaignReason(row.reason),
        "problem": json.loads(row.problem),
        "policy": json.loads(row.policy),
        "settings": stored_settings(row.settings),
    }
    return Campaign(**columns)


def list_campaigns(connection: Connection) -> list[CampaignSummary]:
    """List all campaigns, the newest first."""
    rows = connection.execute(sa.select(*_SUMMARY).order_by(campaigns.c.id.desc()))
    named = (row._asdict() for row in rows)
    return [CampaignSummary(**{**row, "reason": CampaignReason(row["reason"])}) for row in named]


def definition_of(policy: AnyPolicy) -> dict[str, str]:
    """Write a policy and its problem as the columns of a campaign hold them."""
    policy.problem.require_yes_no("campaign")
    problem = problem_to_dict(policy.problem)
    return {"problem": json.dumps(problem), "policy": json.dumps(policy.to_dict())}


def read_policy(problem: str, policy: str) -> AnyPolicy:
    """Make a policy from its JSON documents."""
    return _policy(json.loads(problem), json.loads(policy))


def _policy(problem: JsonObject, policy: JsonObject) -> AnyPolicy:
    return policy_from_dict(problem_from_dict(problem, "campaign"), policy)


def touch(connection: Connection, campaign_id: int) -> None:
    """Count a change of the definition, so that server processes read the campaign again."""
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == campaign_id)
        .values(version=campaigns.c.version + 1)
    )


# ------------------------------------------------------------------------------ tallies


def flow(way: str, node: int | str, revision: int) -> str:
    """Name the tally of items that entered or left a node of the tree of a revision.

    >>> flow("in", 3, 0), flow("out", -1, 2)
    ('in:3', 'out@2:-1')
    """
    return f"{way}@{revision}:{node}" if revision else f"{way}:{node}"


def flows(counts: Mapping[str, int], revision: int) -> dict[str, dict[str, int]]:
    """Items that entered and left each node of the tree of a revision, from tallies.

    >>> flows({"in:0": 3, "out:0": 1, "in:-1": 1, "open": 2}, 0)
    {'0': {'in': 3, 'out': 1}, '-1': {'in': 1, 'out': 0}}
    """
    found: dict[str, dict[str, int]] = {}
    for name, value in counts.items():
        begin, _, node = name.partition(":")
        way = begin.partition("@")[0]
        if way in ("in", "out") and name == flow(way, node, revision):
            found.setdefault(node, {"in": 0, "out": 0})[way] = value
    return found


def tally(connection: Connection, campaign_id: int) -> dict[str, int]:
    """Add up the tallies of a campaign over their shards."""
    rows = connection.execute(
        sa.select(tallies.c.name, sa.func.sum(tallies.c.value))
        .where(tallies.c.campaign_id == campaign_id)
        .group_by(tallies.c.name)
    )
    return {name: int(value) for name, value in rows}


def add_to_tallies(connection: Connection, campaign_id: int, counts: dict[str, int]) -> None:
    """Add to the tallies of a campaign."""
    rows = [
        {"campaign_id": campaign_id, "name": name, "shard": 0, "value": value}
        for name, value in counts.items()
        if value
    ]
    run_many(connection, sql.ADD_TALLY, rows)


def last_line(connection: Connection, campaign_id: int) -> int:
    """Find the last line of the log of a campaign; 0 if there is none."""
    mine = answers.c.campaign_id == campaign_id
    return connection.execute(sa.select(sa.func.max(answers.c.id)).where(mine)).scalar_one() or 0
