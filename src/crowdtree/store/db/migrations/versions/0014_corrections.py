"""Labels that owners give by hand, beside those of the answers."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BY_HAND = sa.text("corrected IS NOT NULL")


def upgrade() -> None:
    """Move one version up."""
    op.add_column("items", sa.Column("corrected", sa.Integer(), nullable=True))
    op.create_index(
        "ix_items_corrected",
        "items",
        ["campaign_id"],
        sqlite_where=BY_HAND,
        postgresql_where=BY_HAND,
    )
    op.create_table(
        "corrections",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("campaign_id", BIG, nullable=False),
        sa.Column("item_id", BIG, nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("computed", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("at", sa.Float(), server_default="0", nullable=False),
        sa.Column("activity_id", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_corrections_campaign_id")
        ),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_corrections_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_corrections")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_corrections_campaign_id_id", "corrections", ["campaign_id", "id"])
    op.create_index("ix_corrections_item_id_id", "corrections", ["item_id", "id"])


def downgrade() -> None:
    """Move one version down; labels by hand are lost."""
    op.drop_table("corrections")
    op.drop_index("ix_items_corrected", table_name="items")
    op.drop_column("items", "corrected")
