"""Newcomers: why a worker is known, and items whose label waits until somebody is."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ADDED = (
    ("workers", "known", sa.Text, ""),
    ("items", "least", sa.Integer, "0"),
    ("open_questions", "known_only", sa.SmallInteger, "0"),
)


def upgrade() -> None:
    """Move one version up."""
    for table, name, kind, default in ADDED:
        op.add_column(table, sa.Column(name, kind, nullable=False, server_default=default))


def downgrade() -> None:
    """Move one version down."""
    for table, name, _, _ in ADDED:
        op.drop_column(table, name)
