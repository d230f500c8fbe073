"""Newcomers: why a worker is known, and items whose label waits until somebody is."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up."""
    op.add_column("workers", sa.Column("known", sa.Text, nullable=False, server_default=""))
    op.add_column("items", sa.Column("least", sa.Integer, nullable=False, server_default="0"))
    known_only = sa.Column("known_only", sa.SmallInteger, nullable=False, server_default="0")
    op.add_column("open_questions", known_only)


def downgrade() -> None:
    """Move one version down."""
    op.drop_column("open_questions", "known_only")
    op.drop_column("items", "least")
    op.drop_column("workers", "known")
