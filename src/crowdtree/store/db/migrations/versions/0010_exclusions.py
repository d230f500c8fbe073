"""Exclusions of a worker's answers, and items set aside that were reopened."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Move one version up."""
    op.create_table(
        "exclusions",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("campaign_id", BIG, nullable=False),
        sa.Column("worker_id", BIG, nullable=False),
        sa.Column("first_answer_id", BIG, server_default="0", nullable=False),
        sa.Column("last_answer_id", BIG, server_default="0", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lifted_revision", sa.Integer(), nullable=True),
        sa.Column("since", sa.Float(), nullable=True),
        sa.Column("actor", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.Column("lifted_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_exclusions_campaign_id")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["workers.id"], name=op.f("fk_exclusions_worker_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exclusions")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_exclusions_campaign_id_id", "exclusions", ["campaign_id", "id"])
    op.add_column("items", sa.Column("reopened_after", BIG, server_default="0", nullable=False))


def downgrade() -> None:
    """Move one version down; what was excluded or reopened stays as it is."""
    op.drop_column("items", "reopened_after")
    op.drop_index("ix_exclusions_campaign_id_id", table_name="exclusions")
    op.drop_table("exclusions")
