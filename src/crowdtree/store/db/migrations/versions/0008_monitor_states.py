"""What a monitor has computed so far, and the skills with which answers are weighed."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up. Logs are read once more from the start."""
    op.add_column("monitors", sa.Column("state", sa.Text(), server_default="", nullable=False))
    op.execute("UPDATE monitors SET last_answer_id = 0, answers = 0, alarms = '[]'")
    op.add_column(
        "workers", sa.Column("used_skill", sa.Float(), server_default="0", nullable=False)
    )
    op.execute("UPDATE workers SET used_skill = skill")


def downgrade() -> None:
    """Move one version down."""
    op.drop_column("workers", "used_skill")
    op.drop_column("monitors", "state")
