"""Consent and training of workers, and reports about items."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMNS = (
    ("workers", "consent", sa.Text(), ""),
    ("workers", "trained", sa.Integer(), "0"),
    ("answers", "report", sa.Text(), ""),
)
REPORTED = sa.text("report <> ''")


def upgrade() -> None:
    """Move one version up."""
    for table, name, kind, default in COLUMNS:
        op.add_column(table, sa.Column(name, kind, server_default=default, nullable=False))
    op.add_column("workers", sa.Column("consented_at", sa.Float(), nullable=True))
    op.create_index(
        "ix_answers_reports",
        "answers",
        ["campaign_id", "id"],
        sqlite_where=REPORTED,
        postgresql_where=REPORTED,
    )


def downgrade() -> None:
    """Move one version down."""
    op.drop_index("ix_answers_reports", table_name="answers")
    op.drop_column("workers", "consented_at")
    for table, name, _, _ in reversed(COLUMNS):
        op.drop_column(table, name)
