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
<<<<<<< HEAD
    op.add_column("workers", sa.Column("known", sa.Text, nullable=False, server_default=""))
    op.add_column("items", sa.Column("least", sa.Integer, nullable=False, server_default="0"))
    known_only = sa.Column("known_only", sa.SmallInteger, nullable=False, server_default="0")
    op.add_column("open_questions", known_only)
=======
    for table, name, kind, default in ADDED:
        op.add_column(table, sa.Column(name, kind, nullable=False, server_default=default))
>>>>>>> trust


def downgrade() -> None:
    """Move one version down."""
<<<<<<< HEAD
    op.drop_column("open_questions", "known_only")
    op.drop_column("items", "least")
    op.drop_column("workers", "known")
=======
    for table, name, _, _ in ADDED:
        op.drop_column(table, name)
>>>>>>> trust
