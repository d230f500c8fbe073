"""The tables of the campaign's database.

The log of an item is its rows in `answers` and `item_events`, which are only ever added. With the
`revisions` and `exclusions` of the campaign they are the source of truth: what `items`,
`open_questions` and `labels` hold is a snapshot of their fold (:mod:`crowdtree.campaign.fold`),
and :mod:`crowdtree.server.store.replay` checks it. Money is in whole millionths, times are in
seconds since 1970.
"""

from __future__ import annotations

from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from crowdtree.server.store.types import LIVE_LEASES, LeaseState

SCHEMA_VERSION = "7"
"""To be increased with every change of the tables."""
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite generates ids only in a column of type INTEGER."""

ByteText = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text ordered by its bytes, so that the index serves searches by prefix."""

T = TypeVar("T")


def _id() -> sa.Column[int]:
    return sa.Column("id", BigId, primary_key=True, autoincrement=True)


def _ref(name: str, table: str, unique: bool = False) -> sa.Column[int]:
    reference = sa.ForeignKey(f"{table}.id")
    return sa.Column(name, BigId, reference, nullable=False, unique=unique or None)


def _copy(name: str) -> sa.Column[int]:
    """Repeat a reference that another column implies (a lease its item, an item its campaign).

    :mod:`crowdtree.server.store.replay` checks it; a foreign key would double the cost of each
    write.
    """
    return sa.Column(name, BigId, nullable=False)


def _number(name: str, kind: type[TypeEngine[T]] | TypeEngine[T]) -> sa.Column[T]:
    return sa.Column(name, kind, nullable=False, server_default="0")


def _count(name: str) -> sa.Column[int]:
    return _number(name, sa.Integer)


def _text(name: str, default: str | None = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=default is None, server_default=default)


schema_version = sa.Table("schema_version", metadata, sa.Column("version", sa.Text, nullable=False))

campaigns = sa.Table(
    "campaigns",
    metadata,
    _id(),
    _text("name"),
    _text("status", "draft"),
    _text("reason"),  # why it has its status
    _text("reason_detail"),
    _text("problem"),
    _text("policy"),
    _text("settings", "{}"),
    _text("secret"),  # key of completion codes, signed participant ids and names of items
    _count("revision"),
    _count("version"),
    _number("created_at", sa.Float),
    sa.Column("started_at", sa.Float),
    sa.Column("finished_at", sa.Float),
    sqlite_autoincrement=True,
)

# Every policy of a campaign that was revised while it ran; number 0 is the one it started with. The
# last one is the campaign's own `policy`. Without `finished_at`, items are still being revised.
revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    _number("at", sa.Float),
    _text("actor"),
    _text("cause"),
    _text("reason", "{}"),
    _number("after_answer_id", BigId),
    _text("problem"),
    _text("policy"),
    sa.Column("finished_at", sa.Float),
)

# Answers and skips of a worker, from one line of the log to another, that are excluded: in the
# revisions from `revision` on, and before `lifted_revision` if that is set. `since` is the time
# that was asked for; without it, all answers up to then.
exclusions = sa.Table(
    "exclusions",
    metadata,
    _id(),
    _ref("campaign_id", "campaigns"),
    _ref("worker_id", "workers"),
    _number("first_answer_id", BigId),
    _number("last_answer_id", BigId),
    _count("revision"),
    sa.Column("lifted_revision", sa.Integer),
    sa.Column("since", sa.Float),
    _text("actor"),
    _text("reason"),
    _number("at", sa.Float),
    sa.Column("lifted_at", sa.Float),
    sa.Index("ix_exclusions_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# What the answers say about the table of a campaign. Written only by
# crowdtree.server.rules.wrong_table; it follows from the log and the revisions. `last_answer_id` is
# the last line that was read, `tested` the number of the revision whose table is tested, `state`
# what the monitor has computed from the lines so far (crowdtree.server.store.replay.verify checks
# it).
monitors = sa.Table(
    "monitors",
    metadata,
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id"), primary_key=True),
    _number("last_answer_id", BigId),
    _count("tested"),
    _count("answers"),
    _text("alarms", "[]"),
    _text("findings", "[]"),
    _text("state"),
)

budgets = sa.Table(
    "budgets",
    metadata,
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("cap", sa.BigInteger, nullable=False),
    _number("spent", sa.BigInteger),
    _number("reserved", sa.BigInteger),
)

items = sa.Table(
    "items",
    metadata,
    _id(),
    _ref("campaign_id", "campaigns"),
    sa.Column("task", ByteText, nullable=False),
    _text("payload", "{}"),
    _number("status", sa.SmallInteger),
    sa.Column("gold", sa.SmallInteger),
    _text("state", None),
    _count("revision"),
    _count("judged_by"),
    _count("min_answers"),
    _count("reopened_after"),
    sa.Column("corrected", sa.Integer),
    sa.UniqueConstraint("campaign_id", "task"),
    sa.Index("ix_items_campaign_id_status_id", "campaign_id", "status", "id"),
    sqlite_autoincrement=True,
)

# `state` to `corrected` are fields of :class:`crowdtree.campaign.view.ItemView`; the state is that
# of the policy of revision `judged_by`.

_by_hand = items.c.corrected.is_not(None)
sa.Index(
    "ix_items_corrected", items.c.campaign_id, sqlite_where=_by_hand, postgresql_where=_by_hand
)

# What happened to items beside answers and skips, as :mod:`crowdtree.campaign.events` has it: after
# so many rows of `answers` about the item (`after`), while the item was at `revision`. `value` is
# the number or the class that the event is about, `reason` what people said about it. Who it was is
# in the entry `activity_id` of the activity log.
item_events = sa.Table(
    "item_events",
    metadata,
    _id(),
    _copy("campaign_id"),
    _ref("item_id", "items"),
    sa.Column("kind", sa.Text, nullable=False),
    _count("revision"),
    _count("after"),
    sa.Column("value", sa.Integer),
    _text("reason"),
    _number("at", sa.Float),
    _number("activity_id", BigId),
    sa.Index("ix_item_events_item_id_id", "item_id", "id"),
    sqlite_autoincrement=True,
)

# A question of an item that can be handed out `needed` more times. A question that opens again gets
# a new row with a new id, so that a scan can continue from the last id that it has seen.
open_questions = sa.Table(
    "open_questions",
    metadata,
    _id(),
    _copy("campaign_id"),
    _ref("item_id", "items"),
    sa.Column("question", sa.Integer, nullable=False),
    sa.Column("needed", sa.Integer, nullable=False),
    _number("known_only", sa.SmallInteger),  # whether only workers who are known are asked
    sa.UniqueConstraint("item_id", "question"),
    sa.Index("ix_open_questions_campaign_id_id", "campaign_id", "id"),
    sa.Index("ix_open_questions_campaign_id_question_id", "campaign_id", "question", "id"),
    sqlite_autoincrement=True,
)

# Open items that no worker who is present can answer, and since when. Written only by
# crowdtree.server.rules.stalled_items.
waiting = sa.Table(
    "waiting",
    metadata,
    sa.Column("item_id", BigId, sa.ForeignKey("items.id"), primary_key=True, autoincrement=False),
    _copy("campaign_id"),
    _number("since", sa.Float),
    sa.Index("ix_waiting_campaign_id_item_id", "campaign_id", "item_id"),
)

workers = sa.Table(
    "workers",
    metadata,
    _id(),
    _ref("campaign_id", "campaigns"),
    _text("name"),
    sa.Column("external_id", sa.Text),
    _text("status", "active"),
    _text("reason"),  # why it has its status
    _text("reason_detail"),
    sa.Column("question", sa.Integer),
    _count("last_question"),
    _number("skill", sa.Float),
    _number("precision", sa.Float),
    _number("used_skill", sa.Float),  # with which answers are weighed
    _text("known"),  # why the worker is known; empty for a newcomer
    _count("gold_right"),
    _count("gold_asked"),
    _count("agreed"),
    _count("judged"),
    _count("answers"),
    _count("accepted"),  # answers that are paid, where there is a price
    _count("skips"),
    _count("overdue"),
    _count("lapses"),  # leases that expired since the last answer
    _number("earned", sa.BigInteger),
    _number("joined_at", sa.Float),
    _number("seen_at", sa.Float),
    _text("network"),  # keyed hash of the network from which the worker joined
    sa.Column("completed_at", sa.Float),  # when the worker was shown the end, entitled to a code
    _text("details", "{}"),
    _text("consent"),  # mark of the text that the worker has agreed to
    sa.Column("consented_at", sa.Float),
    _count("trained"),  # training items that the worker has finished
    sa.UniqueConstraint("campaign_id", "external_id"),
    sa.Index("ix_workers_campaign_id_joined_at", "campaign_id", "joined_at"),
    sa.Index("ix_workers_campaign_id_network", "campaign_id", "network"),
    sqlite_autoincrement=True,
)

leases = sa.Table(
    "leases",
    metadata,
    _id(),
    sa.Column("nonce", sa.Text, nullable=False),
    _copy("campaign_id"),
    _ref("item_id", "items"),
    _ref("worker_id", "workers"),
    sa.Column("question", sa.Integer, nullable=False),
    _number("state", sa.SmallInteger),
    _number("given_at", sa.Float),
    _number("expires_at", sa.Float),
    sa.UniqueConstraint("item_id", "worker_id", "question"),
    sqlite_autoincrement=True,
)
_live = leases.c.state.in_(LIVE_LEASES)
sa.Index("ix_leases_expires_at", leases.c.expires_at, sqlite_where=_live, postgresql_where=_live)
sa.Index("ix_leases_given_at", leases.c.given_at, sqlite_where=_live, postgresql_where=_live)
_active = leases.c.state == LeaseState.ACTIVE
sa.Index("ix_leases_worker_id", leases.c.worker_id, sqlite_where=_active, postgresql_where=_active)

# `fate` is what the worker was told. Where a revision of the policy changed it, `revised_fate` is
# what became of the answer since. `weight` is that of a skip, by the worker's record at the time.
# `report` is what the worker reports about the item with a skip: a reason, a colon, more words.
answers = sa.Table(
    "answers",
    metadata,
    _id(),
    _copy("campaign_id"),
    _copy("item_id"),
    _ref("lease_id", "leases"),
    _copy("worker_id"),
    sa.Column("question", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("value", sa.SmallInteger),
    sa.Column("key", sa.Text, nullable=False),
    _number("skill", sa.Float),
    sa.Column("weight", sa.Float, nullable=False, server_default="1"),
    sa.Column("fate", sa.Text, nullable=False),
    _count("revision"),  # of the item when it came
    _number("overdue", sa.SmallInteger),
    _number("price", sa.BigInteger),
    _number("at", sa.Float),
    sa.Column("revised_fate", sa.Text),
    _text("report"),
    sa.UniqueConstraint("lease_id"),
    sa.Index("ix_answers_item_id_id", "item_id", "id"),
    sa.Index("ix_answers_campaign_id_id", "campaign_id", "id"),
    sa.Index("ix_answers_worker_id_id", "worker_id", "id"),
    sqlite_autoincrement=True,
)

_reported = answers.c.report != ""
sa.Index(
    "ix_answers_reports",
    *(answers.c.campaign_id, answers.c.id),
    sqlite_where=_reported,
    postgresql_where=_reported,
)

labels = sa.Table(
    "labels",
    metadata,
    _id(),
    _copy("campaign_id"),
    _ref("item_id", "items", unique=True),
    sa.Column("label", sa.Integer),
    sa.Column("posterior_error", sa.Float),
    sa.Column("reason", sa.Text, nullable=False),
    _count("answers"),
    _text("path", "[]"),
    _number("at", sa.Float),
    sa.Index("ix_labels_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# Labels that a revision took back, for webhooks. A label that was replaced is not listed: the new
# one has a greater id.
withdrawals = sa.Table(
    "withdrawals",
    metadata,
    _id(),
    _copy("campaign_id"),
    _ref("item_id", "items"),
    _copy("label_id"),
    _number("at", sa.Float),
    sa.Index("ix_withdrawals_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# An audit of the labels that there were when it started; `labels` and `known` are frozen. What it
# claims is written after every check, for those who only want to read it.
audits = sa.Table(
    "audits",
    metadata,
    _id(),
    _ref("campaign_id", "campaigns"),
    sa.Column("bound", sa.Float, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    sa.Column("known", sa.Text, nullable=False),
    sa.Column("claims", sa.Text, nullable=False),
    _number("at", sa.Float),
    _number("corrects", sa.SmallInteger),
    _number("last_label", sa.BigInteger),
    sa.Index("ix_audits_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# Items that an audit has drawn, in order: who holds them, and what was found. `after` results
# counted when the item was drawn. A result without `truth` is "cannot tell".
checks = sa.Table(
    "checks",
    metadata,
    _id(),
    _ref("audit_id", "audits"),
    _copy("campaign_id"),
    _ref("item_id", "items"),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("after", sa.Integer, nullable=False),
    sa.Column("label", sa.Integer, nullable=False),
    sa.Column("holder", sa.Text, nullable=False),
    _number("held_until", sa.Float),
    sa.Column("correct", sa.SmallInteger),
    sa.Column("truth", sa.Integer),
    _text("person"),
    sa.Column("at", sa.Float),
    sa.UniqueConstraint("audit_id", "draw"),
    sa.UniqueConstraint("audit_id", "item_id"),
    sa.Index("ix_checks_item_id", "item_id"),
    sqlite_autoincrement=True,
)

# Evidence about workers that is not in their rows yet. Every transaction appends, one background
# task applies, so that two answers to one item never lock each other's worker rows.
judgements = sa.Table(
    "judgements",
    metadata,
    _id(),
    _copy("worker_id"),
    sa.Column("question", sa.Integer, nullable=False),
    sa.Column("value", sa.SmallInteger, nullable=False),
    sa.Column("cls", sa.Integer, nullable=False),
    _number("error", sa.Float),
    _number("gold", sa.SmallInteger),
    sqlite_autoincrement=True,
)

# People who administer the server, by name. Whoever runs it is an admin without a row here.
owners = sa.Table(
    "owners",
    metadata,
    _id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    _number("created_at", sa.Float),
    sa.Column("revoked_at", sa.Float),
    sqlite_autoincrement=True,
)

# `owner_id` is the person of an owner's token, session or link; none for whoever runs the server.
credentials = sa.Table(
    "credentials",
    metadata,
    sa.Column("token_hash", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id")),
    sa.Column("worker_id", BigId, sa.ForeignKey("workers.id")),
    sa.Column("owner_id", BigId, sa.ForeignKey("owners.id")),
    _number("read_only", sa.SmallInteger),
    _text("name"),
    _number("created_at", sa.Float),
    sa.Column("expires_at", sa.Float),
    sa.Column("revoked_at", sa.Float),
    sa.Index("ix_credentials_worker_id", "worker_id"),
    sa.Index("ix_credentials_role_campaign_id", "role", "campaign_id"),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    _id(),
    _ref("campaign_id", "campaigns"),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),
    _number("sent_label_id", BigId),
    _number("sent_withdrawal_id", BigId),
    _number("sent_activity_id", BigId),
    _count("failures"),
    _number("next_try_at", sa.Float),
    _text("status", "active"),
    _text("last_error"),
    sqlite_autoincrement=True,
)

# The last messages of each webhook, at most one of which has not arrived: it reports the rows of a
# feed up to `last_id`.
deliveries = sa.Table(
    "deliveries",
    metadata,
    _id(),
    _ref("webhook_id", "webhooks"),
    _number("at", sa.Float),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("feed", sa.Text, nullable=False),
    _number("last_id", BigId),
    _count("rows"),
    _count("attempts"),
    _number("arrived", sa.SmallInteger),
    _text("error"),
    sa.Index("ix_deliveries_webhook_id_id", "webhook_id", "id"),
    sqlite_autoincrement=True,
)

# What owners and the server did: `person` is the owner's name, `address` where the request came
# from. Both are empty for the server.
activity = sa.Table(
    "activity",
    metadata,
    _id(),
    _number("at", sa.Float),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("campaign_id", BigId),
    _text("detail", "{}"),
    _text("person"),
    _text("address"),
    sa.Index("ix_activity_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# Counts for the pages, in shards so that server processes do not lock each other's rows.
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True),
    _number("value", sa.BigInteger),
)
