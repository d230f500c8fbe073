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
        table.add_column(sa.Column("least", sa.Integer, nullable=False, server_default="0"))
    with op.batch_alter_table("open_questions") as table:
        new = sa.Column("known_only", sa.SmallInteger, nullable=False, server_default="0")
        table.add_column(new)


def downgrade() -> None:
    """Move one version down."""
    with op.batch_alter_table("open_questions") as table:
        table.drop_column("known_only")
    with op.batch_alter_table("items") as table:
        table.drop_column("least")
    with op.batch_alter_table("workers") as table:
        table.drop_column("known")
