"""The tables of the campaign's database.

`answers` is append-only and is the truth: what `items`, `wanted`, `leases` and `labels` hold can
be rebuilt from it (see :mod:`crowdtree.store.verify`). Money is whole millionths, times are
seconds since 1970.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

__all__ = [
    "ITEM",
    "LEASE",
    "answers",
    "audit",
    "budgets",
    "campaigns",
    "credentials",
    "deliveries",
    "items",
    "judgements",
    "labels",
    "leases",
    "metadata",
    "tallies",
    "waiting",
    "wanted",
    "webhooks",
    "workers",
]

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""


ByteText = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text in the order of its bytes, so that an index finds all that begins with some letters."""


class ITEM:
    """Where an item stands."""

    new, open, labelled, set_aside, gold = range(5)
    names = ("new", "open", "labelled", "set aside", "gold")


class LEASE:
    """What became of a lease; a withdrawn one may be answered but no longer matters."""

    active, answered, skipped, expired, withdrawn = range(5)


def _id() -> sa.Column[Any]:
    return sa.Column("id", BigId, primary_key=True, autoincrement=True)


def _ref(name: str, table: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, BigId, sa.ForeignKey(f"{table}.id"), nullable=False, **options)


def _copy(name: str) -> sa.Column[Any]:
    """Refer to a row that another column implies already (a lease its item, an item its campaign).

    Checked by :mod:`crowdtree.store.verify` and not at every write, where it would cost as much as
    the write itself.
    """
    return sa.Column(name, BigId, nullable=False)


def _number(name: str, kind: Any = sa.Integer) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, server_default="0")


def _text(name: str, default: str | None = "") -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=default is None, server_default=default)


campaigns = sa.Table(
    "campaigns",
    metadata,
    _id(),
    _text("name"),
    _text("status", "draft"),
    _text("status_reason"),
    _text("problem"),
    _text("policy"),
    _text("settings", "{}"),
    _number("version"),
    _number("created_at", sa.Float),
    sa.Column("started_at", sa.Float),
    sa.Column("finished_at", sa.Float),
    sqlite_autoincrement=True,
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
    sa.UniqueConstraint("campaign_id", "task"),
    sa.Index("ix_items_campaign_id_status_id", "campaign_id", "status", "id"),
    sqlite_autoincrement=True,
)

# A row is a question of an item that may be handed out `open` more times. A question that is
# opened again gets a new row, so that whoever has looked at all ids up to k need not look again.
wanted = sa.Table(
    "wanted",
    metadata,
    _id(),
    _copy("campaign_id"),
    _ref("item_id", "items"),
    sa.Column("question", sa.Integer, nullable=False),
    sa.Column("open", sa.Integer, nullable=False),
    sa.UniqueConstraint("item_id", "question"),
    sa.Index("ix_wanted_campaign_id_id", "campaign_id", "id"),
    sa.Index("ix_wanted_campaign_id_question_id", "campaign_id", "question", "id"),
    sqlite_autoincrement=True,
)

# Open items that nobody who is here can answer, and since when. Kept by the housekeeping alone.
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
    _text("status_reason"),
    sa.Column("question", sa.Integer),
    _number("last_question"),
    _number("skill", sa.Float),
    _number("precision", sa.Float),
    _number("gold_right"),
    _number("gold_asked"),
    _number("agreed"),
    _number("judged"),
    _number("answers"),
    _number("skips"),
    _number("overdue"),
    _number("earned", sa.BigInteger),
    _number("joined_at", sa.Float),
    _number("seen_at", sa.Float),
    _text("details", "{}"),
    sa.UniqueConstraint("campaign_id", "external_id"),
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
    _number("attempts"),
    _number("given_at", sa.Float),
    _number("expires_at", sa.Float),
    sa.UniqueConstraint("item_id", "worker_id", "question"),
    sqlite_autoincrement=True,
)
_live = leases.c.state.in_([LEASE.active, LEASE.withdrawn])
sa.Index("ix_leases_expires_at", leases.c.expires_at, sqlite_where=_live, postgresql_where=_live)
sa.Index("ix_leases_given_at", leases.c.given_at, sqlite_where=_live, postgresql_where=_live)
_active = leases.c.state == LEASE.active
sa.Index("ix_leases_worker_id", leases.c.worker_id, sqlite_where=_active, postgresql_where=_active)

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
    sa.Column("fate", sa.Text, nullable=False),
    _number("overdue", sa.SmallInteger),
    _number("price", sa.BigInteger),
    _number("at", sa.Float),
    sa.UniqueConstraint("lease_id", "key"),
    sa.Index("ix_answers_item_id_id", "item_id", "id"),
    sa.Index("ix_answers_campaign_id_id", "campaign_id", "id"),
    sa.Index("ix_answers_worker_id_id", "worker_id", "id"),
    sqlite_autoincrement=True,
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
    _number("answers"),
    _text("path", "[]"),
    _number("at", sa.Float),
    sa.Index("ix_labels_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# What has been learnt about workers and is not yet in their rows. Appended by everybody and folded
# by one, so that two answers to the same item never wait for each other's workers.
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

credentials = sa.Table(
    "credentials",
    metadata,
    sa.Column("token_hash", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id")),
    sa.Column("worker_id", BigId, sa.ForeignKey("workers.id")),
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
    _number("finish_sent", sa.SmallInteger),
    _number("failures"),
    _number("next_try_at", sa.Float),
    _text("status", "active"),
    _text("last_error"),
    sqlite_autoincrement=True,
)

# The last few messages of each webhook, for the owner's page.
deliveries = sa.Table(
    "deliveries",
    metadata,
    _id(),
    _ref("webhook_id", "webhooks"),
    _number("at", sa.Float),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    _number("labels"),
    _text("error"),
    sa.Index("ix_deliveries_webhook_id_id", "webhook_id", "id"),
    sqlite_autoincrement=True,
)

audit = sa.Table(
    "audit",
    metadata,
    _id(),
    _number("at", sa.Float),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("campaign_id", BigId),
    _text("detail", "{}"),
    sa.Index("ix_audit_campaign_id_id", "campaign_id", "id"),
    sqlite_autoincrement=True,
)

# Counts for the pages, spread over shards so that server processes do not wait for each other.
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("campaign_id", BigId, sa.ForeignKey("campaigns.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True),
    _number("value", sa.BigInteger),
)
