"""Newcomers: why a worker is known, and items whose label waits until somebody is."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up."""
    with op.batch_alter_table("workers") as table:
        table.add_column(sa.Column("known", sa.Text, nullable=False, server_default=""))
    with op.batch_alter_table("items") as table:
        table.add_column(sa.Column("held", sa.SmallInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    """Move one version down."""
    with op.batch_alter_table("items") as table:
        table.drop_column("held")
    with op.batch_alter_table("workers") as table:
        table.drop_column("known")
