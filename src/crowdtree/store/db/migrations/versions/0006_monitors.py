"""Monitors: what the answers of a campaign say about its table."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Move one version up. Campaigns that have started keep their table, unless told otherwise."""
    op.create_table(
        "monitors",
        sa.Column("campaign_id", BIG, nullable=False),
        sa.Column("last_answer_id", BIG, server_default="0", nullable=False),
        sa.Column("tested", sa.Integer(), server_default="0", nullable=False),
        sa.Column("answers", sa.Integer(), server_default="0", nullable=False),
        sa.Column("alarms", sa.Text(), server_default="[]", nullable=False),
        sa.Column("findings", sa.Text(), server_default="[]", nullable=False),
        sa.Column("holder", sa.Text(), server_default="", nullable=False),
        sa.Column("until", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_monitors_campaign_id")
        ),
        sa.PrimaryKeyConstraint("campaign_id", name=op.f("pk_monitors")),
    )
    names = ("id", "status", "settings")
    campaigns = sa.table("campaigns", *(sa.column(name) for name in names))
    connection = op.get_bind()
    started = sa.select(campaigns).where(campaigns.c.status != "draft")
    for row in connection.execute(started).all():
        settings = json.dumps({**json.loads(row.settings), "adapt": False})
        mine = campaigns.c.id == row.id
        connection.execute(campaigns.update().where(mine).values(settings=settings))


def downgrade() -> None:
    """Move one version down; settings that an older version does not know are ignored."""
    op.drop_table("monitors")
