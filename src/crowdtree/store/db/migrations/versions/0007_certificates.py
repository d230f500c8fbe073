"""Audits that correct labels, and messages about alarms, revisions and certificates."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Move one version up. Webhooks are sent what happens from now on."""
    op.add_column(
        "audits", sa.Column("corrects", sa.SmallInteger(), server_default="0", nullable=False)
    )
    op.add_column(
        "webhooks", sa.Column("sent_activity_id", BIG, server_default="0", nullable=False)
    )
    op.execute("UPDATE webhooks SET sent_activity_id = (SELECT COALESCE(MAX(id), 0) FROM activity)")


def downgrade() -> None:
    """Move one version down."""
    op.drop_column("webhooks", "sent_activity_id")
    op.drop_column("audits", "corrects")
