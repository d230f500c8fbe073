"""Add the tables `audits` and `checks`."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "audits",
        sa.Column("id", big, autoincrement=True, nullable=False),
        sa.Column("campaign_id", big, nullable=False),
        sa.Column("bound", sa.Float(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("known", sa.Text(), nullable=False),
        sa.Column("claims", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_audits_campaign_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audits")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audits_campaign_id_id", "audits", ["campaign_id", "id"])
    op.create_table(
        "checks",
        sa.Column("id", big, autoincrement=True, nullable=False),
        sa.Column("audit_id", big, nullable=False),
        sa.Column("campaign_id", big, nullable=False),
        sa.Column("item_id", big, nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=False),
        sa.Column("label", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("held_until", sa.Float(), server_default="0", nullable=False),
        sa.Column("correct", sa.SmallInteger(), nullable=True),
        sa.Column("truth", sa.Integer(), nullable=True),
        sa.Column("person", sa.Text(), server_default="", nullable=False),
        sa.Column("at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audits.id"], name=op.f("fk_checks_audit_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_checks_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checks")),
        sa.UniqueConstraint("audit_id", "draw", name=op.f("uq_checks_audit_id_draw")),
        sa.UniqueConstraint("audit_id", "item_id", name=op.f("uq_checks_audit_id_item_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_checks_item_id", "checks", ["item_id"])


def downgrade() -> None:
    """Move one version down."""
    op.drop_table("checks")
    op.drop_table("audits")
