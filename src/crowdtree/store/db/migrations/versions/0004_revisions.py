"""Revisions: the policy of a running campaign can be replaced, and its items are replayed."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COLUMNS = (
    ("campaigns", "revision", sa.Integer()),
    ("items", "revision", sa.Integer()),
    ("items", "revised_after", BIG),
    ("webhooks", "sent_withdrawal_id", BIG),
)


def upgrade() -> None:
    """Move one version up."""
    op.create_table(
        "revisions",
        sa.Column("campaign_id", BIG, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.Column("actor", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="{}", nullable=False),
        sa.Column("after_answer_id", BIG, server_default="0", nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.Column("policy", sa.Text(), server_default="", nullable=False),
        sa.Column("finished_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_revisions_campaign_id")
        ),
        sa.PrimaryKeyConstraint("campaign_id", "number", name=op.f("pk_revisions")),
    )
    op.create_table(
        "withdrawals",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("campaign_id", BIG, nullable=False),
        sa.Column("item_id", BIG, nullable=False),
        sa.Column("label_id", BIG, nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_withdrawals_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_withdrawals")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_withdrawals_campaign_id_id", "withdrawals", ["campaign_id", "id"])
    for table, name, kind in COLUMNS:
        op.add_column(table, sa.Column(name, kind, server_default="0", nullable=False))
    op.add_column("answers", sa.Column("revised_fate", sa.Text(), nullable=True))


def downgrade() -> None:
    """Move one version down; what was revised stays as it is."""
    op.drop_column("answers", "revised_fate")
    for table, name, _ in COLUMNS:
        op.drop_column(table, name)
    op.drop_index("ix_withdrawals_campaign_id_id", table_name="withdrawals")
    op.drop_table("withdrawals")
    op.drop_table("revisions")
