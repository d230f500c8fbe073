"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up."""
    op.create_table(
        "audit",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("detail", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("ix_audit_campaign_id_id", ["campaign_id", "id"], unique=False)

    op.create_table(
        "campaigns",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), server_default="draft", nullable=False),
        sa.Column("status_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.Column("policy", sa.Text(), server_default="", nullable=False),
        sa.Column("settings", sa.Text(), server_default="{}", nullable=False),
        sa.Column("version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("finished_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaigns")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "judgements",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "worker_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=False),
        sa.Column("cls", sa.Integer(), nullable=False),
        sa.Column("error", sa.Float(), server_default="0", nullable=False),
        sa.Column("gold", sa.SmallInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgements")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "budgets",
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("cap", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_budgets_campaign_id")
        ),
        sa.PrimaryKeyConstraint("campaign_id", name=op.f("pk_budgets")),
    )
    op.create_table(
        "items",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "task",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("payload", sa.Text(), server_default="{}", nullable=False),
        sa.Column("status", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("gold", sa.SmallInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_items_campaign_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("campaign_id", "task", name=op.f("uq_items_campaign_id_task")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("items", schema=None) as batch_op:
        batch_op.create_index(
            "ix_items_campaign_id_status_id", ["campaign_id", "status", "id"], unique=False
        )

    op.create_table(
        "tallies",
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("value", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_tallies_campaign_id")
        ),
        sa.PrimaryKeyConstraint("campaign_id", "name", "shard", name=op.f("pk_tallies")),
    )
    op.create_table(
        "webhooks",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column(
            "sent_label_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            server_default="0",
            nullable=False,
        ),
        sa.Column("finish_sent", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("last_error", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_webhooks_campaign_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "deliveries",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "webhook_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("labels", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index("ix_deliveries_webhook_id_id", ["webhook_id", "id"], unique=False)

    op.create_table(
        "workers",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("status_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("question", sa.Integer(), nullable=True),
        sa.Column("last_question", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skill", sa.Float(), server_default="0", nullable=False),
        sa.Column("precision", sa.Float(), server_default="0", nullable=False),
        sa.Column("gold_right", sa.Integer(), server_default="0", nullable=False),
        sa.Column("gold_asked", sa.Integer(), server_default="0", nullable=False),
        sa.Column("agreed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("judged", sa.Integer(), server_default="0", nullable=False),
        sa.Column("answers", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skips", sa.Integer(), server_default="0", nullable=False),
        sa.Column("overdue", sa.Integer(), server_default="0", nullable=False),
        sa.Column("earned", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("joined_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("seen_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("details", sa.Text(), server_default="{}", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_workers_campaign_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
        sa.UniqueConstraint(
            "campaign_id", "external_id", name=op.f("uq_workers_campaign_id_external_id")
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "credentials",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        ),
        sa.Column("worker_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=True),
        sa.Column("revoked_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_credentials_campaign_id")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["workers.id"], name=op.f("fk_credentials_worker_id")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_credentials")),
    )
    with op.batch_alter_table("credentials", schema=None) as batch_op:
        batch_op.create_index(
            "ix_credentials_role_campaign_id", ["role", "campaign_id"], unique=False
        )
        batch_op.create_index("ix_credentials_worker_id", ["worker_id"], unique=False)

    op.create_table(
        "labels",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("posterior_error", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("answers", sa.Integer(), server_default="0", nullable=False),
        sa.Column("path", sa.Text(), server_default="[]", nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_labels_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labels")),
        sa.UniqueConstraint("item_id", name=op.f("uq_labels_item_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("labels", schema=None) as batch_op:
        batch_op.create_index("ix_labels_campaign_id_id", ["campaign_id", "id"], unique=False)

    op.create_table(
        "leases",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "worker_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.Column("state", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("given_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("expires_at", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_leases_item_id")),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name=op.f("fk_leases_worker_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leases")),
        sa.UniqueConstraint(
            "item_id", "worker_id", "question", name=op.f("uq_leases_item_id_worker_id_question")
        ),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("leases", schema=None) as batch_op:
        batch_op.create_index(
            "ix_leases_expires_at",
            ["expires_at"],
            unique=False,
            sqlite_where=sa.text("state IN (0, 4)"),
            postgresql_where=sa.text("state IN (0, 4)"),
        )
        batch_op.create_index(
            "ix_leases_given_at",
            ["given_at"],
            unique=False,
            sqlite_where=sa.text("state IN (0, 4)"),
            postgresql_where=sa.text("state IN (0, 4)"),
        )
        batch_op.create_index(
            "ix_leases_worker_id",
            ["worker_id"],
            unique=False,
            sqlite_where=sa.text("state = 0"),
            postgresql_where=sa.text("state = 0"),
        )

    op.create_table(
        "waiting",
        sa.Column(
            "item_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("since", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_waiting_item_id")),
        sa.PrimaryKeyConstraint("item_id", name=op.f("pk_waiting")),
    )
    with op.batch_alter_table("waiting", schema=None) as batch_op:
        batch_op.create_index(
            "ix_waiting_campaign_id_item_id", ["campaign_id", "item_id"], unique=False
        )

    op.create_table(
        "wanted",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_wanted_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wanted")),
        sa.UniqueConstraint("item_id", "question", name=op.f("uq_wanted_item_id_question")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("wanted", schema=None) as batch_op:
        batch_op.create_index("ix_wanted_campaign_id_id", ["campaign_id", "id"], unique=False)
        batch_op.create_index(
            "ix_wanted_campaign_id_question_id", ["campaign_id", "question", "id"], unique=False
        )

    op.create_table(
        "answers",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column(
            "campaign_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lease_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column(
            "worker_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("skill", sa.Float(), server_default="0", nullable=False),
        sa.Column("fate", sa.Text(), nullable=False),
        sa.Column("overdue", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("price", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_answers_lease_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
        sa.UniqueConstraint("lease_id", "key", name=op.f("uq_answers_lease_id_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("answers", schema=None) as batch_op:
        batch_op.create_index("ix_answers_campaign_id_id", ["campaign_id", "id"], unique=False)
        batch_op.create_index("ix_answers_item_id_id", ["item_id", "id"], unique=False)
        batch_op.create_index("ix_answers_worker_id_id", ["worker_id", "id"], unique=False)


def downgrade() -> None:
    """Move one version down."""
    with op.batch_alter_table("answers", schema=None) as batch_op:
        batch_op.drop_index("ix_answers_worker_id_id")
        batch_op.drop_index("ix_answers_item_id_id")
        batch_op.drop_index("ix_answers_campaign_id_id")

    op.drop_table("answers")
    with op.batch_alter_table("wanted", schema=None) as batch_op:
        batch_op.drop_index("ix_wanted_campaign_id_question_id")
        batch_op.drop_index("ix_wanted_campaign_id_id")

    op.drop_table("wanted")
    with op.batch_alter_table("waiting", schema=None) as batch_op:
        batch_op.drop_index("ix_waiting_campaign_id_item_id")

    op.drop_table("waiting")
    with op.batch_alter_table("leases", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_leases_worker_id",
            sqlite_where=sa.text("state = 0"),
            postgresql_where=sa.text("state = 0"),
        )
        batch_op.drop_index(
            "ix_leases_given_at",
            sqlite_where=sa.text("state IN (0, 4)"),
            postgresql_where=sa.text("state IN (0, 4)"),
        )
        batch_op.drop_index(
            "ix_leases_expires_at",
            sqlite_where=sa.text("state IN (0, 4)"),
            postgresql_where=sa.text("state IN (0, 4)"),
        )

    op.drop_table("leases")
    with op.batch_alter_table("labels", schema=None) as batch_op:
        batch_op.drop_index("ix_labels_campaign_id_id")

    op.drop_table("labels")
    with op.batch_alter_table("credentials", schema=None) as batch_op:
        batch_op.drop_index("ix_credentials_worker_id")
        batch_op.drop_index("ix_credentials_role_campaign_id")

    op.drop_table("credentials")
    op.drop_table("workers")
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.drop_index("ix_deliveries_webhook_id_id")

    op.drop_table("deliveries")
    op.drop_table("webhooks")
    op.drop_table("tallies")
    with op.batch_alter_table("items", schema=None) as batch_op:
        batch_op.drop_index("ix_items_campaign_id_status_id")

    op.drop_table("items")
    op.drop_table("budgets")
    op.drop_table("judgements")
    op.drop_table("campaigns")
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.drop_index("ix_audit_campaign_id_id")

    op.drop_table("audit")
