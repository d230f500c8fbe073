"""Rename the table `wanted` to `open_questions` and its column `open` to `needed`."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up."""
    _copy("wanted", "open", "open_questions", "needed")


def downgrade() -> None:
    """Move one version down."""
    _copy("open_questions", "needed", "wanted", "open")


def _copy(old: str, old_count: str, new: str, count: str) -> None:
    """Copy into a new table, so that constraints get the new names in either dialect."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        new,
        sa.Column("id", big, autoincrement=True, nullable=False),
        sa.Column("campaign_id", big, nullable=False),
        sa.Column("item_id", big, nullable=False),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.Column(count, sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f(f"fk_{new}_item_id")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{new}")),
        sa.UniqueConstraint("item_id", "question", name=op.f(f"uq_{new}_item_id_question")),
        sqlite_autoincrement=True,
    )
    op.execute(
        f'INSERT INTO {new} (id, campaign_id, item_id, question, "{count}") '
        f'SELECT id, campaign_id, item_id, question, "{old_count}" FROM {old}'
    )
    if op.get_bind().dialect.name == "postgresql":  # ids go on where they were
        sequences = [f"pg_get_serial_sequence('{table}', 'id')" for table in (new, old)]
        op.execute(f"SELECT setval({sequences[0]}, nextval({sequences[1]}))")
    op.drop_table(old)
    op.create_index(f"ix_{new}_campaign_id_id", new, ["campaign_id", "id"])
    op.create_index(f"ix_{new}_campaign_id_question_id", new, ["campaign_id", "question", "id"])
