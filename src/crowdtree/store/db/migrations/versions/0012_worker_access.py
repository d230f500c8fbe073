"""Secrets of campaigns, weights of skips, and what is known about how workers came and ended."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

COLUMNS = (
    ("campaigns", "secret", sa.Text(), ""),
    ("workers", "accepted", sa.Integer(), "0"),
    ("workers", "lapses", sa.Integer(), "0"),
    ("workers", "network", sa.Text(), ""),
    ("answers", "weight", sa.Float(), "1"),
)
ACCEPTED = """UPDATE workers SET accepted = (SELECT count(*) FROM answers
    WHERE answers.worker_id = workers.id AND answers.kind = 'answer'
    AND (answers.fate IN ('counted', 'gold')
        OR (answers.fate IN ('surplus', 'late') AND answers.overdue = 0))
    AND NOT EXISTS (SELECT 1 FROM answers AS later WHERE later.lease_id = answers.lease_id
        AND later.kind = 'undo' AND later.id > answers.id))"""


def upgrade() -> None:
    """Move one version up."""
    for table, name, kind, default in COLUMNS:
        op.add_column(table, sa.Column(name, kind, server_default=default, nullable=False))
    op.add_column("workers", sa.Column("completed_at", sa.Float(), nullable=True))
    op.create_index("ix_workers_campaign_id_joined_at", "workers", ["campaign_id", "joined_at"])
    op.create_index("ix_workers_campaign_id_network", "workers", ["campaign_id", "network"])
    op.execute(ACCEPTED)
    campaigns = sa.table("campaigns", sa.column("id"), sa.column("secret"))
    connection = op.get_bind()
    for number in connection.execute(sa.select(campaigns.c.id)).scalars().all():
        made = campaigns.update().where(campaigns.c.id == number)
        connection.execute(made.values(secret=secrets.token_urlsafe(32)))


def downgrade() -> None:
    """Move one version down; skips count in full again."""
    op.drop_index("ix_workers_campaign_id_network", table_name="workers")
    op.drop_index("ix_workers_campaign_id_joined_at", table_name="workers")
    op.drop_column("workers", "completed_at")
    for table, name, _, _ in reversed(COLUMNS):
        op.drop_column(table, name)
